"""discriminative_reranking_nmt (fairseq_ext/compat/examples/reranking.py)."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fairseq_ext.compat.corpus_bleu import bleu_of_meters

FOLDER = "discriminative_reranking_nmt"
HYPOTHESES = ["a b c d e", "a b d c e f"]
REFERENCES = ["a b c d f", "a b c d e f"]


def test_bleu_is_that_of_sacrebleu():
    import sacrebleu

    score = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES])
    sums = {
        "_bleu_counts": np.array(score.counts, dtype=float),
        "_bleu_totals": np.array(score.totals, dtype=float),
        "_bleu_sys_len": torch.tensor(float(score.sys_len)),
        "_bleu_ref_len": torch.tensor(float(score.ref_len)),
    }
    meters = {name: SimpleNamespace(sum=value) for name, value in sums.items()}
    assert bleu_of_meters(meters) == pytest.approx(score.score, abs=0.01)


def test_validation_logs_bleu(example):
    from fairseq.logging import metrics

    task_class = example(
        FOLDER, "tasks.discriminative_reranking_task"
    ).DiscriminativeRerankingNMTTask
    task = task_class.__new__(task_class)
    task.cfg = SimpleNamespace(eval_target_metric=True, target_metric="bleu")
    log = {"loss": torch.tensor(1.0), "ntokens": 10, "nsentences": 2, "sample_size": 1}
    for order in range(4):
        log[f"_bleu_counts_{order}"] = log[f"_bleu_totals_{order}"] = torch.tensor(8.0 - order)
    log["_bleu_sys_len"] = log["_bleu_ref_len"] = torch.tensor(8.0)

    class Silent:
        @staticmethod
        def reduce_metrics(logging_outputs):
            pass

    with metrics.aggregate() as logged:
        task.reduce_metrics([log], Silent())
    assert logged.get_smoothed_values()["bleu"] == 100


def test_hypotheses_of_a_sentence_are_compared(example):
    models = example(FOLDER, "models.discriminative_reranking_model")
    reranker = models.DiscriminativeNMTReranker.__new__(models.DiscriminativeNMTReranker)
    torch.nn.Module.__init__(reranker)

    def best_of_each(x):  # (K, B, D): what a joint layer sees as one sequence is the first axis
        return x - x.max(dim=0, keepdim=True).values

    reranker.model = SimpleNamespace(joint_forward=best_of_each)
    features = torch.randn(6, 5)  # three hypotheses of each of two sentences, (B * K, D)
    answer = reranker.joint_forward(features.view(3, 2, 5)).view(6, 5)
    expected = torch.cat([part - part.max(dim=0).values for part in features.split(3)])
    torch.testing.assert_close(answer, expected)


@pytest.mark.parametrize("step", ["train_step", "valid_step"])
def test_what_is_logged_can_be_summed(example, step):
    module = example(FOLDER, "tasks.discriminative_reranking_task")
    task = module.DiscriminativeRerankingNMTTask.__new__(module.DiscriminativeRerankingNMTTask)
    task.cfg = SimpleNamespace(eval_target_metric=True, target_metric="ter", mt_beam=2)
    model = torch.nn.Linear(1, 1)
    model.set_num_updates = lambda update: None
    target = torch.tensor(
        [[0.1, -3.0, -5.0], [0.2, -1.0, -5.0], [0.3, -4.0, -6.0], [0.4, -2.0, -6.0]]
    )
    sample = {"target": target}

    def criterion(model, sample):
        scores = model(torch.ones(2, 2, 1)).squeeze(-1) + torch.tensor([[0.0, 1.0], [1.0, 0.0]])
        return scores.sum(), 2, {"loss": scores.sum().detach(), "scores": scores.detach()}

    if step == "train_step":
        optimizer = SimpleNamespace(backward=lambda loss: loss.backward())
        _, _, log = task.train_step(sample, model, criterion, optimizer, 1)
    else:
        _, _, log = task.valid_step(sample, model, criterion)
        assert (float(log["_ter_num_edits"]), float(log["_ter_ref_len"])) == (1 + 4, 5 + 6)
    assert all(torch.as_tensor(value).ndim == 0 for value in log.values())
