"""Relative paths of a training that hydra runs in a folder of its own."""

from __future__ import annotations

import os
from typing import Any

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before
from ..user_errors import OptionError

# options that name a file or folder, or several with colons between them
PATHS = ("data", "user_dir", "label_dir", "finetune_from_model", "w2v_path", "config_yaml")


@patch(
    "fairseq_cli.hydra_train",
    because="hydra 1: with a --config-dir of one's own it changes to outputs/DATE/TIME, where "
    "task.data=data-bin ends in 'dict.txt: No such file or directory'",
)
def paths_are_of_the_run_folder(module: PatchedModule) -> None:
    """Refuse a relative path that is not there, but where the command was called."""

    def check(cfg: Any, **kwargs: Any) -> None:
        if module.HydraConfig.initialized():
            check_paths(cfg, str(module.HydraConfig.get().runtime.cwd))

    call_before(module, "_hydra_main", check)


def check_paths(cfg: Any, start: str) -> None:
    """Raise OptionError for a path that exists below `start` alone, the folder of the command."""
    for group, section in cfg.items():
        for name in PATHS:
            value = section.get(name) if hasattr(section, "get") else None
            for path in value.split(os.pathsep) if isinstance(value, str) else ():
                is_there = not path or os.path.exists(path)
                if not is_there and os.path.exists(os.path.join(start, path)):
                    raise OptionError(
                        f"{group}.{name} {path} is not in {os.getcwd()}, where hydra runs the "
                        f"training; allowed: an absolute path, such as "
                        f"${{hydra:runtime.cwd}}/{path}, or hydra.run.dir=."
                    )
