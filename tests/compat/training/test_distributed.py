"""Data parallel training on CPU, and how launchers pass the rank."""

import types

import pytest
import torch

from fairseq_ext.compat.patch_registry import since
from fairseq_ext.compat.training.distributed import workers_that_die_are_named


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


# ---------------------------------------------------------------- beside a GPU


@pytest.fixture
def gpu(monkeypatch):
    """A GPU that torch can use, and nothing may ask for."""

    def asked(*words, **more):
        raise AssertionError("the GPU was asked for")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for place, name in (
        (torch.Tensor, "cuda"),
        (torch.Tensor, "pin_memory"),
        (torch.cuda, "ByteTensor"),
        (torch.cuda, "set_device"),
        (torch.cuda, "_lazy_init"),
    ):
        monkeypatch.setattr(place, name, asked)


def begin(rank, workers, store):
    """Make a process a worker with --cpu; return its number."""
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.distributed import utils
    from omegaconf import OmegaConf

    cfg = OmegaConf.structured(FairseqConfig)
    cfg.common.cpu, cfg.model = True, None
    group = cfg.distributed_training
    group.distributed_backend, group.distributed_init_method = "gloo", f"file://{store}"
    group.distributed_world_size, group.distributed_rank = workers, rank
    return utils.distributed_init(cfg)


@pytest.fixture
def worker(gpu, tmp_path):
    """The only worker with --cpu, which has begun beside a GPU."""
    from fairseq.distributed import utils

    assert begin(0, 1, tmp_path / "store") == 0
    assert utils.torch.cuda.is_available()  # as before
    yield utils
    torch.distributed.destroy_process_group()
    vars(utils.get_global_group).clear()
    for name in ("_buffer", "_cpu_buffer"):
        vars(utils.all_gather_list).pop(name, None)


def test_workers_on_cpus_begin_beside_a_gpu(worker):
    assert torch.distributed.get_world_size() == 1


def test_objects_are_gathered_through_the_cpu(worker):
    for objects in ({"loss": 1.5}, {"loss": torch.ones(2), "text": "x" * 50}):
        (gathered,) = worker.all_gather_list(objects, max_size=4096)
        assert gathered.keys() == objects.keys()
    (gathered,) = worker.all_gather_list("y" * 8000, max_size=9000)  # a larger buffer
    assert gathered == "y" * 8000
    with pytest.raises(ValueError, match="exceeds max_size"):
        worker.all_gather_list("y" * 10000, max_size=9000)


def gather(rank, store):
    """Of a worker: gather objects of both, in a group over gloo."""
    import fairseq_ext  # noqa: F401  (the patches)

    begin(rank, 2, store)
    from fairseq.distributed import utils

    assert utils.all_gather_list({"rank": rank}) == [{"rank": 0}, {"rank": 1}]


@pytest.mark.slow
def test_two_workers_gather_objects(tmp_path):
    torch.multiprocessing.spawn(gather, args=(tmp_path / "store",), nprocs=2)


def test_no_process_for_each_gpu_where_there_is_none():
    module = types.SimpleNamespace(call_main=None)
    module.torch = types.SimpleNamespace(cuda=types.SimpleNamespace(device_count=lambda: 0))
    workers_that_die_are_named(module)
    workers = types.SimpleNamespace(
        distributed_init_method="tcp://host:1", distributed_no_spawn=False
    )
    cfg = types.SimpleNamespace(
        distributed_training=workers, common=types.SimpleNamespace(tpu=False)
    )
    with pytest.raises(ValueError, match="--distributed-init-method tcp://host:1: fairseq starts"):
        module.call_main(cfg, None)
