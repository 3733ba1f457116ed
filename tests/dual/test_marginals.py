"""log P of texts and of labels, by models that are not trained."""

import numpy as np
import pytest
import torch
from dual.lstm_support import END, FIRST, PAD, SEEN, build, write_dictionaries

from fairseq_ext.dual.supervised.marginals import (
    LabelFrequencies,
    Marginals,
    load_language_model,
    parse_language_models,
)

WORDS, LABELS = 11, 3
PREVIOUS = torch.tensor([[2, 8, 9]])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_dictionaries(tmp_path_factory.mktemp("dictionaries"))


# ---------------------------------------------------------------- labels


def test_labels_have_their_share_of_the_training_data(data):
    task, _, _ = build(data)
    frequencies = LabelFrequencies(task.dictionaries["label"], "label")
    labels = torch.tensor([[FIRST + number, END] for number in range(LABELS)])
    prev = labels.roll(1, dims=1)
    log_shares = Marginals({"label": frequencies})("label", prev, labels, PAD)
    assert log_shares.exp().tolist() == pytest.approx([count / sum(SEEN) for count in SEEN])
    assert not list(frequencies.parameters())


def test_a_label_that_was_never_seen_is_named(data, tmp_path):
    (tmp_path / "dict.text.txt").write_bytes((data / "dict.text.txt").read_bytes())
    (tmp_path / "dict.label.txt").write_text("neg 3\npos 0\n", encoding="utf-8")
    task, _, _ = build(tmp_path)
    with pytest.raises(ValueError, match="dict.label.txt: count 0 of the label pos; allowed: at l"):
        LabelFrequencies(task.dictionaries["label"], "label")


# ---------------------------------------------------------------- texts


class Bilinear(torch.nn.Module):
    """A language model of one word whose scores are a matrix product."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(6)
        self.table = torch.nn.Parameter(torch.tensor(rng.normal(size=(WORDS, 16))).float())
        self.output = torch.nn.Parameter(torch.tensor(rng.normal(size=(16, WORDS))).float())

    def forward(self, tokens):
        return self.table[tokens] @ self.output, {}

    def get_normalized_probs(self, output, log_probs, sample=None):
        return output[0].log_softmax(dim=-1)


def test_marginals_stay_in_float32_under_autocast():
    marginals = Marginals({"xx": Bilinear()})
    target = torch.tensor([[8, 9, 2]])
    plain = marginals("xx", PREVIOUS, target, PAD)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under_autocast = marginals("xx", PREVIOUS, target, PAD)
    assert under_autocast.dtype == torch.float32 and torch.equal(under_autocast, plain)


def test_padding_and_batch_mates_do_not_matter():
    marginals = Marginals({"xx": Bilinear()})
    alone = marginals("xx", torch.tensor([[2, 8]]), torch.tensor([[8, 2]]), PAD)
    previous, target = (
        torch.tensor([[2, 8, PAD], [2, 5, 6]]),
        torch.tensor([[8, 2, PAD], [5, 6, 2]]),
    )
    torch.testing.assert_close(marginals("xx", previous, target, PAD)[:1], alone)


# ---------------------------------------------------------------- the option


def test_the_option_names_a_file_for_each_language():
    assert parse_language_models("de=a.pt,en=b=c.pt", ["de", "en"]) == {
        "de": "a.pt",
        "en": "b=c.pt",
    }


@pytest.mark.parametrize(
    "text, message",
    [
        (None, "has no model of de; needed: de=FILE,en=FILE"),
        ("de=a.pt", "has no model of en"),
        ("de=,en=b.pt", "has no model of de"),
        ("de=a.pt,en=b.pt,de=c.pt", "a language is named twice"),
        ("de=a.pt,en=b.pt,fr=c.pt", "'fr' is no language of the run: de, en"),
        ("de=a.pt,en=b.pt,label=c.pt", r"P\(label\) is the share of each label in dict.label.txt"),
    ],
)
def test_other_languages_are_refused(text, message):
    with pytest.raises(ValueError, match=f"^--language-models {text}: {message}"):
        parse_language_models(text, ["de", "en"], "label")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(
        ValueError, match="^--language-models of de: .*lm.pt: there is no such file"
    ):
        load_language_model(str(tmp_path / "lm.pt"), "de", None, 5)
