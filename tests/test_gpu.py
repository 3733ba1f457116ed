"""On a GPU every system computes, learns, goes on and translates as on the CPU.

And no training step waits for the device; test_no_wait.py counts on the CPU what would.
"""

import copy
import dataclasses
import math
import warnings
from pathlib import Path

import pytest
import torch
from common import inprocess
from fairseq import utils
from options.systems import SYSTEMS as SMALL
from options.systems import Data
from training_steps import SYSTEMS, Step, asking_line, has_lines, is_of_search, with_lines

import fairseq_ext
from fairseq_ext.common.transformer import TransformerSize

pytestmark = pytest.mark.gpu

DEVICE = "cuda"
PACKAGE = str(Path(fairseq_ext.__file__).parent)
WAITS = "called a synchronizing CUDA operation"
# sources by sampling, and targets of the twin that are noise, are others on each device
DRAWN = [name for name in SYSTEMS if has_lines(name) or name == "twin noise"]
# one of each family
FAMILIES = ("dual_transformer", "duo_transformer", "twin_lstm", "multiway_gru", "routed_gru")
PRECISIONS = ("--fp16", "--bf16", "--amp")


@pytest.fixture(scope="module")
def lines(toy_corpus, tmp_path_factory):
    return with_lines(toy_corpus, tmp_path_factory.mktemp("lines") / "data")


@pytest.fixture(scope="module")
def data(toy_corpus, tmp_path_factory):
    """{kind of data: folder}."""
    return Data(toy_corpus, tmp_path_factory.mktemp)


@pytest.fixture(autouse=True)
def full_precision(monkeypatch):
    """No TF32 in the process of the test, which would round products to 10 bits."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    assert torch.get_float32_matmul_precision() == "highest"


# ---------------------------------------------------------------- gradients


def drop_nothing(*networks):
    """Set every rate of dropout to zero; models stay in training mode, as cuDNN wants it."""
    for module in (module for network in networks for module in network.modules()):
        is_dropout = "dropout" in type(module).__name__.lower()
        for name, value in list(vars(module).items()):
            if isinstance(value, float) and ("dropout" in name or (is_dropout and name == "p")):
                setattr(module, name, 0.0)
            elif isinstance(value, TransformerSize):
                rates = [field.name for field in dataclasses.fields(value)]
                rates = {rate: 0.0 for rate in rates if "dropout" in rate}
                setattr(module, name, dataclasses.replace(value, **rates))


def gradients(step):
    """(loss, sample size, {name: gradient in float64 on the CPU}) of a step."""
    named = [*step.model.named_parameters(), *step.criterion.named_parameters("criterion")]
    for _, parameter in named:
        parameter.grad = None
    loss, sample_size, _ = step()
    gradients = {name: value.grad for name, value in named if value.grad is not None}
    gradients = {name: gradient.flatten().double().cpu() for name, gradient in gradients.items()}
    return float(loss), float(sample_size), gradients


def on_device(step):
    """The same step there, with a batch of its own."""
    step.model.to(DEVICE), step.criterion.to(DEVICE)
    step.sample = utils.apply_to_sample(lambda tensor: tensor.to(DEVICE), step.sample)
    return step


def check_gradients(step, limit=1e-4):
    drop_nothing(step.model, step.criterion)
    sample = copy.deepcopy(step.sample)
    loss, size, expected = gradients(step)
    step.sample = sample
    loss_there, size_there, actual = gradients(on_device(step))
    assert loss_there == pytest.approx(loss, rel=1e-4) and size_there == size
    assert actual.keys() == expected.keys() and expected
    # some are zero but for rounding: those of the biases of attention keys
    rounding = 1e-6 * math.sqrt(sum(float(g.square().sum()) for g in expected.values()))
    for name, gradient in expected.items():
        distance = float((actual[name] - gradient).norm())
        assert distance <= limit * float(gradient.norm()) + rounding, name


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name not in DRAWN])
def test_gradients_are_those_of_the_cpu(lines, name):
    # of the million rectified units of two large stacks a few are so near zero that rounding
    # decides; the small ones are among the models below
    check_gradients(Step([lines, *SYSTEMS[name]]), 2e-3 if name == "two stacks" else 1e-4)


@pytest.mark.parametrize("name", SMALL)
def test_gradients_of_small_models_are_those_of_the_cpu(data, name):
    check_gradients(Step(SMALL[name].words(data[SMALL[name].data])))


# ---------------------------------------------------------------- waiting


def waits(step):
    """[(file, line)] of the code, other than stock fairseq's, where a step waits."""
    places = []

    def shown(message, *place, **more):
        if WAITS in str(message):
            # the second is the function of `warnings` that calls the first
            places.append(asking_line({"shown", "_showwarnmsg"}))

    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        warnings.showwarning = shown  # a line warns each time, and its callers are still there
        torch.cuda.set_sync_debug_mode("warn")
        try:
            step()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return [place for place in places if place is not None]


def check_waits(step):
    """The first step fills caches; the second waits nowhere in the suite but in a search."""
    on_device(step)()
    places = waits(step)
    ours = {place for place in places if place[0].startswith(PACKAGE)}
    assert not {f"{file}:{line}" for file, line in ours if not is_of_search(file)}


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_step_waits_for_nothing(lines, name):
    check_waits(Step([lines, *SYSTEMS[name]], has_lines(name)))


@pytest.mark.parametrize("name", SMALL)
def test_a_step_of_small_models_waits_for_nothing(data, name):
    check_waits(Step(SMALL[name].words(data[SMALL[name].data])))


def test_what_waits_is_seen():
    values = torch.arange(4.0, device=DEVICE)
    for step in (
        lambda: values.sum().item(),
        lambda: values[values > 1],
        lambda: values.nonzero(),
        lambda: values.cpu(),
        lambda: torch.tensor([1.0, 2.0]).to(DEVICE),
    ):
        (place,) = set(waits(step))
        assert place[0] == __file__
    assert not waits(lambda: values.masked_fill(values > 1, 0).sum())


# ---------------------------------------------------------------- commands


class Trained:
    """Trains a system by fairseq's commands: 4 updates, then 2 more; each training once.

    run, user_dir, data: the fixtures. folder: function (name) -> a new folder.
    """

    def __init__(self, run, user_dir, data, folder):
        self.run, self.user_dir, self.data, self.folder = run, user_dir, data, folder
        self.finished = {}

    def __call__(self, name, *more):
        """Return the checkpoint."""
        key = (name, *more)
        if key not in self.finished:
            folder = self.folder("trained")
            self._train(folder, 4, name, *more)
            output = self._train(folder, 6, name, *more)
            assert "@ 4 updates" in output
            self.finished[key] = folder / "checkpoint_last.pt"
        return self.finished[key]

    def _train(self, folder, updates, name, *more):
        words = SMALL[name].words(self.data[SMALL[name].data], *more)
        words += ["--batch-size", 8, "--max-update", updates, "--disable-validation"]
        words += ["--save-dir", folder, "--no-epoch-checkpoints", "--user-dir", self.user_dir]
        words += ["--num-workers", 0, "--log-interval", 1, "--log-format", "json"]
        output = self.run("fairseq-train", *words)
        parts = (line[line.index("{") :] for line in output.splitlines() if '| {"' in line)
        records = [record for record in inprocess.records(parts) if "loss" in record]
        assert records and all(math.isfinite(record["loss"]) for record in records)
        assert ("gb_free" in records[0]) == (DEVICE == "cuda")  # memory of the GPU
        state = torch.load(folder / "checkpoint_last.pt", map_location="cpu", weights_only=True)
        assert state["optimizer_history"][-1]["num_updates"] == updates
        assert all(value.isfinite().all() for value in state["model"].values())
        return output


@pytest.fixture(scope="module")
def trained(run, user_dir, data, tmp_path_factory):
    return Trained(run, user_dir, data, tmp_path_factory.mktemp)


@pytest.fixture
def sharp(trained, tmp_path):
    """Function (system) -> its checkpoint with parameters whose best words are far from others."""

    def checkpoint(name):
        state = torch.load(trained(name), map_location="cpu", weights_only=True)
        generator = torch.Generator().manual_seed(1)
        for value in state["model"].values():
            if value.is_floating_point() and value.dim() > 1:
                value += 0.7 * torch.randn(value.shape, generator=generator)
        torch.save(state, tmp_path / "sharp.pt")
        return tmp_path / "sharp.pt"

    return checkpoint


@pytest.mark.parametrize("name", SMALL)
def test_trained_and_resumed(trained, name):
    trained(name)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", FAMILIES)
def test_trained_and_resumed_in_half_precision(trained, name, precision):
    # an update of one pair leaves out what other pairs train: --fp16 says so and names the option
    leaves_out = (name, precision) == ("multiway_gru", "--fp16")
    trained(name, precision, *["--fp16-no-flatten-grads"] * leaves_out)


def check_same(actual, expected):
    """{number: (score, text)}: the same texts but for ties in rounding, with the same scores."""
    assert actual.keys() == expected.keys() and expected
    same = [number for number in expected if actual[number][1] == expected[number][1]]
    assert len(same) >= 0.9 * len(expected)
    for number in same:
        assert actual[number][0] == pytest.approx(expected[number][0], abs=1e-3)


@pytest.mark.parametrize("name", SMALL)
def test_generated_as_on_the_cpu(run, user_dir, data, sharp, name):
    system, checkpoint = SMALL[name], sharp(name)
    words = system.inference_words(data[system.data], checkpoint, "--user-dir", user_dir)
    words += ["--beam", 2, "--batch-size", 8, "--max-len-a", 0, "--max-len-b", 8]
    # cuDNN's default would be TF32
    outputs = [
        run("fairseq-generate", *words, env={"NVIDIA_TF32_OVERRIDE": "0"}),
        run("fairseq-generate", *words, "--cpu"),
    ]
    check_same(*(first_of(inprocess.hypotheses(output)) for output in outputs))


def first_of(hypotheses):
    return {number: texts[0] for number, texts in hypotheses.items()}


# ---------------------------------------------------------------- in Python


def answers(model, name, folder, sentences):
    """{number: (score, text)} of what a model says; the score of a language model alone."""
    if model.kind == "language_model":
        scores = model.perplexity(sentences["yy"])
        return {number: (result.score, "") for number, result in enumerate(scores)}
    texts = list(SMALL[name].lines) if "classifier" in name else sentences["xx"]
    if not SMALL[name].lines:
        texts = sorted(folder.rglob("*.npy"))[:10]
    best = [
        result.hypotheses[0]
        for result in model.translate(texts, beam=2, max_len_b=7, attention=False)
    ]
    return {number: (first.score, first.text) for number, first in enumerate(best)}


@pytest.mark.parametrize("name", SMALL)
def test_loaded_in_python_as_on_the_cpu(data, toy_corpus, sharp, name):
    folder, checkpoint = data[SMALL[name].data], sharp(name)
    sentences = {language: toy_corpus.lines[language][-24:] for language in ("xx", "yy")}
    models = [fairseq_ext.load(checkpoint, folder, device=where) for where in (DEVICE, "cpu")]
    assert next(models[0].loaded.models[0].parameters()).device.type == DEVICE
    check_same(*(answers(model, name, folder, sentences) for model in models))
