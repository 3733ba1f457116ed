"""The side of a pair that holds labels: what it refuses, and its search."""

import math
from types import SimpleNamespace

import pytest
import torch
from common.pieces import learn_pieces, pieces
from common.words import dictionary_with
from dual.lstm_support import build, write_dictionaries
from omegaconf import OmegaConf

from fairseq_ext.dual.lstm_classifier.label_sides import LabelSearch, LabelSide
from fairseq_ext.streams.language_pair import LanguagePair

END, FIRST = 2, 4


@pytest.fixture(scope="module")
def dictionary():
    """neg, pos, so-so, and what fairseq-preprocess fills up with."""
    return dictionary_with("neg", "pos", "so-so", "madeupword0000")


@pytest.fixture
def side(dictionary):
    return LabelSide("label", dictionary)


def rows(*sentences):
    return [torch.tensor(sentence) for sentence in sentences]


def test_options_that_labels_have_no_use_for_are_refused(side):
    side.check_bleu(False)
    side.check_criterion(SimpleNamespace(eps=0.0))
    side.check_criterion(SimpleNamespace())
    with pytest.raises(ValueError, match="--eval-bleu: labels are single words"):
        side.check_bleu(True)
    with pytest.raises(ValueError, match="--label-smoothing 0.1 with a side of labels"):
        side.check_criterion(SimpleNamespace(eps=0.1))


def test_each_side_is_checked_by_its_own_rules(side):
    texts, labels = rows([9, 8, END], [7, END]), rows([FIRST, END], [FIRST + 2, END])
    side.check_sentences("train", "text", texts, [3, 2])
    side.check_sentences("train", "label", labels, [2, 2])
    with pytest.raises(ValueError, match="train: line 2: an empty text"):
        side.check_sentences("train", "text", rows([9, END], [END]), [2, 1])
    with pytest.raises(
        ValueError, match="train: line 1: a label that dict.label.txt does not have"
    ):
        side.check_sentences("train", "label", rows([FIRST + 3, END]), [2])


def test_both_sides_of_a_pair_are_checked(side):
    texts, labels = rows([9, END]), rows([FIRST, 9, END])
    dataset = SimpleNamespace(src=texts, src_sizes=[2], tgt=labels, tgt_sizes=[3])
    with pytest.raises(ValueError, match=r"data: train.label: line 1: 2 words, a label is one"):
        side.check_pair("data: train", "text-label", dataset)
    dataset.tgt = dataset.tgt_sizes = None  # sources without references
    side.check_pair("data: test", "text-label", dataset)


class Fixed(torch.nn.Module):
    """A model with the same P(label) for every text; other entries are next to impossible."""

    def __init__(self, probabilities):
        super().__init__()
        self.probabilities = torch.tensor(probabilities)

    def forward(self, tokens, lengths, previous):
        log_p = torch.full((len(tokens), 1, 8), -1e4)
        log_p[:, 0, FIRST : FIRST + 3] = self.probabilities.log()
        return log_p

    def get_normalized_probs(self, output, log_probs):
        return output


def test_several_models_give_the_mean_of_their_probabilities(dictionary):
    models = [Fixed([0.7, 0.2, 0.1]), Fixed([0.1, 0.2, 0.7])]
    inputs = {"src_tokens": torch.tensor([[9, END]] * 2), "src_lengths": torch.tensor([2, 2])}
    lists = LabelSearch(models, dictionary).generate(models[:1], {"net_input": inputs})
    assert [[int(entry["tokens"][0]) - FIRST for entry in nbest] for nbest in lists] == [
        [0, 1, 2]
    ] * 2
    first, *_ = LabelSearch(models, dictionary).generate(models, {"net_input": inputs})[0]
    assert float(first["score"]) == pytest.approx(math.log(0.4))
    assert first["tokens"].tolist()[1] == END and float(first["positional_scores"][1]) == 0


@pytest.mark.parametrize("source, line", [("label", "so-so"), ("text", "an1 av2")])
def test_labels_are_not_cut_into_sub_words(source, line, toy_corpus, tmp_path):
    """--bpe is for the texts; a label in pieces would be refused as several words."""
    target = "text" if source == "label" else "label"
    task, _, _ = build(write_dictionaries(tmp_path / "data"), sides=("-s", source, "-t", target))
    task.requested = LanguagePair(source, target)  # which training does not name
    model = learn_pieces(toy_corpus.text / "train.xx", tmp_path / "pieces")
    options = {"_name": "sentencepiece", "sentencepiece_model": str(model)}
    coder, texts = task.build_bpe(OmegaConf.create(options)), []

    def encode_fn(text, bpe=coder):
        texts.append(bpe.encode(text))
        return texts[-1]

    task.get_interactive_tokens_and_lengths([line], encode_fn)
    assert texts == [line if source == "label" else " ".join(pieces(model, line))]
