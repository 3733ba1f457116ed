"""Dual supervised learning through fairseq's commands; two stacks in one run; bad input."""

import argparse
import math
import shutil

import pytest
import torch
from common.inprocess import (
    configuration,
    generate,
    hypotheses,
    interactive,
    parameters,
    train,
    validate,
)
from dual.supervised import couple, criterion_of
from fairseq import checkpoint_utils, options, tasks

from fairseq_ext.dual.supervised.criterion import DualSupervisedCriterion
from fairseq_ext.dual.supervised.marginals import Marginals

FEW = ("--optimizer", "adam", "--lr", 0.01, "--max-tokens", 400, "--no-epoch-checkpoints")
SIZES = ("--embed-dim", 16, "--ffn-embed-dim", 16, "--attention-heads", 2, "--layers", 1)
DUAL = ("--arch", "dual_transformer", *SIZES, "--share-all-embeddings")
STACK = ["--share-all-embeddings", "--dropout", 0.1]
for _side in ("encoder", "decoder"):
    STACK += [f"--{_side}-embed-dim", 16, f"--{_side}-ffn-embed-dim", 16]
    STACK += [f"--{_side}-layers", 1, f"--{_side}-attention-heads", 2]
STACKS = ("--arch", "dual_supervised_transformer", *STACK)
LMS = {
    "xx": ("gru_lm", "--embed-dim", 8, "--hidden-size", 8),
    "yy": ("transformer_lm", "--decoder-embed-dim", 8, "--decoder-ffn-embed-dim", 8)
    + ("--decoder-layers", 1, "--decoder-attention-heads", 2, "--share-decoder-input-output-embed"),
}


def language_data(two, folder, lang):
    """One side of the binarised pairs as data of the task language_modeling."""
    folder.mkdir()
    shutil.copy(two / f"dict.{lang}.txt", folder / "dict.txt")
    for split in ("train", "valid"):
        for ending in ("bin", "idx"):
            shutil.copy(two / f"{split}.xx-yy.{lang}.{ending}", folder / f"{split}.{ending}")
    return folder


class Runs:
    """Language models of both languages and what is trained with them, in the tests' process."""

    def __init__(self, folder, two):
        self.folder, self.two, self.paths, self.logs = folder, two, {}, {}
        for lang, arch in LMS.items():
            data = language_data(two, folder / f"text.{lang}", lang)
            words = [data, "--task", "language_modeling", "--arch", *arch, *FEW]
            words += ["--sample-break-mode", "eos", "--save-dir", folder / f"lm.{lang}"]
            self.logs[lang] = train(*words, "--max-update", 15)
            self.paths[lang] = folder / f"lm.{lang}" / "checkpoint_last.pt"

    def model_paths(self, **changes):
        paths = {**self.paths, **changes}
        return ",".join(f"{lang}={path}" for lang, path in paths.items() if path)

    def words(self, *more, model=DUAL):
        words = [self.two, "--task", "dual_translation", "-s", "xx", "-t", "yy", *model, *FEW]
        return [*words, "--criterion", "dual_supervised", *more]

    def build(self, *more, **changes):
        """(task, criterion) that fairseq-train would begin with."""
        words = self.words("--language-models", self.model_paths(**changes), *more)
        cfg = configuration(options.get_training_parser(), words)
        task = tasks.setup_task(cfg.task)
        task.build_model(cfg.model)
        return task, task.build_criterion(cfg.criterion)


@pytest.fixture(scope="module")
def runs(tmp_path_factory, toy_corpus):
    return Runs(tmp_path_factory.mktemp("dsl"), toy_corpus.two)


# ---------------------------------------------------------------- the language models


@pytest.mark.parametrize("lang", LMS)
def test_marginals_are_what_the_language_model_was_validated_with(runs, lang):
    """On the same sentences: the same bits per token as its training logged last."""
    task, criterion = runs.build()
    task.load_dataset("valid")
    dataset = task.datasets["valid"].datasets["xx-yy" if lang == "yy" else "yy-xx"]
    batch = dataset.collater([dataset[index] for index in range(len(dataset))])
    prev, target = batch["net_input"]["prev_output_tokens"], batch["target"]
    padding = task.dictionaries[lang].pad()
    total = -criterion.marginals(lang, prev, target, padding).sum().item()
    logged = [entry["valid_loss"] for entry in runs.logs[lang] if "valid_loss" in entry][-1]
    assert total / batch["ntokens"] / math.log(2) == pytest.approx(logged, abs=2e-3)
    other = criterion.marginals("xx" if lang == "yy" else "yy", prev, target, padding)
    assert -other.sum().item() / batch["ntokens"] / math.log(2) != pytest.approx(logged, abs=0.05)


def changed(runs, path, lang, digests=None, **task):
    """A copy of a language model's checkpoint with other options of its task, or other digests."""
    state = checkpoint_utils.torch.load(runs.paths[lang], map_location="cpu", weights_only=True)
    for name, value in task.items():
        state["cfg"]["task"][name] = value
    if digests is not None:
        state["extra_state"]["dictionaries"] = digests
    torch.save(state, path)
    return path


def test_language_models_that_do_not_fit(runs, tmp_path):
    for changes, message in (
        ({"xx": None}, r"--language-models yy=\S+: has no model of xx; needed: xx=FILE,yy=FILE"),
        ({"zz": "a.pt"}, "'zz' is no language of the run: xx, yy"),
        ({"yy": "no.pt"}, "--language-models of yy: no.pt: there is no such file"),
    ):
        with pytest.raises(ValueError, match=message):
            runs.build(**changes)
    garbage = tmp_path / "garbage.pt"
    garbage.write_bytes(b"nothing")
    with pytest.raises(ValueError, match=f"--language-models of yy: {garbage}: "):
        runs.build(yy=garbage)
    for option, value in (("output_dictionary_size", 9), ("past_target", True)):
        path = changed(runs, tmp_path / "lm.pt", "xx", **{option: value})
        text = f"was trained with --{option.replace('_', '-')} {value}; allowed: "
        with pytest.raises(ValueError, match=text):
            runs.build(xx=path)
    limit = changed(runs, tmp_path / "lm.pt", "xx")
    with pytest.raises(ValueError, match="reads 1024 tokens at most, .* up to 2000: give --max-so"):
        runs.build("--max-source-positions", 2000, xx=limit)


def test_dictionaries_have_to_agree(runs, tmp_path):
    lines = (runs.two / "dict.xx.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    for text, message in (
        (lines[::-1], r"dict.txt, whose word 4 is '\w+'; in dict.xx.txt of the run's data it is"),
        (lines[:-1], r"dict.txt, which has \d+ words; dict.xx.txt of the run's data has"),
    ):
        (tmp_path / "dict.txt").write_text("".join(text), encoding="utf-8")
        path = changed(runs, tmp_path / "lm.pt", "xx", digests={}, data=str(tmp_path))
        with pytest.raises(ValueError, match=f"--language-models of xx: {path}: .*{message}"):
            runs.build(xx=path)
    # the folder is gone: the digest tells
    (tmp_path / "dict.txt").unlink()
    other = changed(runs, tmp_path / "other.pt", "xx", data="gone", digests={"source": "17:0"})
    with pytest.raises(ValueError, match="of xx: .*other.pt: was trained with another dictionary"):
        runs.build(xx=other)
    # where the words are not known the sizes still are
    state = checkpoint_utils.torch.load(path, map_location="cpu", weights_only=True)
    state["model"] = {
        name: value[:-1]
        if name.endswith(("embedding.weight", "output.weight", "put.bias"))
        else value
        for name, value in state["model"].items()
    }
    torch.save(state, path)
    with pytest.raises(ValueError, match=r"of xx: \S+lm.pt: does not fit dict.xx.txt of the run's"):
        runs.build(xx=path)


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--dsl-weight", -0.1], "--dsl-weight -0.1: allowed: 0 or more"),
        (["--dsl-weight", "nan"], "--dsl-weight nan: allowed: 0 or more"),
        (["--schedule", "cycle"], "--schedule cycle: .* both directions .*; allowed: joint"),
        (["--join-at", "yy-xx=5"], "--join-at yy-xx=5: .* allowed: leave it out"),
        (["--pair-patience", 2], "--pair-patience 2: .* allowed: leave it out"),
        (["--one-way"], "--one-way: dual supervised learning .* allowed: leave it out"),
        (["--pair-parallel"], "--pair-parallel: dual supervised .* allowed: leave it out"),
        (["--monolingual", "xx"], "--monolingual xx: dual supervised .* allowed: leave it out"),
        (["--label-smoothing", 1.0], "--label-smoothing 1.0 is not .* at least 0 and less than 1"),
    ],
)
def test_bad_options(runs, flags, message):
    with pytest.raises(ValueError, match=message):
        runs.build(*flags)


def test_other_tasks_and_other_sentences(runs):
    stock = argparse.Namespace(cfg=argparse.Namespace(_name="translation"))
    cfg = argparse.Namespace(dsl_weight=0.1)
    with pytest.raises(ValueError, match="dual_supervised: --task translation .* allowed: dual_tr"):
        DualSupervisedCriterion.build_criterion(cfg, stock)
    task, _ = runs.build("--truncate-source", "--max-source-positions", 3)
    with pytest.raises(ValueError, match="train of xx-yy and of yy-xx: other sentences or other"):
        task.load_dataset("train")


# ---------------------------------------------------------------- two stacks


@pytest.fixture
def stacks(runs):
    """(task, model) of the arch dual_supervised_transformer without dropout."""
    words = [runs.two, "--task", "dual_translation", "-s", "xx", "-t", "yy", *STACKS]
    cfg = configuration(options.get_training_parser(), [*words, "--dropout", 0])
    task = tasks.setup_task(cfg.task)
    return task, task.build_model(cfg.model)


def stock(runs, source, target):
    """The stock transformer of a direction."""
    words = [runs.two, "--task", "translation", "-s", source, "-t", target]
    words += ["--arch", "transformer", *STACK, "--dropout", 0]
    cfg = configuration(options.get_training_parser(), words)
    return tasks.setup_task(cfg.task).build_model(cfg.model)


def test_two_stacks_are_two_stock_transformers(runs, stacks):
    """Function, gradient and number of parameters; with weight 0 each learns for itself."""
    task, model = stacks
    x, y = [[5, 6, 7, 2], [8, 2]], [[9, 2], [4, 5, 6, 7, 2]]
    criterion, sample, count = criterion_of(task, 0.0, {}), couple(x, y), 0
    for pair, part in sample.items():
        theirs = stock(runs, *pair.split("-"))
        theirs.load_state_dict(model.direction(pair).state_dict(), strict=True)
        inputs = {name: part["net_input"][name] for name in ("src_tokens", "src_lengths")}
        inputs["prev_output_tokens"] = part["net_input"]["prev_output_tokens"]
        assert torch.equal(model(**inputs, pair=pair)[0], theirs(**inputs)[0])
        criterion(model, part)[0].backward()
        criterion(theirs, {**part, "net_input": inputs})[0].backward()
        ours = dict(model.direction(pair).named_parameters())
        for name, parameter in theirs.named_parameters():
            torch.testing.assert_close(ours[name].grad, parameter.grad)
            count += parameter.numel()
        assert set(model.pair_parameters(pair)) == {f"models.{pair}.{name}" for name in ours}
    assert sum(parameter.numel() for parameter in model.parameters()) == count


def test_the_gap_ties_two_stacks(stacks):
    """With a weight the gradient of one direction depends on the other's parameters."""
    task, model = stacks
    words = len(task.dictionaries["xx"])
    tables = {lang: torch.zeros(words, words) for lang in ("xx", "yy")}
    sample = couple([[5, 6, 7, 2]], [[9, 2]])
    for weight, tied in ((1.0, True), (0.0, False)):
        gradients = []
        for scale in (1.0, 1.1):
            model.zero_grad()
            other = next(model.direction("yy-xx").parameters())
            other.data.mul_(scale)
            criterion_of(task, weight, tables)(model, sample)[0].backward()
            gradients.append(next(model.direction("xx-yy").parameters()).grad.clone())
            other.data.div_(scale)
        assert torch.allclose(*gradients) is not tied


def test_stacks_refuse_what_they_cannot_do(runs, stacks):
    with pytest.raises(ValueError, match="direction 'xx-zz': the model has xx-yy, yy-xx"):
        stacks[1].direction("xx-zz")
    words = [runs.two, "--task", "dual_translation", "-s", "xx", "-t", "yy", *STACKS]
    words += ["--adaptive-softmax-cutoff", "5"]
    cfg = configuration(options.get_training_parser(), words)
    with pytest.raises(ValueError, match=r"--adaptive-softmax-cutoff \S*5\S*: allowed"):
        tasks.setup_task(cfg.task).build_model(cfg.model)


# ---------------------------------------------------------------- all commands


def test_weight_0_is_the_plain_criterion(runs, tmp_path):
    """To the last bit, without any language model."""
    words = runs.words("--label-smoothing", 0.1, "--max-update", 3, "--disable-validation")
    train(*words, "--dsl-weight", 0, "--save-dir", tmp_path / "zero")
    plain = ["--criterion", "chunked_label_smoothed_cross_entropy"]
    train(*words, *plain, "--save-dir", tmp_path / "plain")
    dsl_options = ["--language-models", runs.model_paths(), "--dsl-weight", 0.1]
    train(*words, *dsl_options, "--save-dir", tmp_path / "dsl")
    zero, plain, dsl = (
        parameters(tmp_path / name / "checkpoint_last.pt") for name in ("zero", "plain", "dsl")
    )
    assert set(zero) == set(plain) == set(dsl)  # no language model in the checkpoint
    assert all(torch.equal(zero[name], plain[name]) for name in zero)
    assert not all(torch.equal(zero[name], dsl[name]) for name in zero)


def test_language_models_that_weight_0_does_not_read(runs, caplog):
    """The command of a run with a gap also makes that without; a warning says what is not read."""
    for weight, count in ((0, 1), (0.1, 0)):
        caplog.clear()
        runs.build("--dsl-weight", weight, "--language-models", runs.model_paths())
        lines = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert [line for line in lines if "does nothing with --dsl-weight 0" in line] == lines
        assert len(lines) == count


@pytest.mark.parametrize(
    "model",
    [pytest.param(DUAL, id="dual"), pytest.param(STACKS, id="stacks", marks=pytest.mark.slow)],
)
def test_all_commands(runs, toy_corpus, tmp_path, model):
    """Train, resume, then, without the language models, validate and translate."""
    copies = {lang: shutil.copy(path, tmp_path / f"{lang}.pt") for lang, path in runs.paths.items()}
    dsl_options = ["--language-models", runs.model_paths(**copies), "--dsl-weight", 0.05]
    words = [*runs.words(*dsl_options, model=model), "--save-dir", tmp_path]
    train(*words, "--max-update", 6)
    log = train(*words, "--max-update", 40)
    trained = [entry for entry in log if "train_l_duality" in entry]
    for name in ("l_duality", "lm_nll_loss", "nll_loss", "xx-yy_l_duality", "yy-xx_lm_nll_loss"):
        assert trained[0][f"train_{name}"] > 0
    assert trained[0]["train_xx-yy_l_duality"] == trained[0]["train_yy-xx_l_duality"]
    assert trained[-1]["train_l_duality"] < trained[0]["train_l_duality"]
    for path in copies.values():
        path.unlink()
    last = tmp_path / "checkpoint_last.pt"
    for source, target in (("xx", "yy"), ("yy", "xx")):
        search = [runs.two, "--task", "dual_translation", "-s", source, "-t", target]
        search += ["--path", last, "--max-tokens", 400]
        valid_loss = validate(*search)[-1]["valid_loss"]
        name = f"valid_{source}-{target}_loss"
        logged = [entry[name] for entry in log if name in entry][-1]
        assert valid_loss == pytest.approx(logged, abs=2e-3)
        printed = hypotheses(generate(*search, "--beam", 2))
        typed = interactive(*search, "--input", toy_corpus.text / f"test.{source}")
        assert len(printed) == 24 and len(hypotheses(typed)) == 24
    ranked = generate(*search, "--beam", 2, "--dual-alpha", 0.5)
    assert len(hypotheses(ranked)) == 24


def test_marginals_of_a_run_are_frozen(runs):
    _, criterion = runs.build()
    assert isinstance(criterion.marginals, Marginals)
    for model in criterion.marginals.models.values():
        assert not model.training
        assert not any(parameter.requires_grad for parameter in model.parameters())
    assert not list(criterion.parameters())
