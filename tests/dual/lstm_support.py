"""Bridges between the NumPy reference of the asymmetric setting, its module and its model."""

import functools

import torch
from common.inprocess import configuration
from fairseq import options, tasks

from properties import collate, shift

PAD, END, FIRST = 1, 2, 4  # FIRST: the first word, or label
WORDS, LABELS = 15, 3  # entries of the dictionary of texts, labels
SEEN = (3, 1, 4)  # how often each label is in the training data
# {array of the reference: parameter}
NAMES = {
    "embedding": "embedding.weight",
    "W_a": "lstm.weight_ih_l0",
    "U_a": "lstm.weight_hh_l0",
    "b_a": "lstm.bias_ih_l0",
    "E_y": "label_embedding",
    "P": "condition.weight",
    "W_o": "output.weight",
    "b_o": "output.bias",
}
GATES = ("W_a", "U_a", "b_a", "P")


def order(hidden):
    """Rows of the reference's i, o, f, c where torch has i, f, c, o."""
    rows = torch.arange(4 * hidden).view(4, hidden)
    return rows[[0, 2, 3, 1]].reshape(-1)


@torch.no_grad()
def fill(network, params):
    """Copy the reference's arrays; every trained parameter must be covered."""
    named = {
        name: parameter for name, parameter in network.named_parameters() if parameter.requires_grad
    }
    assert set(named) == {NAMES[name] for name in params}
    for name, array in params.items():
        tensor = torch.from_numpy(array)
        rows = tensor[order(network.lstm.hidden_size)] if name in GATES else tensor
        named[NAMES[name]].copy_(rows)
    return network


def gradient_of(network, name):
    """``.grad`` of the reference's array ``name``, in its order of rows."""
    grad = dict(network.named_parameters())[NAMES[name]].grad
    if name in GATES:
        return torch.empty_like(grad).index_copy(0, order(network.lstm.hidden_size), grad)
    return grad


def write_dictionaries(folder, words=11, labels=("neg", "pos", "so-so")):
    """dict.text.txt and dict.label.txt, which fairseq-preprocess fills up in the same way."""
    folder.mkdir(exist_ok=True)
    lines = "".join(f"w{number} 1\n" for number in range(words))
    (folder / "dict.text.txt").write_text(lines, encoding="utf-8")
    counted = [*zip(labels, SEEN), ("madeupword0000", 0)]
    lines = "".join(f"{name} {count}\n" for name, count in counted)
    (folder / "dict.label.txt").write_text(lines, encoding="utf-8")
    return folder


def build(data, *flags, sides=("-s", "text", "-t", "label")):
    """(task, model, criterion) of the arch dual_lstm_classifier, small."""
    arguments = [data, "--task", "dual_translation", *sides, "--arch", "dual_lstm_classifier"]
    arguments += ["--embed-dim", 5, "--hidden-size", 6, "--dropout", 0]
    arguments += ["--criterion", "dual_label_cross_entropy", *flags]
    cfg = configuration(options.get_training_parser(), arguments)
    task = tasks.setup_task(cfg.task)
    return task, task.build_model(cfg.model), task.build_criterion(cfg.criterion)


def random_pairs(lengths, rng):
    """(text, label) pairs; texts without end symbol."""
    return [
        ([int(w) for w in rng.integers(FIRST, WORDS, size=n)], int(rng.integers(LABELS)))
        for n in lengths
    ]


def batch(pairs, left=False):
    """Texts with their ends (B, S) and labels with theirs (B, 2)."""
    texts = [torch.tensor([*text, END]) for text, _ in pairs]
    labels = torch.tensor([[label + FIRST, END] for _, label in pairs])
    return collate(texts, PAD, left=left), labels


def sample_of(pairs, pair):
    """What fairseq's collater gives for one direction."""
    texts, labels = batch(pairs, left=pair == "text-label")
    source, target = (texts, labels) if pair == "text-label" else (labels, texts)
    inputs = {
        "src_tokens": source,
        "src_lengths": source.ne(PAD).sum(dim=1),
        "prev_output_tokens": collate(shift([row[row.ne(PAD)] for row in target]), PAD),
        "pair": pair,
    }
    return {"net_input": inputs, "target": target, "ntokens": int(target.ne(PAD).sum())}


def builder(data):
    """Function (options...) -> (task, model with random parameters, criterion), each built once."""
    make = functools.lru_cache(maxsize=None)(functools.partial(build, data))

    def call(*flags, **named):
        task, model, criterion = make(*flags, **named)
        torch.manual_seed(4)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter.copy_(torch.randn(parameter.shape))
        return task, model.eval(), criterion

    return call
