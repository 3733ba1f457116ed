"""--bf16 and --fp16 mean what they say on the device at hand."""

import importlib.util
import types

import pytest
import torch
from common.float16 import FLOAT16

from fairseq_ext.compat.user_errors import OptionError


@pytest.fixture
def parse(tiny_training):
    """Function: the options that fairseq-train reads from a command line."""
    from fairseq import options

    def parse(*more):
        words = [str(word) for word in [*tiny_training, *more]]
        return options.parse_args_and_arch(options.get_training_parser(), words)

    return parse


def test_bf16_is_not_tpu(parse):
    assert (parse("--bf16").bf16, parse("--bf16").tpu) == (True, False)
    memory_efficient = parse("--memory-efficient-bf16")
    assert (memory_efficient.bf16, memory_efficient.tpu) == (True, False)
    assert (parse().bf16, parse().tpu) == (False, False)


def test_tpu_is_still_tpu(parse, monkeypatch):
    """The library of TPUs counts as installed here; without it the option is refused."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: name == "torch_xla" or find(name, *more)
    )
    assert parse("--bf16", "--tpu").tpu is True
    assert parse("--tpu").tpu is True


@pytest.mark.parametrize("flags", [["--fp16"], ["--memory-efficient-fp16"]], ids=str)
def test_two_precisions_are_refused_by_name(parse, flags):
    with pytest.raises(OptionError, match="^--fp16 with --bf16: .*; allowed: one of the two$"):
        parse(*flags, "--bf16")


def test_help_says_so():
    from fairseq import options

    text = options.get_training_parser().format_help()
    assert "bfloat16 on the device at hand" in " ".join(text.split())
    assert "implies --tpu" not in text


def test_bf16_trains_saves_and_resumes_without_warnings(tiny_training, run, tmp_path):
    from fairseq import checkpoint_utils

    saving = ["--save-dir", tmp_path, "--no-epoch-checkpoints"]
    run("fairseq-train", *tiny_training, *saving, "--max-update", 2, "--bf16", "--cpu")
    state = checkpoint_utils.torch.load(tmp_path / "checkpoint_last.pt")
    # fairseq writes 16-bit parameters as float32: they have no more digits than bfloat16 has
    weight = state["model"]["decoder.layers.0.fc1.weight"]
    assert torch.equal(weight, weight.bfloat16().float())
    assert not state["cfg"]["common"]["tpu"]
    # the optimiser works on float32 copies of the parameters
    moments = [value["exp_avg"].dtype for value in state["last_optimizer_state"]["state"].values()]
    assert set(moments) == {torch.float32}
    log = run("fairseq-train", *tiny_training, *saving, "--max-update", 4, "--bf16", "--cpu")
    assert "@ 2 updates" in log and "num_updates 4" in log
    assert "Warning" not in log


class Model:
    """Makes the smallest model that can be prepared for inference."""

    def __new__(cls):
        from fairseq.models import BaseFairseqModel

        class Linear(BaseFairseqModel):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(2, 2)

        return Linear()


@pytest.mark.parametrize("bf16", [False, True])
def test_bf16_inference(bf16):
    cfg = types.SimpleNamespace(
        common=types.SimpleNamespace(bf16=bf16), generation=types.SimpleNamespace()
    )
    model = Model()
    model.prepare_for_inference_(cfg)
    assert model.linear.weight.dtype == (torch.bfloat16 if bf16 else torch.float32)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")  # pytest undoes ours
def test_bf16_generation(tiny_training, toy_corpus, call, tmp_path):
    import fairseq_cli.generate
    import fairseq_cli.train

    saving = ["--save-dir", tmp_path, "--no-epoch-checkpoints", "--disable-validation", "--cpu"]
    call(fairseq_cli.train, *tiny_training, *saving, "--max-update", 1)
    checkpoint = ["--path", tmp_path / "checkpoint_last.pt", "--beam", 2, "--max-len-b", 5]
    words = [toy_corpus.two, "-s", "xx", "-t", "yy", *checkpoint, "--cpu", "--bf16"]
    output = call(fairseq_cli.generate, *words)
    assert sum(line.startswith("H-") for line in output.splitlines()) == 24


def optimizer(device, **common):
    from fairseq.optim.fp16_optimizer import FP16Optimizer

    cfg = types.SimpleNamespace(
        common=types.SimpleNamespace(**{"bf16": False, "fp16_no_flatten_grads": False, **common})
    )
    return FP16Optimizer.build_optimizer(cfg, [torch.nn.Parameter(torch.zeros(2, device=device))])


def test_fp16_on_cpu_is_refused_with_the_alternative():
    with pytest.raises(ValueError, match=r"--fp16 .* CPU .*--bf16.*--fp16-no-flatten-grads"):
        optimizer("cpu")


def test_refusal_reaches_the_user(tiny_training, run):
    words = [*tiny_training, "--no-save", "--max-update", 1, "--cpu", "--fp16"]
    log = run("fairseq-train", *words, fails=True)
    last = log.splitlines()[-1]
    assert last.startswith("fairseq-train: error: --fp16 was given and the model is on the CPU")
    assert "Traceback" not in log


@pytest.mark.gpu
def test_bf16_trains_on_cuda(tiny_training, run, tmp_path):
    saving = ["--save-dir", tmp_path, "--no-epoch-checkpoints"]
    run("fairseq-train", *tiny_training, *saving, "--max-update", 2, "--bf16")
    log = run("fairseq-train", *tiny_training, *saving, "--max-update", 4, "--bf16")
    assert "@ 2 updates" in log and "num_updates 4" in log


@pytest.mark.skipif(not hasattr(torch, "amp") or not hasattr(torch.amp, "GradScaler"),
                    reason="before torch 2.3 only CUDA has a scaler")  # fmt: skip
def test_amp_unscales_gradients_once():
    from fairseq.optim.amp_optimizer import AMPOptimizer
    from fairseq.optim.sgd import SGD
    from omegaconf import OmegaConf

    weight = torch.nn.Parameter(torch.tensor([1.0]))
    cfg = OmegaConf.create({"lr": [0.5], "momentum": 0.0, "weight_decay": 0.0})
    optimizer = object.__new__(AMPOptimizer)  # its own scaler is of CUDA
    optimizer.fp32_optimizer = SGD(cfg, [weight])
    optimizer._grad_scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
    optimizer.min_loss_scale = 1e-4
    for norm in (0.0, 10.0):
        optimizer.backward(3 * weight.sum())
        assert float(optimizer.clip_grad_norm(norm)) == 3
        optimizer.step()
        weight.grad = None
    assert weight.item() == 1 - 2 * 0.5 * 3


@pytest.mark.parametrize("window", [None, 77])
def test_amp_is_built_from_its_own_options(window, monkeypatch):
    from fairseq.optim import amp_optimizer
    from omegaconf import OmegaConf

    scaler_settings = {}
    monkeypatch.setattr(
        torch.cuda.amp, "GradScaler", lambda **values: scaler_settings.update(values)
    )
    common = {"amp_init_scale": 32, "amp_scale_window": window, "fp16_init_scale": 4}
    cfg = OmegaConf.create({"common": {**common, "min_loss_scale": 1e-4}, "optimizer": None})
    amp_optimizer.AMPOptimizer(cfg, [], None)
    assert scaler_settings == ({"init_scale": 32} if window is None else
                     {"init_scale": 32, "growth_interval": window})  # fmt: skip
    assert cfg.common.fp16_init_scale == 4 and cfg.common.amp_init_scale == 32


def test_each_batch_has_its_retries():
    """Three attempts at the third batch overflow, and at the others at most two."""
    from fairseq_ext.compat.training.precision import each_batch_has_its_retries

    class Trainer:
        """As fairseq's: `overflows` says of each attempt whether its gradient overflows."""

        cfg = types.SimpleNamespace(common=types.SimpleNamespace(amp=True, amp_batch_retries=2))
        _amp_retries = 0

        def train_step(self, samples, raise_oom=False):
            if not self.overflows.pop(0):
                return "trained"
            if self._amp_retries == self.cfg.common.amp_batch_retries:
                self._amp_retries = 0
                return "skipped"
            self._amp_retries += 1
            return self.train_step(samples, raise_oom)

    each_batch_has_its_retries(types.SimpleNamespace(Trainer=Trainer))
    trainer = Trainer()
    trainer.overflows = [True, True, False, True, True, False, True, True, True, True, False]
    outcomes = [trainer.train_step([]) for _ in range(4)]
    assert outcomes == ["trained", "trained", "skipped", "trained"] and not trainer.overflows


@pytest.mark.parametrize("precision", [(), ("--bf16",), ("--amp",)], ids=str)
def test_gradients_that_are_no_numbers_are_named(precision, tiny_training, tmp_path, monkeypatch):
    from common import inprocess
    from fairseq.tasks.translation import TranslationTask

    step = TranslationTask.train_step

    def train_step(self, sample, model, *args, **kwargs):
        outcome = step(self, sample, model, *args, **kwargs)
        model.decoder.layers[0].fc1.weight.grad.fill_(float("inf"))
        return outcome

    monkeypatch.setattr(TranslationTask, "train_step", train_step)
    with inprocess.logged_lines() as lines:
        with pytest.raises(FloatingPointError, match="gradients are Nan/Inf"):
            inprocess.train(*tiny_training, "--save-dir", tmp_path, "--max-update", 2, *precision)
    assert any("Detected nan/inf grad norm" in line for line in lines)


@pytest.mark.parametrize("option", ["--bf16", "--memory-efficient-bf16"])
def test_bf16_with_several_update_freqs(option, tiny_training, run):
    words = [*tiny_training, "--no-save", "--max-update", 3, "--update-freq", "1,2", "--cpu"]
    assert "num_updates 3" in run("fairseq-train", *words, option)


@FLOAT16
@pytest.mark.parametrize(
    "options",
    [
        ["--fp16", "--fp16-no-flatten-grads"],
        pytest.param(["--memory-efficient-fp16"], marks=pytest.mark.slow),
    ],
)
def test_a_gradient_overflows_on_the_cpu(options, tiny_training, run):
    words = [*tiny_training, "--no-save", "--max-update", 2, "--cpu", *options]
    log = run("fairseq-train", *words, "--fp16-init-scale", 2**20)
    assert "gradient overflow detected" in log and "num_updates 2" in log


def test_no_overflow_asks_for_the_gpu(monkeypatch):
    """--cpu on a machine with a GPU."""
    from fairseq import trainer

    def asked(*words):
        raise AssertionError("the GPU was asked for")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.Tensor, "cuda", asked)
    assert trainer.torch.tensor(0.0).cuda().device.type == "cpu"


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_optimizers_that_cannot_step_from_16_bits(precision, tiny_training):
    """Both options are named, and each optimiser that is said to be allowed is."""
    from common import inprocess
    from fairseq import optim, options

    def build(name):
        words = [*tiny_training, f"--memory-efficient-{precision}", "--optimizer", name]
        cfg = inprocess.configuration(options.get_training_parser(), words)
        parameters = [torch.nn.Parameter(torch.ones(2))]
        return optim.MemoryEfficientFP16Optimizer.build_optimizer(cfg, parameters)

    for name in ("fused_adam", "sgd", "adadelta", "adagrad"):
        with pytest.raises(OptionError) as caught:
            build(name)
        text = str(caught.value)
        assert text.startswith(f"--memory-efficient-{precision} with --optimizer {name}, which")
    allowed = text.partition("allowed: ")[2].partition(", or --")[0]
    for name in allowed.replace(" or ", ", ").split(", "):
        assert type(build(name)).__name__ == "MemoryEfficientFP16Optimizer"
