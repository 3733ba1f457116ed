"""`fairseq-ext average`: the mean of the parameters of several checkpoints.

theta = (theta_1 + ... + theta_n) / n, accumulated in float32, for every floating-point tensor of
the model and of the criterion (a twin's backward network). The result keeps the configuration and
drops the optimiser, so that fairseq-generate and `--finetune-from-model` read it and its size is
that of the parameters.
"""

import re
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ...compat.checkpoints.changed_options import leaves
from ...compat.checkpoints.configurations import options_of, stored_group
from ...compat.checkpoints.dictionary_digests import ENTRY, stored_digests, trained_languages
from ...compat.checkpoints.option_effects import changes_function
from .. import AddValues, UsageError, check_apart, check_new, check_once, save_atomically

if TYPE_CHECKING:
    from torch import Tensor

Parameters = Dict[str, "Tensor"]
OF_CRITERION = "criterion."  # in front of names that the model may have as well
# what fairseq-train writes: checkpoint7.pt (epoch 7), checkpoint_2_350.pt (epoch 2, update 350)
NAMES = {
    "epochs": re.compile(r"checkpoint(\d+)\.pt"),
    "updates": re.compile(r"checkpoint_\d+_(\d+)\.pt"),
}
# ending of buffers that fairseq makes for their type alone, whatever is in their memory
UNSET = "_float_tensor"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of `fairseq-ext average`."""
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--inputs", nargs="+", action=AddValues, metavar="FILE", help="checkpoints to average"
    )
    where.add_argument("--dir", metavar="DIR", help="a --save-dir; needs --last")
    parser.add_argument(
        "--last", type=int, metavar="N", help="average the N newest checkpoints of --dir"
    )
    parser.add_argument(
        "--by",
        choices=sorted(NAMES),
        help="what --last counts: checkpointE.pt (epochs; default) or checkpoint_E_U.pt (updates)",
    )
    parser.add_argument("--output", required=True, metavar="FILE", help="checkpoint to write")
    parser.add_argument("--force", action="store_true", help="replace --output if it exists")


def newest(directory: Union[str, Path], count: Optional[int], unit: str) -> List[Path]:
    """Return the `count` newest checkpoints of a folder, oldest first.

    Args:
        directory: a --save-dir.
        count: --last; None, where it is missing, is refused.
        unit: "epochs" or "updates": which of the files are counted, see `NAMES`.

    Raises UsageError when the folder or enough checkpoints are missing.
    """
    folder = Path(directory)
    if not folder.is_dir():
        raise UsageError(f"--dir {folder} is not a folder")
    if count is None or count < 1:
        raise UsageError(f"--last {count}: --dir needs --last N with N >= 1")
    numbered = []
    for path in folder.iterdir():
        match = NAMES[unit].fullmatch(path.name)
        if match and path.is_file():
            numbered.append((int(match.group(1)), path))
    numbered.sort()  # by epoch or update: file times change when a folder is copied
    if len(numbered) < count:
        raise UsageError(
            f"--last {count}: {folder} holds {len(numbered)} checkpoints by {unit} "
            f"({NAMES[unit].pattern}); allowed: 1 to that number, or another --by"
        )
    return [path for _, path in numbered[-count:]]


def check_same(reference: Parameters, parameters: Parameters, path: Union[str, Path]) -> None:
    """Raise UsageError unless the checkpoint at `path` has the names and shapes of the first."""
    differing = sorted(set(reference) ^ set(parameters))  # names that one of them lacks
    if differing:
        raise UsageError(
            f"{path} is of another model: {len(differing)} parameters are not in both, "
            f"such as {differing[0]}"
        )
    for name, tensor in parameters.items():
        if tensor.shape != reference[name].shape:
            raise UsageError(
                f"{path} is of another model: {name} has shape {tuple(tensor.shape)}, "
                f"in the first checkpoint {tuple(reference[name].shape)}"
            )


def check_settings(
    reference: Mapping[str, Any], settings: Mapping[str, Any], path: Union[str, Path]
) -> None:
    """Raise UsageError where the checkpoint at `path` computes something else than the first.

    Names and shapes of the parameters do not show the number of heads, nor, with a joined
    dictionary, the direction.
    """
    for name in sorted(set(reference) & set(settings)):
        if settings[name] != reference[name]:
            raise UsageError(
                f"{path} was trained with {name} {settings[name]!r}, the first checkpoint with "
                f"{reference[name]!r}; allowed: checkpoints of one model"
            )


def settings_of(state: Dict[str, Any]) -> Dict[str, Any]:
    """Return the options of a checkpoint that say what its parameters compute."""
    model, task = (options_of(stored_group(state, kind)) for kind in ("model", "task"))
    settings = {name: value for name, value in leaves(model) if changes_function(name)}
    pairs = model.get("lang_pairs")
    if isinstance(pairs, str):  # those that the model was trained for, in any order
        settings["lang_pairs"] = ",".join(sorted(pairs.split(",")))
    # a task of several pairs has one model for all of them
    if "lang_pairs" not in task:
        pair = trained_languages(task, stored_digests(state))
        sides = zip(("source_lang", "target_lang"), pair)
        settings.update({side: language for side, language in sides if language is not None})
    return settings


def add_digests(
    digests: Dict[str, str], state: Dict[str, Any], path: Union[str, Path]
) -> Dict[str, str]:
    """Return the digests so far with those of the checkpoint at `path`, which may record none.

    digests: {language or side: digest of the training's dictionary}. Raises UsageError for another
    dictionary, whose words have other rows in the embeddings.
    """
    stored = stored_digests(state)
    for name, digest in stored.items():
        if digests.get(name, digest) != digest:
            raise UsageError(
                f"{path} was trained with another dictionary of {name} than the checkpoints before "
                "it; allowed: checkpoints of one dictionary"
            )
    return {**digests, **stored}


def parameters_of(state: Dict[str, Any]) -> Parameters:
    """Return {name: tensor} of the model, and {"criterion." + name: tensor} of the criterion."""
    criterion = (state.get("criterion") or {}).items()
    return {**state["model"], **{OF_CRITERION + name: tensor for name, tensor in criterion}}


def updates_of(history: Sequence[Mapping[str, Any]]) -> int:
    """Return the updates of a checkpoint by its history of optimisers; 0 without one."""
    return int(history[-1].get("num_updates", 0)) if history else 0


def mean(paths: Sequence[Union[str, Path]]) -> Tuple[Dict[str, Any], Parameters]:
    """Return the state of the last checkpoint and {name: mean}, names as in `parameters_of`.

    The state has the digests of the dictionaries of all checkpoints, and the updates of the one
    with the most: files may be listed by their scores. Raises UsageError for
    checkpoints of several models, directions or dictionaries.

    paths: checkpoint files; one is in memory at a time. Half-precision parameters come out in
    float32; integers and flags (version markers, counters) are those of the last checkpoint, as are
    buffers without a value (`UNSET`), where NaN says nothing.
    Parameters that share memory in all checkpoints (tied embeddings) share it in the result too.
    """
    import torch
    from fairseq.checkpoint_utils import load_checkpoint_to_cpu

    total: Parameters = {}
    state: Dict[str, Any] = {}
    digests: Dict[str, str] = {}
    settings: Dict[str, Any] = {}
    histories: List[List[Dict[str, Any]]] = []
    places: Dict[str, Tuple[Any, ...]] = {}  # {name: where it lies, in each checkpoint}
    for path in paths:
        state = load_checkpoint_to_cpu(str(path))
        parameters = parameters_of(state)
        if total:
            check_same(total, parameters, path)
            check_settings(settings, settings_of(state), path)
        settings = settings or settings_of(state)
        digests = add_digests(digests, state, path)
        histories.append(state.get("optimizer_history") or [])
        for name, tensor in parameters.items():
            # a view of a part of the same memory is another parameter
            place = (tensor.data_ptr(), tensor.shape, tensor.stride())
            places[name] = (*places.get(name, ()), place)
            if not tensor.is_floating_point() or name.endswith(UNSET):
                total[name] = tensor
                continue
            if not tensor.isfinite().all():
                raise UsageError(
                    f"{path}: {name} holds NaN or an infinity, and so would the mean; allowed: "
                    "checkpoints with finite parameters"
                )
            # in float32: a sum of half-precision values would be rounded at every step
            wide = tensor if tensor.dtype == torch.float64 else tensor.float()
            total[name] = wide / len(paths) + total[name] if name in total else wide / len(paths)
    first: Dict[Tuple[Any, ...], str] = {}
    for name in total:
        # equal, as each has been added up by itself
        total[name] = total[first.setdefault(places[name], name)]
    state["extra_state"] = {**(state.get("extra_state") or {}), ENTRY: digests}
    state["optimizer_history"] = max(histories, key=updates_of)
    return state, total


def average_checkpoints(args: Namespace) -> int:
    """Average and write; print what went in."""
    from omegaconf import OmegaConf

    for option, value in (("--last", args.last), ("--by", args.by)):
        if args.inputs and value is not None:
            raise UsageError(f"{option} {value} belongs to --dir; --inputs are averaged all")
    paths = args.inputs or newest(args.dir, args.last, args.by or "epochs")
    for path in paths:
        if not Path(path).is_file():
            raise UsageError(f"--inputs {path} is not a file")
    check_once("--inputs", paths)
    check_apart(args.output, paths)
    check_new(args.output, args.force)
    state, parameters = mean(paths)
    # in the order of the checkpoint
    state["model"] = {name: parameters.pop(name) for name in state["model"]}
    # what is left is the criterion's; fairseq writes None where it has no parameters
    rest = {name[len(OF_CRITERION) :]: tensor for name, tensor in parameters.items()}
    state["criterion"] = rest or None
    if OmegaConf.is_config(state.get("cfg")):
        # plain containers, as fairseq-train writes them
        state["cfg"] = OmegaConf.to_container(state["cfg"], resolve=True, enum_to_str=True)
    state.pop("last_optimizer_state", None)  # moments belong to the parameters of one update
    # where the run stood means nothing for a mean; its EMA is not one of the mean either
    origin = [Path(path).name for path in paths]
    state["extra_state"] = {"averaged_from": origin, ENTRY: stored_digests(state)}
    save_atomically(state, args.output)
    print(f"average of {len(paths)} checkpoints written to {args.output}:")
    print("\n".join(f"  {path}" for path in paths))
    return 0
