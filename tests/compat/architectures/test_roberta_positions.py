"""roberta_enc_dec without a pretrained model (architectures/roberta_positions.py)."""

from argparse import Namespace


def test_translation_has_two_limits():
    from fairseq.data import Dictionary
    from fairseq.models.roberta.enc_dec import RobertaEncDecModel

    dictionary = Dictionary()
    dictionary.add_symbol("a")
    task = Namespace(
        source_dictionary=dictionary,
        target_dictionary=dictionary,
        max_positions=lambda: (30, 40),
    )
    args = Namespace(share_all_embeddings=True, share_decoder_input_output_embed=False)
    for name in ("layers", "embed_dim", "ffn_embed_dim", "attention_heads"):
        setattr(args, f"encoder_{name}", 2)
    model = RobertaEncDecModel.build_model(args, task)
    assert model.encoder.max_positions() == model.decoder.max_positions() == 40
