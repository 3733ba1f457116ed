"""Small models of sentencepiece, learnt from texts of the toy corpus."""

import sentencepiece


def learn_pieces(text, prefix, size=34):
    """Return the file PREFIX.model, of a model learnt from the lines of a file."""
    sentencepiece.SentencePieceTrainer.train(
        input=str(text),
        model_prefix=str(prefix),
        vocab_size=size,
        character_coverage=1.0,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return prefix.with_name(f"{prefix.name}.model")


def pieces(model, line):
    """Return the pieces of a line, as a list."""
    return sentencepiece.SentencePieceProcessor(str(model)).encode(line, out_type=str)
