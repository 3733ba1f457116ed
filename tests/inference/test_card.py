"""The model card: languages, data, sizes, scores, versions and the command of the training."""

import re

import numpy as np
import pytest
import torch
from fairseq.data import indexed_dataset
from options.systems import SYSTEMS

import fairseq_ext
from fairseq_ext.inference.card import Facts, languages, model_card, vocabularies
from fairseq_ext.inference.stored_models import read_checkpoint


@pytest.fixture(scope="module")
def facts(data, checkpoint_of):
    """Function (system, number of models) -> what its card is made of."""

    def made(name, count=1, scores=None):
        paths, folder = [checkpoint_of(name)] * count, data[SYSTEMS[name].data]
        model = fairseq_ext.load(paths, folder)
        return Facts(model, [read_checkpoint(path) for path in paths], folder, scores)

    return made


def row(card, title):
    """The cell behind a title in a table of the card."""
    return re.search(rf"^\| {re.escape(title)} \| (.*) \|$", card, re.MULTILINE)[1]


def test_a_translation_model(facts, data):
    model_facts = facts("dual_transformer", scores="BLEU 12.3 on test\n")
    card = model_card(model_facts, "my-model")
    head = card.split("---")[1]
    assert "pipeline_tag: translation" in head and "  - xx\n  - yy\n" in head
    assert card.count("\n# ") == 1 and "# my-model" in card
    assert "A `dual_transformer` of the task `dual_translation`. Directions: xx-yy, yy-xx." in card
    parameters = sum(p.numel() for p in model_facts.model.loaded.models[0].parameters())
    assert row(card, "parameters") == f"{parameters:,}"
    assert row(card, "vocabulary of xx") == f"{len(model_facts.model.task.dictionaries['xx']):,}"
    lines = (data["two"].parent / "text" / "train.xx").read_text().splitlines()
    words = sum(len(line.split()) for line in lines)
    assert f"| train.xx-yy.xx | {len(lines):,} | {words:,} |" in card
    assert "BLEU 12.3 on test" in card and "1 updates, in epoch 1" in card
    assert "fairseq-train" in card and row(card, "torch") == torch.__version__
    assert row(card, "fairseq") == "0.12.2" and row(card, "fairseq-ext") == fairseq_ext.__version__
    assert str(data["two"]) not in card and not card.endswith("\n\n")


def test_an_ensemble_has_a_row_for_each(facts):
    card = model_card(facts("transformer", 2), "both")
    assert "An ensemble of 2 models. Each is a `transformer`" in card
    assert row(card, "parameters of model 1") == row(card, "parameters of model 2")


def test_the_backward_network_is_counted(facts):
    model_facts = facts("twin_lstm")
    count = sum(p.numel() for p in model_facts.model.loaded.twin.parameters())
    assert (
        row(model_card(model_facts, "twin"), "parameters of the backward network") == f"{count:,}"
    )


@pytest.mark.parametrize(
    "name, tag, use",
    [
        ("duo_classifier", "text-classification", "model.classify"),
        ("gru_lm", "text-generation", "model.perplexity"),
        ("twin_speech_lstm", "automatic-speech-recognition", 'model.translate(["recording.wav"])'),
        ("twin_caption_lstm", "image-to-text", 'model.translate(["features.npy"])'),
    ],
)
def test_other_kinds(facts, name, tag, use):
    card = model_card(facts(name), "name")
    assert f"pipeline_tag: {tag}" in card and use in card
    assert "fairseq_ext.load" in card and "vocabulary" in card


def test_data_that_are_gone_are_said_to_be(facts, tmp_path):
    model_facts = facts("transformer")._replace(data=tmp_path)
    assert "The data were not there when the model was packed." in model_card(model_facts, "name")


def test_tokens_are_counted_in_64_bits(facts, monkeypatch):
    model_facts = facts("transformer")
    monkeypatch.setattr(indexed_dataset, "make_dataset", lambda *_unused: Many())
    assert f"{3 * 2**30 - 3:,}" in model_card(model_facts, "name")


class Many:
    """A data set of three very long sentences."""

    sizes = np.full(3, 2**30, dtype=np.int32)

    def __len__(self):
        return 3


def test_languages_and_vocabularies(facts):
    assert languages(facts("multiway_gru")) == ["xx", "yy", "zz"]
    assert list(vocabularies(facts("transformer").model.task)) == ["xx", "yy"]
    assert list(vocabularies(facts("gru_lm").model.task)) == [""]
