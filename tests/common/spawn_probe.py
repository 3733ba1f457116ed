"""Run as a script: what fairseq does for several GPUs, a spawned child that gets the config.

    python spawn_probe.py DATA USER_DIR

The child unpickles a config whose classes live in the plugin before any --user-dir is imported.
Prints "child built CLASS-MODULE".
"""

import sys

import torch.multiprocessing
from user_dir_probe import build


def child(_rank, cfg):
    """As fairseq's distributed_main -> main: import the user-dir, set up task and model."""
    from fairseq import tasks, utils

    utils.import_user_module(cfg.common)
    model = tasks.setup_task(cfg.task).build_model(cfg.model)
    print(f"child built {type(model).__module__}", flush=True)


if __name__ == "__main__":
    built = build(sys.argv[1], sys.argv[2])
    torch.multiprocessing.spawn(child, args=(built["cfg"],), nprocs=1)
