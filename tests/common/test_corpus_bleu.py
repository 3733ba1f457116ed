"""Sums of BLEU add up to the score of the corpus, which is not the mean over its batches."""

import sacrebleu
from fairseq import metrics

from fairseq_ext.common import corpus_bleu
from fairseq_ext.compat.corpus_bleu import bleu_of_meters, bleu_of_sums

REFERENCES = ["the cat sat on the mat today", "a dog ran far away", "it rained all day long"]
HYPOTHESES = ["the cat sat on a mat today", "a dog ran away", "it rained all day long"]


def score(*lines):
    hypotheses, references = zip(*((HYPOTHESES[line], REFERENCES[line]) for line in lines))
    return sacrebleu.corpus_bleu(hypotheses, [references])


def test_sums_of_batches_are_those_of_the_corpus():
    parts = [corpus_bleu.bleu_sums(score(*lines)) for lines in ((0,), (1, 2))]
    sums = {name: sum(part[name] for part in parts) for name in corpus_bleu.NAMES}
    assert sums == corpus_bleu.bleu_sums(score(0, 1, 2))
    counts, totals = (
        [sums[f"_bleu_{kind}_{order}"] for order in range(4)] for kind in ("counts", "totals")
    )
    # "a cat": 7 + 4 + 5 words, of which 6 + 4 + 5 are in the references
    assert (sums["_bleu_sys_len"], sums["_bleu_ref_len"], counts[0]) == (16, 17, 15)
    value = bleu_of_sums(counts, totals, sums["_bleu_sys_len"], sums["_bleu_ref_len"])
    assert value == round(score(0, 1, 2).score, 2)
    assert value != round((score(0).score + score(1, 2).score) / 2, 2)


def test_meters_add_up_batches_and_workers():
    """Two steps, the second on two workers; a worker whose batch lacks the sums counts as zeros."""
    parts = [corpus_bleu.bleu_sums(score(line)) for line in range(3)]
    with metrics.aggregate(new_root=True) as meters:
        words = [
            corpus_bleu.log_bleu_sums(logs, "_x_bleu") for logs in (parts[:1], [*parts[1:], {}])
        ]
        assert corpus_bleu.log_bleu_sums([{}], "_x_bleu") == 0
    assert words == [7, 10]
    assert bleu_of_meters(meters, "_x_bleu") == round(score(0, 1, 2).score, 2)
    assert all(name.startswith("_x_bleu_") for name in meters)
