"""Archives, YAML files and FASTA files that come with a model are data, and stay in their folder.

`from_pretrained` takes models from anywhere: the archive, the YAML file of a speech model and the
names of data files are as little to be trusted as the checkpoint.
"""

from __future__ import annotations

import os
import tarfile
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ..data.data_files import UnreadableFile
from ..module_overlay import ModuleOverlay, overlay_names
from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    import numpy as np

# repositories whose code a speech model may name for its synthesis
FAIRSEQ_REPOSITORIES = ("pytorch/fairseq", "facebookresearch/fairseq")


@patch(
    "fairseq.file_utils",
    because="fairseq 0.12.2 unpacks archives of models with whatever paths and links they contain: "
    "they may write outside their folder",
)
def archives_stay_in_their_folder(module: PatchedModule) -> None:
    """Refuse an archive before anything is unpacked unless all members are files below it."""
    archive_class = tarfile.TarFile

    class CheckedArchive(archive_class):  # type: ignore[misc, valid-type]
        def extractall(self, path: Any = ".", *args: Any, **kwargs: Any) -> None:
            """Unpack the archive if every member is a file or folder inside `path`."""
            for member in self.getmembers():
                reason = wrong_member(member)
                if reason is not None:
                    os.rmdir(path)  # fairseq made it for this archive
                    raise UnreadableFile(
                        f"{self.name}: refused, its member {member.name!r} is {reason}; allowed: "
                        "files and folders inside the archive"
                    )
                # no programs with the rights of another user, and nothing that cannot be removed
                member.mode = 0o755 if member.isdir() else 0o644
            super().extractall(path, *args, **kwargs)

    # its `open` makes archives of this class
    overlay_names(module, "tarfile", open=CheckedArchive.open, TarFile=CheckedArchive)


def wrong_member(member: tarfile.TarInfo) -> str | None:
    """Return why a member of an archive is not unpacked, in words; None if it may be."""
    path = PurePosixPath(member.name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts:
        return "a path outside the archive"
    if member.issym() or member.islnk():
        return f"a link to {member.linkname!r}"
    return None if member.isfile() or member.isdir() else "neither a file nor a folder"


@patch(
    "fairseq.data.audio.data_cfg",
    because="fairseq 0.12.2 reads YAML with a loader that makes objects of Python; before PyYAML "
    "5.4 any",
)
def yaml_files_hold_data_only(module: PatchedModule) -> None:
    """Read the YAML files of speech models with the loader for data, and name a wrong one."""

    def get_config_from_yaml(yaml_path: Path) -> Any:
        import yaml  # an optional requirement of fairseq

        if not yaml_path.is_file():
            raise FileNotFoundError(2, "no such YAML file", yaml_path.as_posix())  # ENOENT
        try:
            with open(yaml_path, encoding="utf-8") as stream:
                return yaml.safe_load(stream)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            reason = " ".join(str(error).split())
            raise UnreadableFile(
                f"{yaml_path}: not allowed: {reason}; allowed: numbers, strings, lists and mappings"
            ) from error

    module.get_config_from_yaml = get_config_from_yaml


@patch(
    "fairseq.models.speech_to_text.hub_interface",
    because="fairseq 0.12.2 downloads and runs the repository that the YAML file of a speech model "
    "names as its synthesis",
)
def speech_models_name_no_other_code(module: PatchedModule) -> None:
    """Take the synthesis from fairseq's own repository only."""
    hub = module.torch.hub

    def load(repository: str, *args: Any, **kwargs: Any) -> Any:
        if repository not in FAIRSEQ_REPOSITORIES:
            raise UnreadableFile(
                f"tts_model_id of the YAML file of the model: {repository!r} is not allowed, its "
                f"code would be downloaded and run; allowed: {', '.join(FAIRSEQ_REPOSITORIES)}"
            )
        return hub.load(repository, *args, **kwargs)

    overlay_names(module, "torch", hub=ModuleOverlay(hub, load=load))


@patch(
    "fairseq.data.fasta_dataset",
    because="fairseq 0.12.2 hands the name of a FASTA file to a shell, which runs what is in it",
)
def fasta_files_need_no_shell(module: PatchedModule) -> None:
    """Read the places and lengths of the sequences without other programs."""

    def _build_index(self: Any, path: str) -> tuple[np.ndarray, np.ndarray]:
        return fasta_index(module.fasta_file_path(path))

    module.FastaDataset._build_index = _build_index
    # nothing else of this module starts programs
    module.subprocess = SimpleNamespace()


def fasta_index(path: str) -> tuple[np.ndarray, np.ndarray]:
    """Return where the sequences of a FASTA file begin, in bytes, and their lengths."""
    import numpy

    places: list[int] = []
    lengths: list[int] = []
    position = 0
    with open(path, "rb") as stream:
        for line in stream:
            if line.startswith(b">"):
                places.append(position)
                lengths.append(0)
            elif lengths:
                lengths[-1] += len(line.rstrip(b"\r\n"))
            position += len(line)
    return numpy.array(places, numpy.int64), numpy.array(lengths, numpy.int64)
