"""Error rates, BLEU and CIDEr-D while a model trains: against loops, and in fairseq's commands."""

import math
import random

import numpy as np
import pytest
import sacrebleu
import torch
from common import inprocess
from fairseq import options, tasks
from fairseq.data import ListDataset
from fairseq.logging import metrics as fairseq_metrics
from twin import recordings, test_captions_task, test_speech_task

from fairseq_ext.twin import metrics
from fairseq_ext.twin.captions.dataset import CaptionDataset

WORDS = "abcd"


def distance_by_loops(hypothesis, reference):
    """Levenshtein's table, cell by cell."""
    table = np.zeros((len(hypothesis) + 1, len(reference) + 1))
    for i in range(len(hypothesis) + 1):
        for j in range(len(reference) + 1):
            if not i or not j:
                table[i, j] = i + j
                continue
            changed = hypothesis[i - 1] != reference[j - 1]
            table[i, j] = min(
                table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + changed
            )
    return table[-1, -1]


def test_edit_distance():
    rng = random.Random(1)
    for _ in range(200):
        hypothesis, reference = ("".join(rng.choices("abc", k=rng.randint(0, 7))) for _ in range(2))
        assert metrics.edit_distance(hypothesis, reference) == distance_by_loops(
            hypothesis, reference
        )
    assert metrics.edit_distance("kitten", "sitting") == 3


def lines(rng, count):
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 7))) for _ in range(count)]


def times(text, gram):
    """How often an n-gram is in a text."""
    words = text.split()
    return sum(tuple(words[k : k + len(gram)]) == gram for k in range(len(words)))


def all_grams(texts, order):
    grams = set()
    for words in map(str.split, texts):
        grams |= {tuple(words[k : k + order]) for k in range(len(words) - order + 1)}
    return sorted(grams)


def sim(caption, line, line_words, references, order):
    """All n-grams as columns of an array; the equations of the module."""
    grams = all_grams([*line_words, *sum(references, [])], order)
    count = np.array([[times(text, gram) for gram in grams] for text in (caption, line)])
    seen = [sum(any(times(text, gram) for text in group) for group in references) for gram in grams]
    g_c, g_s = count * (np.log(len(references)) - np.log(np.maximum(1, seen)))
    norm = np.linalg.norm(g_c) * np.linalg.norm(g_s)
    gap = len(caption.split()) - len(line.split())
    return (np.minimum(g_c, g_s) * g_s).sum() / norm * math.exp(-(gap**2) / 72) if norm else 0.0


def cider_by_arrays(lines, references):
    values = [
        np.mean(
            [sim(caption, line, lines, references, n) for line in several for n in (1, 2, 3, 4)]
        )
        for caption, several in zip(lines, references)
    ]
    return 1000 * np.mean(values)


def test_cider_against_arrays():
    rng = random.Random(2)
    references = [lines(rng, rng.randint(1, 3)) for _ in range(5)]
    captions = [rng.choice([*several, *lines(rng, 1)]) for several in references]
    sums = metrics.Cider(references).sums(captions, references)
    value = sums["_cider_sum"] / sums["_cider_images"]
    assert value == pytest.approx(cider_by_arrays(captions, references), rel=1e-9) and value > 10


def test_a_caption_that_is_its_only_reference():
    """Has 1000 where all n-grams exist; a caption of other words has 0."""
    references = [["a b c d"], ["b a d c"], ["e f g h"]]
    cider = metrics.Cider(references)
    assert cider.score("e f g h", references[2]) == pytest.approx(1000)
    assert cider.score("x y z", references[2]) == 0


def test_bleu_of_several_references():
    rng = random.Random(3)
    references = [lines(rng, 1 + number % 3) for number in range(6)]
    hypotheses = [several[-1][:-1] + "a" for several in references]
    parts = [metrics.bleu_sums(hypotheses[k : k + 2], references[k : k + 2]) for k in (0, 2, 4)]
    total = {name: sum(part[name] for part in parts) for name in parts[0]}
    padded = [
        [several[n] if n < len(several) else None for several in references] for n in range(3)
    ]
    whole = sacrebleu.metrics.BLEU(tokenize="none", force=True).corpus_score(hypotheses, padded)
    assert [total[f"_bleu_counts_{n}"] for n in range(4)] == whole.counts
    assert [total[f"_bleu_totals_{n}"] for n in range(4)] == whole.totals
    assert (total["_bleu_sys_len"], total["_bleu_ref_len"]) == (whole.sys_len, whole.ref_len)
    assert set(metrics.bleu_sums([], []).values()) <= {0}


def shown(log, *steps):
    """What is logged after steps, each of which has the sums of all workers."""
    with fairseq_metrics.aggregate(new_root=True) as meters:
        for logs in steps:
            log(list(logs))
    return meters.get_smoothed_values()


def test_what_was_not_measured_is_not_logged():
    """Batches without an image's first caption, references without a word: 0 would be a score."""
    unscored = metrics.bleu_sums([], [])
    scored = metrics.bleu_sums(["a b c d"], [["a b c d"]])
    assert shown(metrics.log_bleu, [unscored]) == {}
    assert shown(metrics.log_bleu, [unscored, {}], [unscored, scored]) == {"bleu": 100.0}
    none, image = metrics.Cider([["a"]]).sums([], []), {"_cider_sum": 5.0, "_cider_images": 2}
    assert shown(metrics.log_cider, [none]) == {}
    assert shown(metrics.log_cider, [none], [none, image]) == {"cider": 2.5}
    wordless, right = metrics.error_sums(["a"], [""]), metrics.error_sums(["b c"], ["b c"])
    assert shown(metrics.log_error_rates, [wordless]) == {}
    # an error that was counted before the first word of a reference is not forgotten
    rates = shown(metrics.log_error_rates, [wordless], [right])
    assert rates == {"cer": pytest.approx(100 / 3, abs=0.01), "wer": 50.0}


def best(records, name):
    return [record[name] for record in records if name in record]


def test_error_rates_choose_the_checkpoint(tmp_path):
    """Equal to those of what fairseq-generate prints; not changed by the batch size."""
    data = recordings.prepared(tmp_path, {"train": 8, "valid": 5})
    sizes = [word for entry in test_speech_task.SIZES.items() for word in entry]
    search = ["--eval-wer", "--eval-wer-args", '{"beam": 2, "max_len_b": 6}']
    words = [data, "--task", "transcription"]
    records = inprocess.train(
        *[*words, *search, "--arch", "twin_speech_lstm", *sizes, "--criterion", "twin"],
        *["--optimizer", "adam", "--lr", 0.02, "--max-tokens", 300, "--max-epoch", 2],
        *["--best-checkpoint-metric", "cer", "--save-dir", tmp_path / "run"],
    )
    values = best(records, "valid_cer")
    assert len(values) == 2
    assert best(records, "valid_best_cer")[-1] == min(values)
    path = tmp_path / "run" / "checkpoint_best.pt"
    output = inprocess.generate(
        *[*words, "--path", path, "--gen-subset", "valid", "--beam", 2, "--max-len-b", 6]
    )
    hypotheses, truth = inprocess.hypotheses(output), inprocess.references(output)
    # T- lines are texts, H- lines letters with a blank between
    pairs = [
        (hypotheses[n][0][1].replace(" ", "").replace("\u2581", " "), text)
        for n, text in truth.items()
    ]
    for name, cut in (("cer", list), ("wer", str.split)):
        errors = sum(distance_by_loops(cut(first), cut(second)) for first, second in pairs)
        rate = 100 * errors / sum(len(cut(two)) for _, two in pairs)
        for size in (2, 5):
            (record,) = inprocess.validate(*words, *search, "--path", path, "--batch-size", size)
            assert record[f"valid_{name}"] == pytest.approx(rate, abs=0.01)


def test_captions_are_scored(tmp_path):
    data = test_captions_task.prepared(tmp_path, {"train": 12, "valid": 6})
    search = ["--eval-bleu", "--eval-cider", "--eval-args", '{"beam": 2, "max_len_b": 5}']
    words = [data, "--task", "image_captioning"]
    folder = tmp_path / "run"
    more = ["--max-epoch", 2, "--best-checkpoint-metric", "cider"]
    more += ["--maximize-best-checkpoint-metric"]
    records = test_captions_task.train(data, folder, "twin_caption_lstm", *search, *more)
    assert len(best(records, "valid_bleu")) == len(best(records, "valid_cider")) == 2
    path = folder / "checkpoint_last.pt"
    subset = ["--gen-subset", "valid", "--beam", 2, "--max-len-b", 5]
    output = inprocess.generate(*words, "--path", path, *subset, "--max-tokens", 100)
    hypotheses, truth = inprocess.hypotheses(output), inprocess.references(output)
    names = (data / "valid.features").read_text().split()
    images = {name: [n for n in truth if names[n] == name] for name in names}
    lines_found = [hypotheses[numbers[0]][0][1] for numbers in images.values()]
    references = [[truth[n] for n in sorted(numbers)] for numbers in images.values()]
    assert any(len(several) > 1 for several in references)
    padded = [
        [several[n] if n < len(several) else None for several in references] for n in range(2)
    ]
    bleu = sacrebleu.metrics.BLEU(tokenize="none", force=True).corpus_score(lines_found, padded)
    cider = cider_by_arrays(lines_found, references)
    for size in (1, 3):
        record = inprocess.validate(*words, *search, "--path", path, "--batch-size", size)[-1]
        assert record["valid_bleu"] == pytest.approx(bleu.score, abs=0.02)
        assert record["valid_cider"] == pytest.approx(cider, abs=0.02)


@pytest.mark.parametrize("name", ["transcription", "image_captioning"])
def test_the_best_hypothesis_is_scored_and_unknown_symbols_are_errors(name, tmp_path, monkeypatch):
    """Two unknown symbols may stand for different ones."""
    (tmp_path / "dict.txt").write_text("a 1\nb 1\n", encoding="utf-8")
    (tmp_path / "config.yaml").write_text("vocab_filename: dict.txt\n", encoding="utf-8")
    words = [tmp_path, "--task", name, "--eval-wer" if name == "transcription" else "--eval-bleu"]
    cfg = inprocess.configuration(options.get_training_parser(), [*words, "--arch", "transformer"])
    task = tasks.setup_task(cfg.task)
    task.generator, task.bpe, names = None, None, task.target_dictionary
    a, b, unknown, end = names.index("a"), names.index("b"), names.unk(), names.eos()
    nbest = [{"tokens": torch.tensor(row)} for row in ([a, unknown, end], [b, b, b, end])]
    monkeypatch.setattr(task, "inference_step", lambda *_: [nbest])
    captions = ListDataset([torch.tensor([a, unknown, end])], [3])
    dataset = CaptionDataset(["1.npy"], names, captions)
    dataset.read_references(False)
    sample = {"target": [captions[0]], "references": [dataset.references[0]]}
    log = task.valid_step(sample, torch.nn.Module(), lambda *_: (0.0, 1, {}))[2]
    if name == "transcription":
        assert (log["_wer_errors"], log["_wer_length"]) == (1, 2)
        assert (log["_cer_errors"], log["_cer_length"]) == (1, 3)
    else:
        assert [log[f"_bleu_counts_{order}"] for order in range(2)] == [1, 0]
        assert (log["_bleu_sys_len"], log["_bleu_ref_len"]) == (2, 2)


@pytest.mark.parametrize(
    "words, message",
    [
        (["--eval-bleu", "--eval-args", "[1]"], "--eval-args '\\[1\\]': must be a JSON object"),
        (["--eval-bleu", "--eval-args", '{"bem": 2}'], "--eval-args: 'bem' .* mean beam"),
        (["--eval-cider", "--eval-args", '{"prefix_size": 2}'], "--eval-args: 'prefix_size' is 2"),
        (["--eval-bleu", "--eval-args", '{"beam": 0}'], "--eval-args: --beam 0 is not allowed"),
        (["--eval-args", '{"beam": 2}'], "--eval-args .*: is of --eval-bleu and --eval-cider"),
    ],
)
def test_bad_options_name_themselves(tmp_path, words, message):
    (tmp_path / "dict.txt").write_text("cat 1\n", encoding="utf-8")
    task = test_captions_task.task_of(tmp_path, *words)
    words = [tmp_path, "--task", "image_captioning", "--arch", "twin_caption_lstm"]
    cfg = inprocess.configuration(test_captions_task.options.get_training_parser(), words)
    with pytest.raises(ValueError, match=message):
        task.build_model(cfg.model)
