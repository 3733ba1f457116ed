"""Data parallel training on CPU, and how launchers pass the rank."""

import types

import pytest
import torch

from fairseq_ext.compat.patch_registry import since


@pytest.fixture
def process_group(tmp_path):
    """A group of one process over gloo."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
    )
    yield torch.distributed.group.WORLD
    torch.distributed.destroy_process_group()


def test_pytorch_ddp_on_cpu(process_group):
    from fairseq.models.distributed_fairseq_model import DistributedFairseqModel

    args = types.SimpleNamespace(
        tpu=False,
        ddp_backend="pytorch_ddp",
        device_id=0,
        broadcast_buffers=False,
        bucket_cap_mb=25,
        find_unused_parameters=False,
        gradient_as_bucket_view=False,
        ddp_comm_hook="none",
        heartbeat_timeout=-1,
    )
    model = torch.nn.Linear(2, 2)
    wrapped = DistributedFairseqModel(args, model, process_group, torch.device("cpu"))
    wrapped(torch.ones(1, 2)).sum().backward()
    assert model.weight.grad is not None


@pytest.mark.parametrize("word", ["--local-rank", "--local_rank", "--device-id"])
def test_rank_of_the_launcher(word):
    if word == "--local-rank" and since("torch", 2, 0)() is not None:
        pytest.skip("torch before 2.0 passes --local_rank")
    from fairseq import options

    parser = options.get_training_parser()
    for command in ([f"{word}=1"], [word, "1"]):
        assert parser.parse_known_args(["data", *command])[0].device_id == 1
    assert parser.parse_known_args(["data"])[0].device_id == 0


def test_local_rank_is_no_second_entry_in_help():
    from fairseq import options

    assert "--local-rank" not in options.get_training_parser().format_help()


class Spawned(Exception):
    """What would have been started."""


@pytest.fixture
def call_main(monkeypatch):
    """Function: `call_main` with options of fairseq-train; gives the number of processes."""
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq.distributed import utils

    for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"):
        monkeypatch.delenv(name, raising=False)

    def spawn(fn, args, nprocs, join):
        raise Spawned(nprocs, args[1].distributed_training)

    monkeypatch.setattr(torch.multiprocessing, "spawn", spawn)

    def call_main(*words):
        words = ["data", "--arch", "transformer", *map(str, words)]
        parsed = options.parse_args_and_arch(options.get_training_parser(), words)
        cfg = convert_namespace_to_omegaconf(parsed)
        with pytest.raises(Spawned) as caught:
            utils.call_main(cfg, lambda cfg: None)
        assert utils.torch.cuda.device_count is torch.cuda.device_count  # as before
        return caught.value.args

    return call_main


def test_workers_on_cpus(call_main):
    started, workers = call_main("--cpu", "--distributed-world-size", 3)
    assert (started, workers.distributed_num_procs) == (3, 3)
    assert workers.distributed_backend == "gloo"
    assert workers.distributed_init_method.startswith("tcp://localhost:")


def test_backend_that_was_named_stays(call_main):
    words = ["--cpu", "--distributed-world-size", 2, "--distributed-backend", "mpi"]
    assert call_main(*words)[1].distributed_backend == "mpi"
