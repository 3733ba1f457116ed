"""Models of stock fairseq: what fairseq-interactive prints, or an error that says what is not."""

import shutil

import pytest
from common import inprocess
from inference.printed import check_same, printed
from inference.stock import ALL, ONE_LAYER
from options.systems import SMOOTHED, System, flat

import fairseq_ext

SIZES = flat(ONE_LAYER)
THREE = "--lang-pairs xx-yy,xx-zz"
TAGS = "--langs xx,yy,zz --encoder-langtok tgt --decoder-langtok"
ENCODER = "--encoder-embed-dim 8 --encoder-ffn-embed-dim 8 --encoder-layers 1"
ENCODER += " --encoder-attention-heads 2 --sample-break-mode eos --tokens-per-sample 32"
DECODER = ENCODER.replace("encoder", "decoder")
LEVENSHTEIN = "--criterion nat_loss --noise full_mask"
MODELS = {
    "multilingual": System(
        "multilingual_translation", "multilingual_transformer", "three", f"{SIZES} {THREE}",
        inference=f"{THREE} -s xx -t zz",
    ),
    "multi_simple": System(
        "translation_multi_simple_epoch", "transformer", "three", f"{SIZES} {THREE} {TAGS}",
        inference=f"{THREE} {TAGS} -s xx -t zz",
    ),
    "cmlm": System(
        "translation_lev", "cmlm_transformer", "two",
        f"{SIZES} -s xx -t yy --apply-bert-init --share-all-embeddings", LEVENSHTEIN,
    ),
    "bart": System("translation", "bart_base", "two", f"{SIZES} -s xx -t yy"),
    "mbart": System(
        "translation_from_pretrained_bart", "mbart_base", "two",
        f"{SIZES} --langs xx,yy -s xx -t yy", SMOOTHED, "--langs xx,yy -s xx -t yy",
    ),
    "transformer_lm": System(
        "language_modeling", "transformer_lm", "language", DECODER, "--criterion cross_entropy"
    ),
    "roberta": System("masked_lm", "roberta_base", "language", ENCODER, "--criterion masked_lm"),
}  # fmt: skip
ALL.update(MODELS)
LINES = ["an1 av2 an3", "an4", "an2 av5 an0 at3", "unknown av1 an8 at2"]
TRANSLATE = ["stock lstm", "stock fconv", "stock lightconv", "multilingual", "multi_simple"]
TRANSLATE += ["cmlm", "bart", "mbart"]
UNSCORED = ("multilingual", "cmlm", "mbart")


def loaded(name, data, checkpoint_of):
    system = ALL[name]
    direction = "xx-zz" if system.data == "three" else None
    return fairseq_ext.load(checkpoint_of(name), data[system.data], direction)


@pytest.mark.parametrize("name", TRANSLATE)
def test_translations_are_what_is_printed(name, data, checkpoint_of, tmp_path):
    model, system = loaded(name, data, checkpoint_of), ALL[name]
    assert model.kind == "translation"
    file = tmp_path / "lines"
    file.write_text("".join(f"{line}\n" for line in LINES))
    # fairseq's BART remembers the beam of the last search
    for beam, nbest in ((3, 2), (2, 1), (3, 2))[: 3 if name == "bart" else 1]:
        nbest = 1 if name == "cmlm" else nbest  # it has no beam search
        search = ["--beam", beam, "--nbest", nbest, "--max-len-b", 6, "--input", file]
        words = [data[system.data], "--task", system.task, "--path", checkpoint_of(name)]
        output = inprocess.interactive(*words, *system.inference.split(), *search)
        check_same(model.translate(LINES, beam=beam, nbest=nbest, max_len_b=6), printed(output))


@pytest.mark.parametrize("name", [name for name in TRANSLATE if name not in UNSCORED])
def test_scores_are_those_of_the_search(name, data, checkpoint_of):
    model = loaded(name, data, checkpoint_of)
    best = [result.hypotheses[0] for result in model.translate(LINES[:2], beam=3, max_len_b=6)]
    skip = int(name == "multi_simple")  # the language stands before the target
    scores = model.score(LINES[:2], [" ".join(entry.tokens[skip:-1]) for entry in best])
    for score, hypothesis in zip(scores, best):
        if not skip:
            assert score.token_scores == pytest.approx(hypothesis.token_scores, abs=1e-4)


def test_what_has_no_scores_says_so(data, checkpoint_of):
    for name in UNSCORED:
        with pytest.raises(ValueError, match="has no scorer of texts; allowed: translate"):
            loaded(name, data, checkpoint_of).score(["an1"], ["un1"])


def test_language_models(data, checkpoint_of):
    model = loaded("transformer_lm", data, checkpoint_of)
    result, empty, long = model.perplexity(["un1 uv2", "", "un1 " * 3000])
    assert result.tokens == ["un1", "uv2", "</s>"] and result.perplexity > 1
    assert empty.tokens == ["</s>"] and "more than the model takes" in long.error


def test_what_is_not_supported_is_named(data, checkpoint_of, tmp_path):
    with pytest.raises(ValueError, match="a roberta_base of the task masked_lm, which this interf"):
        loaded("roberta", data, checkpoint_of)
    with pytest.raises(ValueError, match="direction 'yy-zz': allowed: xx-yy, xx-zz"):
        fairseq_ext.load(checkpoint_of("multilingual"), data["three"], "yy-zz")


def test_folders_of_the_hub(data, checkpoint_of, tmp_path):
    """Dictionaries beside the checkpoint are found; the folder itself is not guessed at."""
    for path in data["two"].glob("dict.*"):
        shutil.copy(path, tmp_path)
    shutil.copy(checkpoint_of("transformer"), tmp_path / "model.pt")
    assert fairseq_ext.load(tmp_path / "model.pt").translate(["an1"], max_len_b=3)[0].text
    with pytest.raises(FileNotFoundError, match=r"or a checkpoint file \(model.pt\)"):
        fairseq_ext.load(tmp_path)
