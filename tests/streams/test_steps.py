"""Steps besides the loss: stand-in batches, untouched parameters, unknown words in BLEU."""

from types import SimpleNamespace

import pytest
import torch
from streams.folders import dictionary_of, random_lines, write_pair
from streams.support import Optimizer, first_update, in_batches, streams

from fairseq_ext.streams.bleu import PairBleu
from fairseq_ext.streams.plan import TrainingPlan

MODEL = ["--arch", "dual_transformer_tiny", "--embed-dim", 8, "--ffn-embed-dim", 8, "--layers", 1]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("steps")
    for split in ("train", "valid"):
        for pair in ("xx-yy", "zz-yy"):
            lines = {lang: random_lines(lang, 12) for lang in pair.split("-")}
            write_pair(folder, split, pair, **lines)
    return folder


@pytest.fixture
def first(data):
    """Task, model, criterion and sample of the first update of the cycle xx-yy, zz-yy, .."""
    words = [data, "--task", "dual_translation", "--one-way", "--lang-pairs", "xx-yy,zz-yy"]
    words += [*MODEL, "--schedule", "cycle", "--optimizer", "adam", "--dropout", 0]
    return first_update(words, 4)


def test_a_stand_in_batch_teaches_nothing(first):
    """ignore_grad: a worker without a batch of its own takes part with zeros."""
    task, model, criterion, sample = first
    loss, size, log = task.train_step(sample, model, criterion, Optimizer, 0, ignore_grad=True)
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert gradients and not any(gradient.any() for gradient in gradients)
    assert loss == 0 and size == log["ntokens"] > 0
    loss, _, _ = task.train_step(sample, model, criterion, Optimizer, 0)
    assert loss > 0 and any(p.grad is not None and p.grad.any() for p in model.parameters())


def test_an_update_begins_as_those_of_fairseq(first):
    """In training mode, and the model knows the number of the update."""
    task, model, criterion, sample = first
    numbers, model.set_num_updates = [], lambda number: numbers.append(number)
    task.train_step(sample, model.eval(), criterion, Optimizer, 7)
    assert model.training and numbers == [7]


def test_validation_scores_all_pairs_or_the_chosen_one(first):
    """Of a chosen direction the ordinary dataset makes the batch, which names no pair."""
    task, model, criterion, sample = first
    loss, size, log = task.valid_step(sample, model, criterion)
    assert loss > 0 and size == log["ntokens"] == log["xx-yy:ntokens"] > 0
    assert not model.training and not loss.requires_grad
    (part,) = sample.values()
    part["net_input"].pop("pair", None)
    task.pair = "xx-yy"
    alone, _, log = task.valid_step(part, model, criterion)
    assert alone == loss and log["xx-yy:ntokens"] == size


def test_of_several_subsets_of_a_validation_the_first_is_judged(first):
    task, model, _, _ = first
    judged = []

    def judge(epoch, stats, agg):
        judged.append((epoch, stats["subset"]))

    task.pair_patience = SimpleNamespace(judge=judge)
    for epoch in (4, 6):
        task.begin_valid_epoch(epoch, model)
        for subset in ("valid", "valid1"):
            task.post_validate(model, {"subset": subset}, {})
    assert judged == [(4, "valid"), (6, "valid")]


def test_zeros_in_the_place_of_untouched_gradients_are_taken_away(first):
    """Data-parallel training fills them in; the optimiser must not see them."""
    task, model, criterion, sample = first
    assert list(sample) == ["xx-yy"]
    task.train_step(sample, model, criterion, Optimizer, 0)
    without = {name for name, p in model.named_parameters() if p.grad is None}
    assert any(name.startswith("components.zz.") for name in without)
    assert not any("yy.context_attention" in name for name in without)
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    stepped = []

    def step():
        stepped.extend(name for name, p in model.named_parameters() if p.grad is None)

    optimizer = SimpleNamespace(step=step, has_flat_params=False, supports_groups=False)
    task.optimizer_step(optimizer, model, 1)
    assert set(stepped) == without


def test_a_batch_without_memory_touches_nothing(first):
    """fairseq drops its gradients and steps with those of the other workers."""
    task, model, criterion, sample = first
    task.train_step(sample, model, criterion, Optimizer, 0)

    class Full(Optimizer):
        @staticmethod
        def backward(loss):
            raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="^out of memory$"):
        task.train_step(sample, model, criterion, Full, 1)
    assert len(task._untouched) == len(list(model.parameters()))


def test_half_precision_copies_of_untouched_parameters_have_no_gradient(first):
    task, model, criterion, sample = first
    task.train_step(sample, model, criterion, Optimizer, 0)
    halves = list(model.parameters())
    touched = [p.grad is not None for p in halves]
    copies = [p.detach().clone() for p in halves]
    for copy in copies:
        copy.grad = torch.zeros_like(copy)
    optimizer = SimpleNamespace(step=lambda: None, fp16_params=halves, fp32_params=copies)
    task.optimizer_step(optimizer, model, 1)
    assert [copy.grad is not None for copy in copies] == touched
    assert any(touched) and not all(touched)


def test_each_pass_has_an_order_of_its_own():
    """Within an epoch a small pair passes several times; so do the epochs."""
    dataset = streams(x_y=40, z_y=10)
    plan = TrainingPlan(dataset, in_batches(dataset, 1), "joint", 1, lambda epoch: 1)
    small = [[index - 40 for index in batch if index >= 40][0] for batch in plan(1)]
    passes = [tuple(small[start : start + 10]) for start in range(0, 40, 10)]
    assert len(set(passes)) == 4 and all(sorted(order) == list(range(10)) for order in passes)


class Generator:
    """Hypotheses that are what it is told."""

    def __init__(self, *hypotheses):
        self.hypotheses = hypotheses

    def generate(self, models, sample):
        return [[{"tokens": torch.tensor(tokens)}] for tokens in self.hypotheses]


def test_an_unknown_word_is_no_match():
    """BLEU of a hypothesis with <unk> where the reference has it: that word does not count."""
    words = dictionary_of("yy")
    cfg = SimpleNamespace(
        eval_bleu_args="{}", eval_bleu_detok_args="{}", eval_bleu_detok="space",
        eval_bleu_remove_bpe=None, eval_tokenized_bleu=True, eval_bleu_print_samples=False,
    )  # fmt: skip
    bleu = PairBleu(cfg, {"xx": words, "yy": words})
    a, b, c, d = (words.index(f"yy{number}") for number in range(4))
    unknown, end, pad = words.unk(), words.eos(), words.pad()
    bleu.generators["xx-yy"] = Generator([a, unknown, c, end], [a, b, d, end])
    target = torch.tensor([[a, unknown, c, end, pad], [a, b, c, d, end]])
    hypotheses, references = bleu.texts("xx-yy", {"target": target, "net_input": {}})
    assert hypotheses[0].split()[1] != references[0].split()[1]
    sums = bleu.sums("xx-yy", hypotheses, references)
    # matches: a, c and a, b, d; of pairs of words: a b alone
    assert [sums[f"_bleu_counts_{order}"] for order in range(4)] == [5, 1, 0, 0]
    assert [sums[f"_bleu_totals_{order}"] for order in range(4)] == [6, 4, 2, 0]
    assert (sums["_bleu_sys_len"], sums["_bleu_ref_len"]) == (6, 7)
