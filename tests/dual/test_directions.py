"""Directions whose roles were never trained, and options that would do nothing, are refused."""

import argparse

import pytest
import torch
from common.inprocess import configuration
from dual.lstm_support import build, write_dictionaries
from fairseq import options, tasks
from omegaconf import open_dict

STACKS = ["--arch", "dual_supervised_transformer", "--share-all-embeddings"]
for _side in ("encoder", "decoder"):
    STACKS += [f"--{_side}-embed-dim", 16, f"--{_side}-ffn-embed-dim", 16]
    STACKS += [f"--{_side}-layers", 1, f"--{_side}-attention-heads", 2]


def inference(data, source, target, cfg, *flags):
    """(task of fairseq-generate, model with the checkpoint's configuration)."""
    words = [data, "--task", "dual_translation", "-s", source, "-t", target, "--path", "x.pt"]
    parsed = configuration(options.get_generation_parser(), [*words, *flags])
    task = tasks.setup_task(parsed.task)
    return task, task.build_model(cfg, from_checkpoint=True)


def trained_cfg(data, *words):
    """cfg.model as fairseq-train stores it, after the model has been built."""
    words = [data, "--task", "dual_translation", *words]
    cfg = configuration(options.get_training_parser(), words)
    tasks.setup_task(cfg.task).build_model(cfg.model)
    return cfg.model


@pytest.fixture(scope="module")
def dual_cfg(toy_corpus):
    """Function (options...) -> cfg.model of a small dual model."""
    sizes = ["--embed-dim", 8, "--ffn-embed-dim", 8, "--attention-heads", 2, "--layers", 1]

    def make(*words):
        return trained_cfg(toy_corpus.two, "--arch", "dual_transformer", *sizes, *words)

    return make


def test_one_way_translates_one_way(toy_corpus, dual_cfg):
    cfg = dual_cfg("-s", "xx", "-t", "yy", "--one-way")
    inference(toy_corpus.two, "xx", "yy", cfg)
    with pytest.raises(ValueError, match="-s yy -t xx: the checkpoint translates xx-yy$"):
        inference(toy_corpus.two, "yy", "xx", cfg)
    inference(toy_corpus.two, "yy", "xx", dual_cfg("-s", "xx", "-t", "yy"))


def test_the_model_itself_refuses(toy_corpus, dual_cfg):
    """Exports and other tools ask the model, not the task."""
    cfg = dual_cfg("-s", "xx", "-t", "yy", "--one-way")
    _, model = inference(toy_corpus.two, "xx", "yy", cfg)
    with pytest.raises(ValueError, match="'yy-xx': the model was trained for xx-yy"):
        model.direction("yy-xx")


@pytest.mark.parametrize("alpha", [0, 0.5])
def test_untrained_weights_rank_nothing(toy_corpus, dual_cfg, alpha):
    cfg = dual_cfg("-s", "xx", "-t", "yy", "--one-way")
    task, model = inference(toy_corpus.two, "xx", "yy", cfg, "--dual-alpha", alpha)
    with pytest.raises(ValueError, match="--dual-alpha: .*'yy-xx': the model was trained for xx-y"):
        task.build_generator([model], argparse.Namespace(beam=2))


def test_separate_models_have_no_third_direction(toy_corpus):
    words = ["--lang-pairs", "xx-yy,xx-zz", *STACKS]
    cfg = trained_cfg(toy_corpus.three, *words)
    inference(toy_corpus.three, "zz", "xx", cfg)
    with pytest.raises(ValueError, match="'yy-zz': the model has xx-yy, yy-xx, xx-zz, zz-xx"):
        inference(toy_corpus.three, "yy", "zz", cfg)


def test_labels_of_a_one_way_model(tmp_path):
    data = write_dictionaries(tmp_path / "data")
    task, model, _ = build(data, "--one-way")
    assert task.can_translate("text-label") and not task.can_translate("label-text")
    with pytest.raises(ValueError, match="'label-text': the model was trained for text-label"):
        model.direction("label-text")


# ---------------------------------------------------------------- options that would do nothing

NOTHING = [
    (("--dual-path", "a.pt"), "--dual-path a.pt does nothing in"),
    (("--dual-length-norm", "none"), "--dual-length-norm none does nothing in"),
]


@pytest.mark.parametrize("flags, message", NOTHING)
def test_options_of_dual_inference_at_alpha_1(toy_corpus, dual_cfg, flags, message):
    cfg = dual_cfg("-s", "xx", "-t", "yy")
    task, model = inference(toy_corpus.two, "xx", "yy", cfg, *flags)
    with pytest.raises(ValueError, match=f"{message} --dual-alpha 1, plain beam search; allowed"):
        task.build_generator([model], argparse.Namespace(beam=2))


@pytest.mark.parametrize("flags, message", [*NOTHING, (("--dual-alpha", 0.5), "--dual-alpha 0.5 ")])
def test_options_of_dual_inference_in_training(dual_task, flags, message):
    with pytest.raises(ValueError, match=f"{message}.*training, which ranks no translations; allo"):
        dual_task(*flags)


def test_a_file_of_embeddings_of_one_language(toy_corpus, tmp_path):
    """Both encoders, of xx and of yy, would look their words up in it."""
    path = tmp_path / "vectors.txt"
    path.write_text("2 16\nan1 " + " ".join(["0.5"] * 16) + "\n", encoding="utf-8")
    words = ["-s", "xx", "-t", "yy", *STACKS[:2], *STACKS[3:], "--encoder-embed-path", path]
    with pytest.raises(ValueError, match="--encoder-embed-path .*: the encoders are of xx, yy"):
        trained_cfg(toy_corpus.two, *words)
    trained_cfg(toy_corpus.two, *words, "--one-way")


def test_a_file_of_embeddings_of_all_languages(toy_corpus, tmp_path):
    """With one matrix of all words, one file is read, as by a stock transformer."""
    path = tmp_path / "vectors.txt"
    vector = " ".join(["0.5"] * 16)
    path.write_text(f"2 16\nan1 {vector}\nun1 {vector}\n", encoding="utf-8")
    files = [word for side in ("en", "de") for word in (f"--{side}coder-embed-path", path)]
    words = [toy_corpus.two, "--task", "dual_translation", "-s", "xx", "-t", "yy", *STACKS, *files]
    cfg = configuration(options.get_training_parser(), words)
    task = tasks.setup_task(cfg.task)
    model = task.build_model(cfg.model)
    rows = [task.dictionaries["xx"].index(word) for word in ("an1", "un1")]
    for stack in model.models.values():
        table = stack.encoder.embed_tokens.weight
        assert table is stack.decoder.embed_tokens.weight
        assert table is stack.decoder.output_projection.weight
        assert table[rows].eq(0.5).all()


# ---------------------------------------------------------------- the softmax of the NIST setting


def closed_formula(words, width, inner, layers):
    """Two components: embedding and softmax each, two attentions, feed-forward and three norms."""
    attention = 4 * (width * width + width)
    feed_forward = 2 * width * inner + inner + width
    block = 2 * attention + feed_forward + 3 * 2 * width
    return sum(2 * number * width for number in words) + 2 * layers * block


def test_size_of_the_paper_s_nist_model(tmp_path):
    """Sec. 3.2, 3.3: 37k and 22k words, big, no tying; here 322M parameters, in the paper 329M."""
    counts = {"zh": 37000, "en": 22000}
    for lang, count in counts.items():
        lines = "".join(f"w{number} 1\n" for number in range(count - 4))
        (tmp_path / f"dict.{lang}.txt").write_text(lines, encoding="utf-8")
    words = [tmp_path, "--task", "dual_translation", "-s", "zh", "-t", "en", "--separate-softmax"]
    words += ["--arch", "dual_transformer_nist_zh_en"]
    cfg = configuration(options.get_training_parser(), words)
    with torch.device("meta"):
        model = tasks.setup_task(cfg.task).build_model(cfg.model)
    size = sum(parameter.numel() for parameter in model.parameters())
    assert size == closed_formula(counts.values(), 1024, 4096, 6)
    assert round(size / 1e6) == 322


def test_the_softmax_of_its_own_is_what_writes(dual_task):
    task, model = dual_task("--separate-softmax", "--dropout", 0)
    xx, yy = model.components["xx"], model.components["yy"]
    source, previous = torch.tensor([[5, 6, 2]]), torch.tensor([[2, 7]])
    scores = model(source, None, previous, pair="xx-yy")[0]
    scores.square().sum().backward()
    assert yy.softmax.weight.grad.abs().sum() > 0
    assert xx.softmax.weight.grad is None
    assert yy.embedding.weight.grad[8:].eq(0).all()  # words that are not read: no tied gradient
    with torch.no_grad():
        yy.softmax.weight.mul_(2)
        torch.testing.assert_close(model(source, None, previous, pair="xx-yy")[0], 2 * scores)
    names = set(model.pair_parameters("xx-yy"))
    moved = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert moved <= names and "components.xx.softmax.weight" not in names
    deviation = yy.softmax.weight.std().item() / 2
    assert deviation == pytest.approx(12**-0.5, rel=0.15)


def test_tied_and_separate_exclude_each_other(dual_task):
    with pytest.raises(ValueError, match="--separate-softmax and --share-all-embeddings"):
        dual_task("--separate-softmax", "--share-all-embeddings")


def test_checkpoints_from_before_the_option_have_tied_softmaxes(toy_corpus, dual_cfg):
    cfg = dual_cfg("-s", "xx", "-t", "yy")
    with open_dict(cfg):
        del cfg["separate_softmax"]
    _, model = inference(toy_corpus.two, "xx", "yy", cfg)
    assert model.components["xx"].softmax is None
