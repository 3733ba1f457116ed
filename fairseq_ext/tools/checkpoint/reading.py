"""Reading a checkpoint for the tools."""

import pickle
from pathlib import Path
from typing import Any, Collection, Dict, Optional, Union

from .. import UsageError


def read(path: Union[str, Path], *models: str) -> Dict[str, Any]:
    """Return the checkpoint at `path` as {"cfg": plain dict, "model": state dict, ...}.

    Raises UsageError, with what the file holds, unless it is a checkpoint of one of the ``models``,
    registered models such as "dual_transformer".
    """
    from fairseq import checkpoint_utils
    from omegaconf import OmegaConf

    if not Path(path).is_file():
        raise UsageError(f"CHECKPOINT {path} is not a file")
    try:
        # the torch of this module is the one that `compat` taught what fairseq writes
        state: Any = checkpoint_utils.torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, LookupError, OSError) as error:
        # LookupError: a text file read as a pickle; OSError: "Invalid argument", a torn archive
        raise UsageError(f"CHECKPOINT {path} cannot be read as a checkpoint: {error}") from error
    if isinstance(state, dict) and OmegaConf.is_config(state.get("cfg")):
        # fairseq 0.12 stores plain containers; other files may hold objects of omegaconf
        state["cfg"] = OmegaConf.to_container(state["cfg"], resolve=True)
    other = contents(state, models)
    if other is not None:
        allowed = " or ".join(models)
        raise UsageError(f"CHECKPOINT {path} holds {other}; allowed: a checkpoint of {allowed}")
    return state


def architecture_of(state: Dict[str, Any]) -> Optional[str]:
    """Return the name of the architecture that a checkpoint's configuration gives."""
    # checkpoints from before fairseq 0.10 have a Namespace of all options under "args"
    stored = (state.get("cfg") or {"model": state.get("args")})["model"]
    options = stored if isinstance(stored, dict) else vars(stored)
    return options.get("_name") or options.get("arch")  # "_name" of a dataclass, "arch" before


def model_of(state: Dict[str, Any]) -> str:
    """Return the registered model behind that name; the name itself where it is unknown."""
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY

    name = architecture_of(state)
    return ARCH_MODEL_NAME_REGISTRY.get(name, name)


def contents(state: Any, models: Collection[str]) -> Optional[str]:
    """Return what a loaded object is, in words; None for a checkpoint of the ``models``."""
    if not isinstance(state, dict):
        return f"an object of type {type(state).__name__}"
    config = state.get("cfg") or {"model": state.get("args")}
    stored = config.get("model") if isinstance(config, dict) else None
    if stored is None or "model" not in state:
        # enough to recognise the file
        return f"the entries {', '.join(sorted(map(str, state))[:8])}, not a model of fairseq"
    if model_of(state) not in models:
        return f"a model of the architecture {architecture_of(state)!r}"
    return None
