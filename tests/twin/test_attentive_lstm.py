"""The fused loop is the literal one: values and every gradient, in both precisions."""

import pytest
import torch

from fairseq_ext.twin.attentive.layer import AttentiveLSTM, StepOutputs
from properties import check_same_numbers

# (first, location)
KINDS = {"content": (0, None), "after": (1, None), "location": (1, (3, 5)), "both": (0, (2, 7))}
# B, S, T: sentences, source positions, steps
SIZES = [(1, 1, 1), (1, 6, 4), (4, 9, 5)]
# in single precision the numbers inside the attention are rounded at 6e-8, gradients here are small
PRECISIONS = [(torch.float64, 1e-9), (torch.float32, 1e-4)]
EMBED, CONTEXT, HIDDEN, ATTENTION = 6, 10, 8, 12


class Case:
    """A layer with random weights, and what it reads."""

    def __init__(self, kind, size, dtype, windowed):
        torch.manual_seed(0)
        first, location = KINDS[kind]
        self.layer = AttentiveLSTM(EMBED, CONTEXT, HIDDEN, ATTENTION, first, location).to(dtype)
        sentences, positions, steps = size
        for parameter in self.layer.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
        shapes = {
            "inputs": (sentences, steps, EMBED),
            "annotations": (sentences, positions, CONTEXT),
            "state": (sentences, HIDDEN),
            "memory": (sentences, HIDDEN),
        }
        self.given = {
            name: torch.randn(shape, dtype=dtype, requires_grad=True)
            for name, shape in shapes.items()
        }
        lengths = torch.randint(1, positions + 1, (sentences,))
        self.padding = torch.arange(positions) >= lengths.unsqueeze(1)
        self.masked = self.padding.expand(steps, -1, -1).clone()
        if windowed:
            self.masked |= torch.rand(self.masked.shape) < 0.5
            self.masked[:, :, 0] = False
        self.factors = torch.randn(2, sentences, steps, 1, dtype=dtype)

    def run(self, fused):
        """{name: value or gradient}."""
        source = self.layer.source(self.given["annotations"], self.padding)
        start = self.layer.start(self.given["state"], self.given["memory"], source)
        run = self.layer if fused else self.layer.literal
        outputs: StepOutputs = run(self.given["inputs"], start, source, self.masked)
        loss = sum((tensor * factor).sum() for tensor, factor in zip(outputs, self.factors))
        named = {**self.given, **dict(self.layer.named_parameters())}
        gradients = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
        values = {name: tensor.detach() for name, tensor in outputs._asdict().items()}
        # with one position the attention's gradient is zero; with one step some weights are unused
        zero = torch.zeros(1)
        grads = [zero if tensor is None or not tensor.any() else tensor for tensor in gradients]
        return {**values, **dict(zip(named, grads))}


@pytest.mark.parametrize("dtype, tolerance", PRECISIONS, ids=["double", "single"])
@pytest.mark.parametrize("windowed", [False, True], ids=["free", "windowed"])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_fused_is_literal(kind, size, windowed, dtype, tolerance):
    case = Case(kind, size, dtype, windowed)
    check_same_numbers(case.run(True), case.run(False), tolerance)


def test_no_array_of_keys_is_kept_for_every_step():
    """The largest thing that waits for the backward pass grows with S or with T, not with both."""
    case = Case("location", (2, 40, 30), torch.float32, False)
    sizes = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda x: sizes.append(x.numel()) or x, lambda x: x
    ):
        source = case.layer.source(case.given["annotations"], case.padding)
        start = case.layer.start(case.given["state"], case.given["memory"], source)
        fused = [case.layer(case.given["inputs"], start, source, case.masked), sum(sizes)]
        sizes.clear()
        case.layer.literal(case.given["inputs"], start, source, case.masked)
    assert 4 * fused[1] < sum(sizes)


def test_half_precision_runs_in_that_of_the_weights():
    """With autocast the products around the loop are rounded, the loop is not."""
    case = Case("location", (4, 9, 5), torch.float32, False)
    expected = case.run(True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = case.run(True)
    assert all(tensor.dtype == torch.float32 for tensor in outputs.values())
    check_same_numbers(outputs, expected, 0.1)
