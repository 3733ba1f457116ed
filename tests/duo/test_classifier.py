"""The model duo_classifier: which embeddings its options give it, and what it returns."""

import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig

FLAGS = ("--embed-dim-s", 5, "--ffn-embed-dim", 7)
TWO = (*FLAGS, "--embed-dim-p", 3)


@pytest.fixture(scope="module")
def classifier(build, dictionaries):
    """Function (options...) -> (task, model) of texts in xx and labels in yy."""

    def make(*flags):
        more = ("--criterion", "label_cross_entropy", *flags)
        return build("duo_classifier", *more, task="text_classification")[1:]

    return make


@pytest.mark.parametrize(
    "flags, widths",
    [
        (TWO, [5, 3]),
        (FLAGS, [5, 300]),  # P as wide as by default
        ((*FLAGS, "--meta-embedding", "single"), [5]),
        ((*FLAGS, "--meta-embedding", "mean-mlp"), [5]),
        ((*TWO, "--meta-embedding", "mean-mlp"), [5, 3]),
    ],
)
def test_embeddings_of_the_options(classifier, flags, widths):
    network = classifier(*flags)[1].classifier
    tables = [table for table in (network.s, network.p) if table is not None]
    assert [table.embedding_dim for table in tables] == widths
    assert all(table.weight.requires_grad for table in tables)  # drawn, and therefore learnt


def test_the_dropout_rate_is_that_of_the_option(classifier):
    network = classifier(*TWO, "--dropout", 0.25)[1].classifier
    assert network.dropout == network.sentence.dropout == 0.25


def test_scores_are_of_the_labels_alone(classifier):
    task, model = classifier(*TWO)
    labels = len(task.target_dictionary) - task.target_dictionary.nspecial
    output = model(torch.tensor([[4, 5, 6], [7, 4, 1]]), torch.tensor([3, 2]))
    assert output[0].shape == (2, labels)
    probs = model.get_normalized_probs((output[0].half(), {}), log_probs=False)
    assert probs.dtype == torch.float32
    torch.testing.assert_close(probs.sum(dim=1), torch.ones(2))
    log_probs = model.get_normalized_probs((output[0].half(), {}), log_probs=True)
    torch.testing.assert_close(log_probs.exp(), probs)


def test_labels_do_not_depend_on_dropout(classifier):
    """A program may search with a model as it was loaded, in training mode."""
    task, model = classifier(*TWO, "--dropout", 0.5)
    sample = {"net_input": {"src_tokens": torch.tensor([[4, 5, 6]])}}
    generator = task.build_generator([model], GenerationConfig())
    (labels,) = task.inference_step(generator, [model.train()], sample)
    scores = model.eval()(**sample["net_input"])[0].log_softmax(dim=-1)
    expected = scores[0].sort(descending=True).values
    torch.testing.assert_close(torch.stack([entry["score"] for entry in labels]), expected)


def test_entries_that_fill_a_dictionary_up_are_no_labels(build, tmp_path):
    """fairseq-preprocess adds them; a score of theirs would take from the labels' probability."""
    (tmp_path / "dict.text.txt").write_text("a 1\nb 1\n", encoding="utf-8")
    names = "x 1\ny 1\nmadeupword0000 0\nmadeupword0001 0\n"
    (tmp_path / "dict.label.txt").write_text(names, encoding="utf-8")
    sides = {"task": "text_classification", "languages": ("-s", "text", "-t", "label")}
    _, _, model = build("duo_classifier", *TWO, data=tmp_path, **sides)
    assert model(torch.tensor([[4, 5]]))[0].shape == (1, 2)


@pytest.mark.parametrize(
    "flags, message",
    [
        ((*TWO, "--meta-embedding", "single"), "--embed-dim-p: --meta-embedding single has no P"),
        (
            (*FLAGS, "--meta-embedding", "mean-mlp", "--duo-attention", "linear"),
            "--duo-attention linear: --meta-embedding mean-mlp has no attention",
        ),
        (("--ffn-embed-dim", 7, "--train-embeddings"), "--train-embeddings: no embedding comes"),
        (("--embed-dim-s", 0), "--embed-dim-s 0: must be at least 1"),
    ],
)
def test_options_that_do_not_go_together_are_refused(classifier, flags, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        classifier(*flags)
