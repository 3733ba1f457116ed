"""The format of a packed folder, and reading it.

    manifest.json        options, sub-word models, tokenizer, files of the weights
    model.safetensors    the parameters (model.2.safetensors .. of an ensemble)
    twin.safetensors     the backward network of a twin, where there is one
    dict.LANGUAGE.txt, sub-word models, settings of recordings
    SHA256SUMS           of all files above; ``sha256sum -c SHA256SUMS`` checks them as well
    README.md            the model card, which may be edited

Nothing in it is a pickle.
"""

import json
import os
import re
from argparse import Namespace
from pathlib import Path
from typing import Any, Collection, Dict, List, NamedTuple, Optional, Tuple

from omegaconf import DictConfig, OmegaConf
from torch import Tensor

from ..compat.checkpoints.data_only import check_configuration
from ..compat.checkpoints.dictionary_digests import ENTRY
from ..compat.file_sums import file_sum
from .subword_models import SubwordModels

MANIFEST, SUMS, CARD = "manifest.json", "SHA256SUMS", "README.md"
FORMAT = 1
NEEDS_EXTRA = "needs the package safetensors: pip install 'fairseq-ext[pack]'"
# what reading a manifest raises where it is another document
MALFORMED = (KeyError, TypeError, AttributeError, RecursionError, json.JSONDecodeError)


class Packed(NamedTuple):
    """What a packed folder holds; ``states``: the file and the checkpoint of each model."""

    folder: Path
    states: List[Tuple[Path, Dict[str, Any]]]
    subwords: SubwordModels
    tokenizer: Optional[str]


def is_packed(path: Path) -> bool:
    """True if the path is a folder written by ``fairseq-ext pack``."""
    return (path / MANIFEST).is_file()


def read_packed(folder: Path) -> Packed:
    """Return what a packed folder holds.

    Raises ValueError, naming the file, where its checksum differs or it is missing, and for a
    folder of a later format. FileNotFoundError for one without checksums.
    """
    names = check_sums(folder)
    place = folder / MANIFEST
    try:
        manifest = json.loads(place.read_text(encoding="utf-8"))
        if manifest.get("format") == FORMAT:
            return _read(folder, manifest, names)
    except MALFORMED as error:
        raise ValueError(
            f"{place}: {type(error).__name__} {error}: not what fairseq-ext pack writes; pack the "
            "model again"
        ) from error
    raise ValueError(
        f"{place}: format {manifest.get('format')!r}; allowed: {FORMAT}. A later version of "
        "fairseq-ext has written it"
    )


def _read(folder: Path, manifest: Dict[str, Any], names: Collection[str]) -> Packed:
    """Return what a manifest speaks of; ValueError for a file outside, and for a resolver."""
    subwords, models = manifest["subwords"], manifest["models"]
    weights = [entry[key] for entry in models for key in ("weights", "twin") if entry[key]]
    files = {language: folder / name for language, name in subwords["files"].items()}
    coder = SubwordModels(subwords["kind"], files, subwords["options"])
    # packed folders of earlier versions have addresses
    shared = {key: name for key, name in coder.shared_files.items() if "://" not in name}
    for name in (*weights, *subwords["files"].values(), *shared.values()):
        if name not in names:
            raise ValueError(
                f"{folder / MANIFEST}: it names the file {name!r}; allowed: those in {SUMS}"
            )
    check_configuration(manifest, str(folder / MANIFEST))
    shared = {key: str(folder / name) for key, name in shared.items()}
    coder = coder._replace(options={**subwords["options"], **shared})
    states = [_state(folder, entry) for entry in models]
    return Packed(folder, states, coder, manifest["tokenizer"])


def _state(folder: Path, entry: Dict[str, Any]) -> Tuple[Path, Dict[str, Any]]:
    """Return the file of a model's parameters, and the checkpoint that fairseq reads."""
    file = folder / entry["weights"]
    twin = entry["twin"] and read_tensors(folder / entry["twin"], entry["twin_aliases"])
    return file, {
        "args": None,
        "cfg": configuration(entry["options"]),
        "model": read_tensors(file, entry["aliases"]),
        "criterion": twin,
        "optimizer_history": [{"num_updates": entry["updates"]}],
        # packed folders of earlier versions record none
        "extra_state": {ENTRY: entry.get("dictionaries") or {}},
    }


def check_sums(folder: Path) -> Collection[str]:
    """Return the names of the files; an error unless all are as they were packed, and no more."""
    sums = folder / SUMS
    if not sums.is_file():
        raise FileNotFoundError(f"{sums}: missing; allowed: a folder written by fairseq-ext pack")
    names = {}
    for number, line in enumerate(sums.read_text(encoding="utf-8").splitlines(), start=1):
        digest, separator, name = line.partition("  ")
        if not name or Path(name).name != name or "\\" in name:
            raise ValueError(f"{sums}, line {number}: {line!r}; allowed: SHA-256, two blanks, file")
        names[name] = digest
    if MANIFEST not in names:
        raise ValueError(f"{sums}: {MANIFEST} is missing; pack the model again")
    for name, digest in names.items():
        path = folder / name
        if path.is_symlink():
            raise ValueError(f"{path}: a symbolic link; allowed: files")
        if not path.is_file():
            raise ValueError(f"{path}: missing; pack the model again")
        if file_sum(path) != digest:
            raise ValueError(
                f"{path}: its checksum differs from {SUMS}: the file was changed or damaged; pack "
                "the model again"
            )
    for path in folder.iterdir():
        # what a repository or a system keeps beside the files is read by nobody
        if path.name not in (*names, SUMS, CARD) and not path.name.startswith("."):
            raise ValueError(f"{path}: {SUMS} does not have it; allowed: take it out of the folder")
    return names


# ---------------------------------------------------------------- weights


def safetensors_torch() -> Any:
    """Return the module that reads and writes weights; ImportError with the remedy."""
    try:
        import safetensors.torch
    except ImportError as error:
        raise ImportError(f"a packed folder {NEEDS_EXTRA}") from error
    return safetensors.torch


def read_tensors(path: Path, aliases: Dict[str, str]) -> Dict[str, Tensor]:
    """Return the tensors of a file; ``aliases``: {name: name of the same tensor}."""
    library = safetensors_torch()
    import safetensors

    try:
        tensors = library.load_file(str(path))
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path}: {error}; pack the model again") from error
    return {**tensors, **{name: tensors[other] for name, other in aliases.items()}}


def write_tensors(tensors: Dict[str, Tensor], path: Path) -> Dict[str, str]:
    """Write tensors, each once; return {name: name of the same tensor} of the others."""
    first: Dict[Any, str] = {}
    aliases, written = {}, {}
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise ValueError(f"parameter {name}: {type(tensor).__name__}; allowed: tensors")
        # tied parameters: two names of one tensor
        key = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype)
        if tensor.numel() and key in first:
            aliases[name] = first[key]
            continue
        first[key] = name
        # a view of a larger tensor would be written whole
        written[name] = tensor.detach().clone().contiguous()
    library = safetensors_torch()
    import safetensors

    try:
        library.save_file(written, str(path), metadata={"format": "pt"})
    except safetensors.SafetensorError as error:  # of the system, with its number in the text
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error
    return aliases


# ---------------------------------------------------------------- options


def plain_options(cfg: DictConfig) -> Dict[str, Any]:
    """Return the groups of a configuration as what JSON can hold, without paths of this machine."""
    groups: Dict[str, Any] = {}
    for name in cfg:
        group = cfg[name]
        if isinstance(group, Namespace):  # of tasks and models without a dataclass
            values = _values(vars(group))
            # code that reads such options expects all of them
            groups[name] = {"namespace": {**dict.fromkeys(vars(group)), **values}}
        elif OmegaConf.is_config(group):
            values = OmegaConf.to_container(group, resolve=True, enum_to_str=True)
            assert isinstance(values, dict)  # groups have names
            groups[name] = _values(values)
        elif group is not None:
            groups[name] = group
    return groups


def _values(values: Dict[str, Any]) -> Dict[str, Any]:
    """Return options without absolute paths, which say nothing elsewhere."""
    plain = {}
    for name, value in values.items():
        if isinstance(value, str) and Path(value).is_absolute():
            continue
        value = list(value) if isinstance(value, tuple) else value
        try:
            json.dumps(value)
        except TypeError:
            continue  # objects that a task has put among its options, such as a dictionary
        plain[str(name)] = value
    return plain


def configuration(groups: Dict[str, Any]) -> DictConfig:
    """Return the configuration of ``plain_options``."""
    values = {
        name: Namespace(**group["namespace"])
        if isinstance(group, dict) and set(group) == {"namespace"}
        else group
        for name, group in groups.items()
    }
    return OmegaConf.create(values, flags={"allow_objects": True})
