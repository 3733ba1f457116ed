"""BLEU of validations in which translations are empty."""

from types import SimpleNamespace

import pytest
import sacrebleu
from common import inprocess
from fairseq.logging import metrics
from fairseq.tasks import FairseqTask
from fairseq.tasks.translation import TranslationTask

LINES = ["the cat sat on the mat today", "a dog barks in the quiet night"]
BATCHES = [(["", ""], LINES), (LINES, LINES), ([LINES[0], ""], LINES), ([""], LINES[:1])]


def sums(systems, references):
    """What fairseq's task logs of a batch."""
    score = sacrebleu.corpus_bleu(systems, [references])
    log = {"_bleu_sys_len": score.sys_len, "_bleu_ref_len": score.ref_len}
    for order in range(4):
        log[f"_bleu_counts_{order}"] = score.counts[order]
        log[f"_bleu_totals_{order}"] = score.totals[order]
    return log


@pytest.fixture
def bleu(monkeypatch):
    """Function (batches): "bleu" as a validation logs it, None if it does not."""
    monkeypatch.setattr(FairseqTask, "reduce_metrics", lambda *arguments: None)
    task = TranslationTask.__new__(TranslationTask)
    task.cfg = SimpleNamespace(eval_bleu=True)

    def bleu(logs):
        with metrics.aggregate(new_root=True) as total:
            for log in logs:
                task.reduce_metrics([log], None)
            return total.get_smoothed_values().get("bleu")

    return bleu


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 0, 3, 2), (2, 3, 0)])
def test_it_is_that_of_the_whole_set(order, bleu):
    batches = [BATCHES[number] for number in order]
    systems = [line for lines, _ in batches for line in lines]
    references = [line for _, lines in batches for line in lines]
    expected = sacrebleu.corpus_bleu(systems, [references]).score
    assert bleu([sums(*batch) for batch in batches]) == round(expected, 2) > 0


def test_nothing_but_empty_lines(bleu):
    assert bleu([sums(*BATCHES[0]), sums(*BATCHES[3])]) == 0


def test_training_has_none(bleu):
    assert bleu([{"loss": 1.0}]) is None


def test_a_training_that_begins_with_empty_translations(tiny_training, tmp_path):
    """--max-len-b 0 allows no word; stock ends with an unknown --best-checkpoint-metric."""
    search = '{"beam": 1, "min_len": 0, "max_len_b": 0}'
    flags = ("--eval-bleu", "--eval-bleu-args", search)
    flags += ("--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric")
    records = inprocess.train(*tiny_training, *flags, "--max-update", 1, "--save-dir", tmp_path)
    assert [record["valid_bleu"] for record in records if "valid_bleu" in record] == [0]
