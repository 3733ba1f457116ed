"""Reading a checkpoint for the tools."""

import pickle
from pathlib import Path
from typing import Any, Collection, Dict, Optional, Union

from ...compat.checkpoints.configurations import registered_model, stored_group, stored_name
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
        reason = f"damaged, or another kind of file ({type(error).__name__}: {error})"
        raise UsageError(f"CHECKPOINT {path} cannot be read as a checkpoint: {reason}") from error
    if isinstance(state, dict) and state.get("cfg") is None and state.get("args") is not None:
        # from before fairseq 0.10, which makes a configuration of the options
        state = checkpoint_utils.load_checkpoint_to_cpu(str(path))
    if isinstance(state, dict) and OmegaConf.is_config(state.get("cfg")):
        # fairseq 0.12 stores plain containers; other files may hold objects of omegaconf
        state["cfg"] = OmegaConf.to_container(state["cfg"], resolve=True)
    other = contents(state, models)
    if other is not None:
        allowed = " or ".join(models)
        raise UsageError(f"CHECKPOINT {path} holds {other}; allowed: a checkpoint of {allowed}")
    return state


def model_of(state: Dict[str, Any]) -> str:
    """Return the registered model that a checkpoint of `read` is of."""
    name = registered_model(stored_group(state, "model"))
    assert name is not None  # `read` refuses files without one
    return name


def contents(state: Any, models: Collection[str]) -> Optional[str]:
    """Return what a loaded object is, in words; None for a checkpoint of the ``models``."""
    if not isinstance(state, dict):
        return f"an object of type {type(state).__name__}"
    if stored_group(state, "model") is None or "model" not in state:
        # enough to recognise the file
        return f"the entries {', '.join(sorted(map(str, state))[:8])}, not a model of fairseq"
    if registered_model(stored_group(state, "model")) not in models:
        return f"a model of the architecture {stored_name(state, 'model')!r}"
    return None
