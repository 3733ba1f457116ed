"""Scores of validation batches: which counts are made, added up and logged."""

import copy
from functools import partial

import pytest
import sacrebleu
from common.words import dictionary_with
from fairseq import metrics
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion

from fairseq_ext.common import corpus_bleu
from fairseq_ext.routed.validation import (
    BLANKS,
    COUNT_NAMES,
    KINDS,
    TER_SUMS,
    UNKNOWN,
    TaskScores,
    count_sums,
    log_scores,
    parse_target_kinds,
)
from fairseq_ext.streams.language_pair import target_of
from fairseq_ext.streams.metrics import merge_logs

NAMES = (*corpus_bleu.NAMES, *TER_SUMS, *COUNT_NAMES)


def test_kinds_of_targets():
    assert parse_target_kinds("ner=tags, q=text") == {"ner": "tags", "q": "text"}


def test_unknown_references_are_left_out_of_f1():
    """Two unknown labels would read as two leaves of a well-formed tree."""
    references = ["(S UNKNOWNINREFERENCE NN UNKNOWNINREFERENCE )S", "(S NN )S"]
    counts = count_sums("trees", ["(S NN )S", "(S NN )S"], references)
    assert counts["_f1_gold"] == counts["_f1_predicted"] == counts["_f1_matched"] == 1
    assert counts["_exact_total"] == 2


def test_graphs_are_counted_by_symbols_and_lines():
    """An unknown symbol is never right; F1 leaves out the graph whose reference has one."""
    references = ["( know :ARG0 i :ARG1 ( it :mod i ) )", "it", f"( {UNKNOWN} :mod i )"]
    hypotheses = ["( know :ARG0 i :ARG1 it )", "it", "( UNKNOWNINHYPOTHESIS :mod i )"]
    counts = count_sums("graphs", hypotheses, references)
    # 5 of 11 until the second bracket, 1 of 1, 4 of 5
    assert counts == {
        "_accuracy_matched": 10, "_accuracy_total": 17, "_exact_matched": 1, "_exact_total": 3,
        "_f1_matched": 4, "_f1_predicted": 4, "_f1_gold": 5,
    }  # fmt: skip


class WordByWord:
    """A generator that writes the targets of the batch."""

    def generate(self, models, sample):
        return [[{"tokens": target}] for target in sample["target"]]


@pytest.mark.parametrize(
    "joined, tags, line",
    [
        ("sentencepiece", ["O", "B-PER"], "O B-PER O"),
        ("sentencepiece", ["\u2581O", "\u2581B-PER"], "\u2581O \u2581B-PER \u2581O"),
        ("sentencepiece", ["\u2581B", "-PER", "\u2581O"], "\u2581O \u2581B -PER \u2581O"),
        ("wordpiece", ["O", "B-PER"], "O B-PER O"),
        ("letter", ["O", "B-PER"], "O B-PER O"),
        ("_EOW", ["O", "B-PER"], "O B-PER O"),
        ("@@ ", ["O", "B@@", "-PER"], "O B@@ -PER O"),
        (None, ["O", "B-PER"], "O B-PER O"),
    ],
)
def test_tags_that_nothing_has_cut_stay_apart(joined, tags, line, routed_task):
    """--eval-bleu-remove-bpe, for the sub-words of translations, would make them one symbol."""
    task, _ = routed_task("--target-kinds", "zz=tags", pairs="xx-yy,xx-zz")
    dictionaries = {"yy": dictionary_with("x", "y"), "zz": dictionary_with(*tags)}
    cfg = copy.deepcopy(task.cfg)
    cfg.eval_bleu_remove_bpe = joined
    scorer = TaskScores(cfg, dictionaries, {"xx-yy": "text", "xx-zz": "tags"})
    scorer.generators = {pair: WordByWord() for pair in scorer.kinds}
    for pair, text in {"xx-zz": line, "xx-yy": "x y"}.items():
        words = dictionaries[target_of(pair)].encode_line(text, add_if_not_exist=False)
        batch = {"net_input": {}, "target": words.long().unsqueeze(0)}
        written, references = scorer.texts(pair, batch)
        assert written == references
        if pair == "xx-zz":
            assert references == ["O B-PER O"]
        else:  # of a text as fairseq does it
            assert references == ["xy" if joined in BLANKS else "x y"]


def logged(steps, pair, kind):
    """What is shown after steps, each of which has the outputs of all workers."""
    with metrics.aggregate(new_root=True) as meters:
        for outputs in steps:
            log_scores(outputs, pair, kind)
    return meters.get_smoothed_values()


def test_scores_of_graphs_are_those_of_all_batches_and_workers():
    """Logged from sums, not as a mean of percentages; BLEU is not logged."""
    parts = ((["a b c", "( a"], ["a b c", "( b )"]), (["a"], ["a"]))  # one reference is a graph
    logs = []
    for hypotheses, references in parts:
        sums = count_sums("graphs", hypotheses, references)
        logs.append({f"en-amr:{name}": value for name, value in sums.items()})
    # symbols: 3 of 3, 1 of 3, 1 of 1; lines: 1 of 2, 1 of 1
    assert logged([logs], "en-amr", "graphs") == {
        "en-amr_accuracy": 71.43,
        "en-amr_exact": 66.67,
        "en-amr_f1": 100.0,
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_that_was_not_reached_has_no_scores(kind):
    """A TER of 0 would be the best there is."""
    zeros = {f"en-x:{name}": 0 for name in NAMES}
    assert logged([[zeros, zeros], [zeros]], "en-x", kind) == {}


def test_ter_is_that_of_all_batches():
    """The insertions into an empty reference count, although it alone has no TER."""
    zeros = {f"en-x:{name}": 0 for name in NAMES}
    empty = {**zeros, "en-x:_ter_edits": 2}
    full = {**zeros, "en-x:_ter_edits": 1, "en-x:_ter_length": 4}
    assert logged([[empty]], "en-x", "text") == {}
    assert logged([[empty], [zeros, full]], "en-x", "text") == {"en-x_ter": 75.0}
    # more edits than words: no percentage of anything
    assert logged([[empty], [empty, empty, full]], "en-x", "text") == {"en-x_ter": 175.0}


def test_references_without_an_entity_have_no_f1():
    """Whatever was predicted: the name is in all validations of a run or in none."""
    for hypothesis in ("O O", "B-PER O"):
        sums = count_sums("tags", [hypothesis], ["O O"])
        scores = logged([[{f"en-x:{name}": value for name, value in sums.items()}]], "en-x", "tags")
        assert set(scores) == {"en-x_accuracy", "en-x_exact"}


def reduced(task, steps, between=lambda: None, kind=CrossEntropyCriterion):
    """What a task shows after steps, each with a criterion's {pair: log}; ``between`` any two."""
    criterion = object.__new__(kind)
    with metrics.aggregate(new_root=True) as meters:
        for logs in steps:
            task.reduce_metrics([merge_logs(logs, task.pairs)], criterion)
            between()
    return meters.get_smoothed_values()


def test_the_mean_and_the_worst_bleu_are_of_all_texts(routed_task):
    task, _ = routed_task("--target-kinds", "zz=tags", pairs="xx-yy,xx-zz,zz-yy")
    reference, scorer = "the cat sat on the mat today", task.scorer()
    hypotheses = {"xx-yy": reference, "xx-zz": "no tags", "zz-yy": "the cat sat on a mat"}
    plain = {"loss": 2.0, "ntokens": 8, "nsentences": 1, "sample_size": 8}
    logs = {
        pair: {**plain, **scorer.sums(pair, [line], [reference])}
        for pair, line in hypotheses.items()
    }
    values = reduced(task, [logs])
    worst = sacrebleu.corpus_bleu([hypotheses["zz-yy"]], [[reference]]).score
    assert 1 < worst < 99 and values["xx-yy_bleu"] == pytest.approx(100)
    assert values["worst_bleu"] == values["zz-yy_bleu"] == pytest.approx(worst, abs=0.01)
    assert values["bleu"] == pytest.approx((100 + worst) / 2, abs=0.01)
    assert "xx-zz_bleu" not in values


def test_accuracy_is_that_of_the_search_beside_that_of_the_criterion(routed_task):
    """--report-accuracy logs one of the same name, in which the words before are the reference's.

    Here it is 75%, and the search has one of two tags right.
    """
    task, _ = routed_task("--target-kinds", "zz=tags", pairs="xx-yy,xx-zz")
    log = {"loss": 2.0, "nll_loss": 2.0, "ntokens": 4, "nsentences": 1, "sample_size": 4}
    log.update(n_correct=3, total=4)
    lines = {"xx-yy": ("the cat", "the cat"), "xx-zz": ("O B-PER", "O O")}
    scorer = task.scorer()
    logs = {pair: {**log, **scorer.sums(pair, [a], [b])} for pair, (a, b) in lines.items()}
    values = reduced(task, [logs], kind=LabelSmoothedCrossEntropyCriterion)
    assert (values["xx-zz_accuracy"], values["xx-zz_exact"]) == (50.0, 0.0)
    # a text has no token accuracy, and an update no search
    assert values["xx-yy_accuracy"] == values["accuracy"] == 75.0
    trained = reduced(task, [dict.fromkeys(lines, log)], kind=LabelSmoothedCrossEntropyCriterion)
    assert trained["xx-zz_accuracy"] == 75.0


def test_weights_are_shown_as_they_are_and_likelihoods_as_means(routed_task):
    task, _ = routed_task(pairs="xx-yy,xx-zz")
    log = {"loss": 2.0, "ntokens": 8, "nsentences": 2, "sample_size": 8, "_references": 2}
    logs = {"xx-yy": {**log, "_log_p": -4.0}, "xx-zz": {**log, "_log_p": -10.0}}
    halve = partial(task.run_state.more.update, weight={"xx-zz": 0.5})
    values = reduced(task, [logs, logs], between=halve)
    assert (values["xx-yy_weight"], values["xx-zz_weight"]) == (1.0, 0.5)  # the newest, no mean
    likelihoods = [values[f"{pair}log_likelihood"] for pair in ("xx-yy_", "xx-zz_", "")]
    assert likelihoods == [-2.0, -5.0, -3.5]


def test_streams_of_synthetic_pairs_are_shown_where_they_were_trained(routed_task):
    """Not in a validation, whose line would have their perplexity as null."""
    task, _ = routed_task(pairs="xx-yy,xx-zz")
    task.synthetic = ["xx-yy@bt"]
    log = {"loss": 2.0, "ntokens": 8, "nsentences": 2, "sample_size": 8}
    criterion = object.__new__(CrossEntropyCriterion)
    shown = []
    for trained in ([], task.synthetic):
        names = [*task.pairs, *trained]
        with metrics.aggregate(new_root=True) as meters:
            task.reduce_metrics([merge_logs(dict.fromkeys(names, log), names)], criterion)
        values = meters.get_smoothed_values()
        shown.append({name for name in values if name.startswith("xx-yy@bt_")})
    assert shown == [set(), {"xx-yy@bt_loss", "xx-yy@bt_ppl"}]
