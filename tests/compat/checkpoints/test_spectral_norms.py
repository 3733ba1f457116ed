"""Heads with spectral norm are loaded from checkpoints."""

import pytest
import torch
from common import inprocess
from fairseq import options, tasks

SIZES = ("--encoder-layers", 1, "--encoder-embed-dim", 8, "--encoder-ffn-embed-dim", 8)
SIZES += ("--encoder-attention-heads", 2, "--max-tokens", 60, "--tokens-per-sample", 32)
DECODER = ("--decoder-layers", 1, "--decoder-embed-dim", 8, "--decoder-ffn-embed-dim", 8)
DECODER += ("--decoder-attention-heads", 2, "--mask-length", "subword", "--replace-length", 1)
HEAD = "classification_heads.topic."


@pytest.fixture(params=["roberta", "bart"])
def build(request, toy_corpus, tmp_path):
    """Function (class count of the head or None, options...) -> a model."""
    (tmp_path / "dict.txt").write_bytes(toy_corpus.dictionary.read_bytes())
    task = {"roberta": "masked_lm", "bart": "denoising"}[request.param]
    words = [tmp_path, "--task", task, "--arch", f"{request.param}_base", *SIZES]
    words += DECODER if request.param == "bart" else ()

    def build(classes, *more):
        cfg = inprocess.configuration(options.get_training_parser(), [*words, *more])
        if classes is None:
            cfg.model.load_checkpoint_heads = True  # as the interfaces of PyTorch Hub do
        model = tasks.setup_task(cfg.task).build_model(cfg.model)
        if classes is not None:
            model.register_classification_head("topic", classes)
        return model

    return build


@pytest.mark.parametrize("classes", [3, None])
@pytest.mark.parametrize("more", [[], ["--spectral-norm-classification-head"]])
def test_a_head_is_loaded(classes, more, build):
    trained = build(3, *more)
    head = trained.classification_heads["topic"]
    head(torch.randn(4, 5, 8))  # a step of the power iteration
    stored = {name: value.clone() for name, value in trained.state_dict().items()}
    assert (f"{HEAD}out_proj.weight_orig" in stored) == bool(more)
    again = build(classes, *more)
    again.load_state_dict(dict(stored), strict=True)
    loaded = again.state_dict()
    assert loaded.keys() == stored.keys()
    assert all(torch.equal(loaded[name], stored[name]) for name in stored)
    states = torch.randn(4, 5, 8)
    same = [model.eval().classification_heads["topic"](states) for model in (trained, again)]
    assert torch.equal(*same)


def test_a_head_of_other_size_begins_anew(build):
    """As fairseq has it for heads without the norm."""
    stored = build(3, "--spectral-norm-classification-head").state_dict()
    other = build(5, "--spectral-norm-classification-head")
    before = other.classification_heads["topic"].out_proj.weight_orig.clone()
    other.load_state_dict(dict(stored), strict=True)
    assert torch.equal(other.classification_heads["topic"].out_proj.weight_orig, before)
