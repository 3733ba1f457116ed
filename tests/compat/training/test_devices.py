"""What differs on a machine with a GPU, tested without one."""

import numpy as np
import pytest
import torch


@pytest.fixture
def clip():
    from fairseq.utils import clip_grad_norm_

    return clip_grad_norm_


def with_gradients(*gradients):
    params = [torch.nn.Parameter(torch.zeros(len(gradient))) for gradient in gradients]
    for param, gradient in zip(params, gradients):
        param.grad = torch.tensor(gradient)
    return params


@pytest.mark.parametrize("gradients", [([3.0, 4.0],), ([3.0, 0.0], [1.0, 2.0, 2.0])])
@pytest.mark.parametrize("max_norm", [0, 1.5, 100])
def test_clipped_as_defined(clip, gradients, max_norm):
    params = with_gradients(*gradients)
    norm = np.sqrt(sum(np.square(gradient).sum() for gradient in gradients))
    assert float(clip([*params, torch.nn.Parameter(torch.ones(1))], max_norm)) == pytest.approx(
        norm
    )
    factor = min(1, max_norm / norm) if max_norm else 1
    for param, gradient in zip(params, gradients):
        np.testing.assert_allclose(param.grad, np.multiply(gradient, factor), rtol=1e-5)


def test_experts_are_scaled_and_not_counted(clip):
    shared, expert = with_gradients([3.0, 4.0], [8.0])
    expert.expert = True
    assert float(clip([shared, expert], 1.0)) == pytest.approx(5)
    assert float(expert.grad) == pytest.approx(8 / 5, rel=1e-5)


def test_what_there_is_no_gradient_of(clip):
    assert float(clip([torch.nn.Parameter(torch.ones(2))], 1.0)) == 0
    assert float(clip([], 1.0)) == 0
    assert float(clip(with_gradients([3.0, 4.0])[0], 0)) == 5  # one parameter instead of several


def test_norms_of_other_workers_count(clip):
    (param,) = with_gradients([3.0, 4.0])
    assert float(clip([param], 1.0, lambda norm: 2 * norm)) == 10
    np.testing.assert_allclose(param.grad, [0.3, 0.4], rtol=1e-5)


def test_the_cpu_is_used_beside_a_gpu(clip, monkeypatch):
    """A GPU that torch can use, and nothing may ask for."""

    def asked():
        raise AssertionError("the GPU was asked for")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", asked)
    first, second = with_gradients([3.0], [4.0])
    assert float(clip([first, second], 1.0)) == 5
    assert float(first.grad) == pytest.approx(3 / 5, rel=1e-5)


def test_tied_tensors_stay_tied():
    """bfloat16 stands in for a GPU: here, too, fairseq saves a copy of each tensor."""
    from fairseq.utils import move_to_cpu

    weight = torch.arange(6.0).bfloat16().view(2, 3)
    moved = move_to_cpu({"a": weight, "deep": [{"b": weight}], "rows": weight[:1], "other": 1})
    assert moved["a"].dtype == torch.float32 and torch.equal(moved["a"], weight.float())
    assert moved["a"].data_ptr() == moved["deep"][0]["b"].data_ptr() and moved["other"] == 1
    assert torch.equal(moved["rows"], weight[:1].float())
    empty = move_to_cpu([torch.zeros(0), torch.zeros(0, dtype=torch.long)])
    assert [tensor.dtype for tensor in empty] == [torch.float32, torch.long]


def test_checkpoints_hold_a_tied_parameter_once(tiny_training, run, tmp_path):
    saving = ["--save-dir", tmp_path, "--no-epoch-checkpoints", "--max-update", 1]
    run("fairseq-train", *tiny_training, *saving, "--share-all-embeddings", "--bf16", "--cpu")
    model = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)["model"]
    tied = ("encoder.embed_tokens.weight", "decoder.output_projection.weight")
    assert len({model[name].data_ptr() for name in tied}) == 1


def test_batches_stay_on_a_machine_without_a_gpu(monkeypatch):
    """As tasks and criteria of plugins move further batches, with a device or without."""
    from fairseq.utils import move_to_cuda

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    batch = {"id": torch.tensor([3]), "net_input": {"src_tokens": torch.ones(1, 2)}}
    assert move_to_cuda(batch) is batch
    moved = move_to_cuda(batch, torch.device("cpu"))
    assert moved["id"].tolist() == [3] and moved["net_input"]["src_tokens"].device.type == "cpu"


def test_batches_are_moved_to_a_gpu(monkeypatch):
    from fairseq.utils import move_to_cuda

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: torch.device("meta"))
    assert move_to_cuda({"id": torch.tensor([3])})["id"].device.type == "meta"
