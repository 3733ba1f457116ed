"""Training, scoring and translating several tasks from one checkpoint."""

import random
import re
import shutil

import pytest
import torch
from common import inprocess
from fairseq import checkpoint_utils
from fairseq.data import indexed_dataset
from sacrebleu.metrics import TER
from streams.support import Optimizer, check_objective, first_update

from fairseq_ext.compat.user_errors import OptionError
from fairseq_ext.routed import scores
from fairseq_ext.streams import patience

TASK = ["--task", "routed_mtl"]
THREE = ["--lang-pairs", "xx-yy,xx-ner,xx-parse", "--main-pair", "xx-yy"]
# one task of every kind
FOUR = ["--lang-pairs", "xx-yy,xx-ner,xx-parse,xx-amr", "--main-pair", "xx-yy"]
AUX = ("ner", "parse", "amr")
SMALL = ["--embed-dim", 12, "--hidden-size", 10, "--attention-size", 12, "--dropout", 0.1]
OPTIMISE = ["--optimizer", "adam", "--lr", 0.01, "--clip-norm", 1, "--seed", 1]
EVALUATE = ["--eval-bleu", "--eval-bleu-args", '{"beam": 1, "max_len_a": 1, "max_len_b": 8}']
F1 = {"ner": scores.ner_f1, "parse": scores.bracket_f1, "amr": scores.triple_f1}


def aux_line(lang, words):
    """Tags, a tree or a graph of a sentence of the toy corpus: an. is a person, av. a verb."""
    if lang == "ner":
        return " ".join("B-PER" if word.startswith("an") else "O" for word in words)
    if lang == "amr":
        agent, verb, patient, *time = words
        more = [":time", *time] if time else []
        return " ".join(["(", verb, ":ARG0", agent, ":ARG1", patient, *more, ")"])
    first, verb, *rest = ("NN" if word.startswith("an") else "VB" for word in words)
    return " ".join(["(S (NP", first, ")NP (VP", verb, *rest, ")VP )S"])


@pytest.fixture(scope="module")
def data(toy_corpus, tmp_path_factory, run):
    """Binarised xx-yy, and xx-ner, xx-parse and xx-amr made from the words of xx."""
    folder = tmp_path_factory.mktemp("tasks")
    for split in toy_corpus.sizes:
        for lang in ("xx", "yy"):
            shutil.copy(toy_corpus.text / f"{split}.{lang}", folder)
        lines = (folder / f"{split}.xx").read_text().splitlines()
        for lang in AUX:
            text = "".join(aux_line(lang, line.split()) + "\n" for line in lines)
            (folder / f"{split}.{lang}").write_text(text)
    for target in ("yy", *AUX):
        prefixes = [f"--{split}pref={folder / split}" for split in toy_corpus.sizes]
        run(
            "fairseq-preprocess", "-s", "xx", "-t", target, *prefixes, "--destdir", folder / "bin",
            "--srcdict", toy_corpus.dictionary,
        )  # fmt: skip
    return folder / "bin"


def train(data, folder, updates, *flags, arch="routed_gru", pairs=THREE, sizes=SMALL):
    return inprocess.train(
        data, *TASK, "--arch", arch, *sizes, *OPTIMISE, *pairs, "--max-update", updates,
        "--save-dir", folder, "--no-epoch-checkpoints", "--no-progress-bar", *flags,
    )  # fmt: skip


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """(folder with a checkpoint after a few updates on four tasks, records of the log)."""
    folder = tmp_path_factory.mktemp("routed")
    return folder, train(data, folder, 60, "--batch-size", 24, *EVALUATE, pairs=FOUR)


def generate(data, checkpoint, target, *flags):
    words = [*TASK, "-s", "xx", "-t", target, "--path", checkpoint, "--beam", 3, *flags]
    return inprocess.generate(data, *words)


def test_every_task_has_its_scores(trained):
    folder, records = trained
    last = [record for record in records if "valid_loss" in record][-1]
    text, both = {"bleu", "ter"}, {"accuracy", "exact", "f1"}
    scores = {"xx-yy": text, "xx-ner": both, "xx-parse": both, "xx-amr": both}
    for pair, names in scores.items():
        for score in ("loss", "ppl", "weight", *names):
            assert last[f"valid_{pair}_{score}"] >= 0, (pair, score)
        assert not {f"valid_{pair}_{score}" for score in (text | both) - names} & set(last)
    assert last["valid_bleu"] == last["valid_worst_bleu"] == last["valid_xx-yy_bleu"]
    assert last["valid_xx-ner_accuracy"] > 40, "two tags to choose from"
    assert any(record.get("train_xx-yy_weight") == 1.0 for record in records)


def test_scores_of_validation_are_those_of_the_translations(trained, data):
    """Counted again from what fairseq-generate prints for the same sentences."""
    folder, records = trained
    last = [record for record in records if "valid_loss" in record][-1]
    flags = ["--gen-subset", "valid", "--beam", 1, "--max-len-a", 1, "--max-len-b", 8]

    def lines(target):
        output = generate(data, folder / "checkpoint_last.pt", target, *flags)
        hypotheses, references = inprocess.hypotheses(output), inprocess.references(output)
        return [hypotheses[number][0][1] for number in references], list(references.values())

    def check(name, expected):
        assert last[f"valid_xx-{name}"] == pytest.approx(expected, abs=0.01)

    hypotheses, references = lines("yy")
    check("yy_ter", TER().corpus_score(hypotheses, [references]).score)
    for target in AUX:
        both = lines(target)
        exact = sum(hypothesis == reference for hypothesis, reference in zip(*both))
        check(f"{target}_exact", 100 * exact / len(both[0]))
        check(f"{target}_accuracy", scores.accuracy(scores.token_accuracy(*both)))
        assert last[f"valid_xx-{target}_accuracy"] > 0
        if target in F1:
            check(f"{target}_f1", scores.f1(F1[target](*both)))


@pytest.mark.parametrize("target", ["yy", "parse"])
def test_scoring_gives_the_scores_of_beam_search(trained, data, tmp_path, target, run):
    """Teacher-forced scores of the hypotheses are those that the search found step by step."""
    checkpoint = trained[0] / "checkpoint_last.pt"
    flags = ["--max-len-a", 1, "--max-len-b", 5]
    hypotheses = inprocess.hypotheses(generate(data, checkpoint, target, *flags))
    text = tmp_path / "text"
    text.mkdir()
    shutil.copy(data.parent / "test.xx", text)
    lines = [hypotheses[number][0][1] for number in range(len(hypotheses))]
    (text / f"test.{target}").write_text("".join(line + "\n" for line in lines))
    run(
        "fairseq-preprocess", "-s", "xx", "-t", target, "--testpref", text / "test",
        "--destdir", tmp_path / "bin", "--srcdict", data / "dict.xx.txt",
        "--tgtdict", data / f"dict.{target}.txt",
    )  # fmt: skip
    for lang in {"yy", *AUX} - {target}:
        shutil.copy(data / f"dict.{lang}.txt", tmp_path / "bin")
    words = ["--score-reference", "--batch-size", 5]
    scored = inprocess.hypotheses(generate(tmp_path / "bin", checkpoint, target, *words))
    ended = 0
    for number, nbest in hypotheses.items():
        score, line = nbest[0]
        if abs(scored[number][0][0] - score) < 2e-4:
            ended += 1
        else:  # a hypothesis that was cut off is scored without its end
            assert len(line.split()) >= 7
    assert ended >= len(hypotheses) // 2


def test_interactive_puts_the_token_first_too(trained, data):
    checkpoint = trained[0] / "checkpoint_last.pt"
    for target in ("yy", "ner"):
        flags = [*TASK, "-s", "xx", "-t", target, "--path", checkpoint, "--beam", 3]
        output = inprocess.interactive(data, *flags, "--input", data.parent / "test.xx")
        whole = inprocess.hypotheses(generate(data, checkpoint, target))
        hypotheses = inprocess.hypotheses(output)
        assert [hypotheses[n][0] for n in range(5)] == [
            (pytest.approx(whole[n][0][0], abs=1e-4), whole[n][0][1]) for n in range(5)
        ]
        sentences = (data.parent / "test.xx").read_text().splitlines()
        for lines in (output, generate(data, checkpoint, target)):  # without the token
            printed = dict(re.findall(r"^S-(\d+)\t(.*)$", lines, re.MULTILINE))
            assert printed == {str(n): line for n, line in enumerate(sentences)}


def test_validate_takes_a_direction(trained, data):
    records = inprocess.validate(
        data, *TASK, "-s", "xx", "-t", "ner", "--path", trained[0] / "checkpoint_last.pt",
        "--batch-size", 8,
    )  # fmt: skip
    assert records[-1]["valid_xx-ner_loss"] > 0


@pytest.mark.parametrize("arch", ["mtl_full_gru", "mtl_partial_gru"])
def test_baselines_train_and_translate(data, tmp_path, arch):
    pairs = ["--lang-pairs", "xx-yy,xx-ner", "--main-pair", "xx-yy"]
    records = train(data, tmp_path, 4, "--batch-size", 24, arch=arch, pairs=pairs)
    assert records[-1]["train_xx-ner_loss"] > 0
    assert inprocess.hypotheses(generate(data, tmp_path / "checkpoint_last.pt", "ner"))


def test_a_single_task(data, tmp_path):
    train(data, tmp_path, 3, "--batch-size", 24, pairs=["-s", "xx", "-t", "yy"])
    assert inprocess.hypotheses(generate(data, tmp_path / "checkpoint_last.pt", "yy"))


class Script:
    """In place of the losses: the tagging task alone stalls, at every validation."""

    @staticmethod
    def is_stalled(state, pair, score, maximise, patience):
        assert score > 0 and not maximise and patience == 1
        return pair == "xx-ner"


def ends(folder):
    checkpoint = checkpoint_utils.torch.load(folder / "checkpoint_last.pt", weights_only=True)
    return checkpoint["extra_state"]["train_iterator"], checkpoint["model"]


def test_a_resumed_run_is_the_uninterrupted_run(data, tmp_path, monkeypatch):
    """Stopped in mid-epoch after a weight was halved: the same to the last bit, with dropout."""
    monkeypatch.setattr(patience, "is_stalled", Script.is_stalled)
    flags = ["--batch-size", 48, "--save-interval-updates", 7, "--task-patience", 1]
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    records = train(data, whole, 12, *flags)
    weights = [record["valid_xx-ner_weight"] for record in records if "valid_loss" in record]
    assert weights[:3] == [1.0, 0.5, 0.25]
    resumed.mkdir()
    (middle,) = whole.glob("checkpoint_*_7.pt")
    shutil.copy(middle, resumed / "checkpoint_last.pt")
    train(data, resumed, 12, *flags)
    (position, model), again = ends(whole), ends(resumed)
    assert position == again[0]
    assert position["streams"]["more"]["weight"]["xx-ner"] < 0.25
    assert "xx-yy" not in position["streams"]["more"]["weight"]
    assert all(torch.equal(model[name], again[1][name]) for name in model)
    plain = tmp_path / "plain"
    train(data, plain, 12, *flags[:-2])
    assert any(not torch.equal(model[name], tensor) for name, tensor in ends(plain)[1].items())


def test_the_real_loss_decides(data, tmp_path):
    """Nothing is learnt with a learning rate of 0: the third validation halves every weight."""
    flags = ["--batch-size", 60, "--lr", 0, "--task-patience", 2, "--save-interval", 100]
    train(data, tmp_path, 12, *flags)
    streams = ends(tmp_path)[0]["streams"]
    assert streams["left"] == {}
    assert streams["more"]["weight"] == {"xx-yy": 0.5, "xx-ner": 0.5, "xx-parse": 0.5}


def test_tasks_leave_by_the_score_that_they_have(data, tmp_path):
    """--pair-patience with --eval-bleu: BLEU for text, the loss for tags and trees."""
    flags = ["--batch-size", 60, "--lr", 0, "--pair-patience", 1]
    train(data, tmp_path, 12, *flags, *EVALUATE)
    streams = ends(tmp_path)[0]["streams"]
    assert streams["left"] == {"xx-yy": 3, "xx-ner": 3, "xx-parse": 3}
    assert streams["best"]["xx-yy"] < 100 and streams["best"]["xx-ner"] > 0


def test_the_objective_is_the_weighted_sum_of_means(data):
    """gamma_m times the criterion's mean over the task's minibatch; the update divides by one."""
    arguments = [data, *TASK, *THREE, "--arch", "routed_gru", *SMALL, "--dropout", 0]
    arguments += ["--task-gamma", "xx-ner=0.25", "--schedule", "joint"]
    task, model, criterion, sample = first_update(arguments, 9)
    task.run_state.more["weight"] = {"xx-parse": 0.5}
    weights = {"xx-yy": 1.0, "xx-ner": 0.25, "xx-parse": 0.5}
    assert task.task_weights() == weights and set(sample) == set(weights)
    objective = 0.0
    for pair, part in sample.items():
        loss, size, _ = criterion(model, part)
        assert size == part["ntokens"] > 9
        objective = objective + weights[pair] * loss / size
    size, log = check_objective(task, model, criterion, sample, objective)
    assert size == pytest.approx(1)
    assert log["xx-ner:sample_size"] == sample["xx-ner"]["ntokens"]
    # two tasks of three, as in the paper's schedule; then of a worker without a batch of its own
    two = {pair: sample[pair] for pair in ("xx-yy", "xx-ner")}
    for is_ignored in (False, True):
        model.zero_grad(set_to_none=True)
        loss, size, _ = task.train_step(two, model, criterion, Optimizer, 0, is_ignored)
        gradient = sum(p.grad.abs().sum() for p in model.parameters() if p.grad is not None)
        assert size == pytest.approx(1) and (loss == 0) == (gradient == 0) == is_ignored


def test_a_pair_that_was_not_validated_is_not_judged(data, tmp_path):
    """--max-valid-steps 2: of three pairs with a batch each, two are looked at."""
    flags = ["--batch-size", 60, "--lr", 0, "--task-patience", 2, "--save-interval", 100]
    train(data, tmp_path, 12, *flags, "--max-valid-steps", 2)
    assert ends(tmp_path)[0]["streams"]["more"]["weight"] == {"xx-yy": 0.5, "xx-ner": 0.5}


def test_a_task_that_was_not_validated_chooses_no_checkpoint(data, tmp_path):
    """Its scores would be 0, and the first checkpoint the best one for ever."""
    flags = ["--batch-size", 60, "--max-valid-steps", 1, *EVALUATE]
    metric = ["--best-checkpoint-metric", "xx-parse_f1"]
    with pytest.raises(OptionError, match="xx-parse_f1 .* --max-valid-steps .* xx-yy_bleu"):
        train(data, tmp_path, 2, *flags, *metric)
    assert not list(tmp_path.glob("*.pt"))


def test_a_target_that_is_not_there_is_named(data, tmp_path):
    shutil.copytree(data, tmp_path / "data")
    for path in (tmp_path / "data").glob("train.xx-ner.ner.*"):
        path.unlink()
    with pytest.raises(FileNotFoundError, match="train of the pair xx-ner has no sentences of ner"):
        train(tmp_path / "data", tmp_path / "run", 2, "--batch-size", 24)


@pytest.mark.parametrize("kind", ["mmap", "lazy"])
@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_a_split_without_a_sentence_is_named(trained, data, tmp_path, split, kind):
    """Of a helper in training, and at inference; fairseq-preprocess writes it without complaint."""
    folder = tmp_path / "data"
    shutil.copytree(data, folder)
    for lang in ("xx", "ner"):
        path = str(folder / f"{split}.xx-ner.{lang}")
        indexed_dataset.make_builder(f"{path}.bin", kind, 20).finalize(f"{path}.idx")
    with pytest.raises(ValueError) as caught:
        if split == "test":
            generate(folder, trained[0] / "checkpoint_last.pt", "ner")
        else:
            train(folder, tmp_path / "run", 2, "--batch-size", 24)
    assert f"{folder}: {split} of the pair xx-ner holds no sentence" in str(caught.value)


def test_data_that_are_not_there_are_named(data, tmp_path):
    pairs = ["--lang-pairs", "xx-yy,xx-zz", "--main-pair", "xx-yy"]
    with pytest.raises(ValueError, match="no dictionary for language 'zz'"):
        train(data, tmp_path, 2, "--batch-size", 24, pairs=pairs)
    pairs = ["--lang-pairs", "xx-yy,ner-yy", "--main-pair", "xx-yy"]
    with pytest.raises(FileNotFoundError, match=r"no (train|valid)\.ner-yy or \w+\.yy-ner"):
        train(data, tmp_path, 2, "--batch-size", 24, pairs=pairs)


def test_directions_that_are_no_task_are_named(trained, data):
    words = [*TASK, "-s", "yy", "-t", "xx", "--path", trained[0] / "checkpoint_last.pt"]
    with pytest.raises(
        ValueError, match="the checkpoint translates xx-yy, xx-ner, xx-parse, xx-amr"
    ):
        inprocess.generate(data, *words)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["routed_gru_tiny", "mtl_full_gru_tiny", "mtl_partial_gru_tiny"])
def test_two_tasks_are_learnt(run, tmp_path, arch):
    """Sentences come out turned round in one task and tagged in the other."""
    rng = random.Random(4)
    for split, size in (("train", 1500), ("valid", 50), ("test", 100)):
        lines = {"xx": [], "yy": [], "ner": []}
        for _ in range(size):
            words = [rng.randrange(12) for _ in range(rng.randint(1, 6))]
            lines["xx"].append(" ".join(f"a{word}" for word in words))
            lines["yy"].append(" ".join(f"b{word}" for word in reversed(words)))
            lines["ner"].append(" ".join("B-PER" if word < 4 else "O" for word in words))
        for lang, sentences in lines.items():
            (tmp_path / f"{split}.{lang}").write_text("".join(line + "\n" for line in sentences))
    (tmp_path / "dict.txt").write_text("".join(f"a{word} 1\n" for word in range(12)))
    for target in ("yy", "ner"):
        prefixes = [f"--{split}pref={tmp_path / split}" for split in ("train", "valid", "test")]
        run(
            "fairseq-preprocess", "-s", "xx", "-t", target, *prefixes,
            "--srcdict", tmp_path / "dict.txt", "--destdir", tmp_path / "bin",
        )  # fmt: skip
    pairs = ["--lang-pairs", "xx-yy,xx-ner", "--main-pair", "xx-yy"]
    train(
        tmp_path / "bin", tmp_path / "run", 1800, "--batch-size", 50, "--disable-validation",
        "--lr-scheduler", "polynomial_decay", "--total-num-update", 1800,
        arch=arch, pairs=pairs, sizes=[],
    )  # fmt: skip
    for target in ("yy", "ner"):
        output = generate(tmp_path / "bin", tmp_path / "run/checkpoint_last.pt", target)
        hypotheses, references = inprocess.hypotheses(output), inprocess.references(output)
        right = sum(hypotheses[number][0][1] == text for number, text in references.items())
        assert right >= 90, f"{target}: {right} of {len(references)}"
