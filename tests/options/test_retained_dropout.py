"""--retain-dropout and --retain-dropout-modules: in every system as in stock fairseq."""

import copy
from types import SimpleNamespace

import pytest
import torch
from common import inprocess
from options.systems import SYSTEMS, built, first_batch, output_of


def model_and_batch(name, data):
    """A model with random weights, and a batch."""
    system = SYSTEMS[name]
    _, task, model = built(system, data[system.data], "--dropout", 0.4)
    torch.manual_seed(1)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model, first_batch(task)


def prepared(model, retain_dropout, modules=None):
    """A copy as fairseq-generate prepares it."""
    model, common = copy.deepcopy(model), SimpleNamespace(bf16=False)
    generation = SimpleNamespace(retain_dropout=retain_dropout, retain_dropout_modules=modules)
    model.prepare_for_inference_(SimpleNamespace(generation=generation, common=common))
    return model


@pytest.mark.parametrize("name", SYSTEMS)
def test_dropout_is_kept_at_inference_only_when_asked_for(data, name):
    trained, batch = model_and_batch(name, data)
    model = prepared(trained, False)
    assert torch.equal(output_of(model, batch), output_of(model, batch))
    model = prepared(trained, True)
    model.eval()
    assert not torch.equal(output_of(model, batch), output_of(model, batch))
    torch.manual_seed(5)
    first = output_of(model, batch)
    torch.manual_seed(5)
    assert torch.equal(output_of(model, batch), first)


def dropping(model):
    """Names of the modules that drop at inference."""
    parts = model.modules()
    return {part.module_name for part in parts if getattr(part, "apply_during_inference", False)}


def test_modules_are_chosen_by_name(data):
    trained, _ = model_and_batch("dual_transformer", data)
    assert dropping(prepared(trained, True, "Block,Component")) == {"Block", "Component"}
    error = "--retain-dropout-modules Blok: no module 'Blok' .* allowed: Block, Component"
    with pytest.raises(ValueError, match=error):
        prepared(trained, True, "Blok")
    with pytest.raises(ValueError, match="does nothing without --retain-dropout"):
        prepared(trained, False, "Block")
    stock, _ = model_and_batch("transformer", data)
    # stock takes any part of a name for the name: the layers would be meant too
    assert dropping(prepared(stock, True, "TransformerEncoderLayerBase TransformerDecoder")) == {
        "TransformerEncoderLayerBase",
        "TransformerDecoder",
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SYSTEMS if not name.endswith("_lm")])
def test_fairseq_generate(data, tmp_path, name):
    """Scores of the same translations differ with the seed, with --retain-dropout alone."""
    system = SYSTEMS[name]
    folder = data[system.data]
    words = system.words(folder, "--max-tokens", 300, "--max-update", 2, "--save-dir", tmp_path)
    inprocess.train(*words, "--dropout", 0.3, "--no-epoch-checkpoints", "--disable-validation")
    words = system.inference_words(folder, tmp_path / "checkpoint_last.pt", "--max-tokens", 600)

    def scores(*more):
        hypotheses = inprocess.hypotheses(inprocess.generate(*words, *more))
        return {number: [(round(score, 4), text) for score, text in nbest]
                for number, nbest in hypotheses.items()}  # fmt: skip

    assert scores("--seed", 1) == scores("--seed", 2)
    seeded = "--retain-dropout", "--seed"
    assert scores(*seeded, 1) == scores(*seeded, 1) != scores(*seeded, 2)
