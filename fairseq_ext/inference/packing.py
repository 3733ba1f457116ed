"""Writing a packed folder: all that a model needs to be used elsewhere."""

import json
import os
import shutil
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from fairseq.file_utils import cached_path

from ..compat.atomic_files import folder_beside, replace_folder
from ..compat.checkpoints.dictionary_digests import digests
from ..compat.file_sums import file_sum
from .card import Facts, model_card
from .loading import load
from .model import Model
from .packed import (
    CARD,
    FORMAT,
    MANIFEST,
    SUMS,
    is_packed,
    plain_options,
    read_packed,
    safetensors_torch,
    write_tensors,
)
from .places import PathLike
from .stored_models import StoredModel, name_languages, read_checkpoint
from .subword_models import SubwordModels, SubwordsArgument


class PackOptions(NamedTuple):
    """How a model is packed.

    subwords, bpe, tokenizer: as of ``load``. scores: a Markdown file for the model card, such as
    ``fairseq-ext evaluate`` writes. with_twin: keep the backward network. force: replace a packed
    folder.
    """

    subwords: SubwordsArgument = None
    bpe: Optional[str] = None
    tokenizer: Optional[str] = None
    scores: Optional[Path] = None
    with_twin: bool = True
    force: bool = False


def pack(
    checkpoints: Sequence[PathLike],
    data: Optional[PathLike],
    output: PathLike,
    options: PackOptions = PackOptions(),  # noqa: B008  (it is immutable)
) -> Path:
    """Write the folder and return it. It is there whole, or not at all.

    Args:
        checkpoints: of one model, or of an ensemble.
        data: the data folder, as of ``load``.
        output: the folder to write.
        options: see ``PackOptions``.

    Raises ValueError or an OSError, naming what cannot be used; ImportError without safetensors.
    """
    safetensors_torch()  # missing: said before anything else is done
    target = Path(output)
    check_output(target, options.force)
    model = load(
        [Path(path) for path in checkpoints],
        data,
        subwords=options.subwords,
        bpe=options.bpe,
        tokenizer=options.tokenizer,
    )
    scores = options.scores.read_text(encoding="utf-8") if options.scores else None
    stored = [read_checkpoint(Path(path)) for path in checkpoints]
    for entry in stored:
        # the folder has no names of data that would tell them
        name_languages(entry, model.pair or (None, None))
    with folder_beside(os.path.realpath(target)) as folder:
        work = Path(folder)
        _write(work, model, stored, options.with_twin)
        facts = Facts(model, stored, model.loaded.folder, scores)
        (work / CARD).write_text(model_card(facts, target.name), encoding="utf-8")
        _write_sums(work)
        _check_whole(work)
        replace_folder(folder, str(target))
    return target


def check_output(target: Path, force: bool) -> None:
    """Raise ValueError where the folder cannot be written."""
    if not target.parent.is_dir():
        raise ValueError(f"--output {target}: {target.parent} is not a folder")
    if target.exists() and not force:
        raise ValueError(f"--output {target} exists; give another name, or --force to replace it")
    # never a folder with something else in it
    if target.exists() and not is_packed(target):
        raise ValueError(f"--output {target} is no packed folder; --force leaves it alone")


def _write(folder: Path, model: Model, stored: List[StoredModel], with_twin: bool) -> None:
    """Write all files but the card and the checksums."""
    models = []
    for number, entry in enumerate(stored, start=1):
        mark = "" if number == 1 else f".{number}"
        parameters = entry.state.get("criterion") if model.loaded.twin is not None else None
        twin = f"twin{mark}.safetensors" if parameters and with_twin else None
        history = entry.state.get("optimizer_history") or [{}]
        models.append(
            {
                "weights": f"model{mark}.safetensors",
                "aliases": write_tensors(entry.state["model"], folder / f"model{mark}.safetensors"),
                "twin": twin,
                "twin_aliases": write_tensors(parameters, folder / twin)
                if parameters and twin
                else {},
                "updates": history[-1].get("num_updates", 0),
                "options": plain_options(entry.cfg),
                "dictionaries": digests(model.task),
            }
        )
    _copy_dictionaries(folder, model)
    manifest = {
        "format": FORMAT,
        "kind": model.kind,
        "direction": model.direction,
        "directions": list(model.directions),
        # its options are among those of the model
        "tokenizer": model.loaded.tokenizer and model.loaded.tokenizer["_name"],
        "subwords": _copy_subwords(folder, model.loaded.subwords),
        "models": models,
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def _copy_dictionaries(folder: Path, model: Model) -> None:
    """Copy what the task reads of the data folder."""
    data, task = model.loaded.folder, model.task
    settings = getattr(getattr(task, "data_cfg", None), "config", None)
    if settings is not None:
        _copy_settings(folder, data, settings, task.data_cfg.vocab_filename)
        return
    # the second: of fairseq's multilingual tasks
    of_languages = getattr(task, "dictionaries", None) or getattr(task, "dicts", None)
    if of_languages:
        names = [f"dict.{language}.txt" for language in of_languages]
    elif model.kind == "classification":
        names = [f"dict.{task.cfg.source_lang}.txt", f"dict.{task.cfg.target_lang}.txt"]
    elif model.pair:
        names = [f"dict.{language}.txt" for language in model.pair]
    else:
        names = ["dict.txt"]
    for name in names:
        shutil.copyfile(data / name, folder / name)


def _copy_settings(folder: Path, data: Path, settings: Dict[str, Any], vocabulary: str) -> None:
    """Copy the settings of recordings, and the files that they name, which lie beside them then."""
    import yaml

    content = dict(settings)
    shutil.copyfile(data / vocabulary, folder / Path(vocabulary).name)
    content["vocab_filename"] = Path(vocabulary).name
    content["audio_root"] = "."
    for name, group in settings.items():
        if not isinstance(group, dict):
            continue
        content[name] = dict(group)
        for key, value in group.items():
            places = [Path(value), data / value] if isinstance(value, str) else []
            present = next((place for place in places if place.is_file()), None)
            if present:  # statistics, models of sub-words
                shutil.copyfile(present, folder / present.name)
                content[name][key] = present.name
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    (folder / "config.yaml").write_text(text, encoding="utf-8")


def _copy_subwords(folder: Path, models: SubwordModels) -> Dict[str, Any]:
    """Copy the sub-word models; return their part of the manifest."""
    files: Dict[str, str] = {}
    names: Dict[Path, str] = {}
    for language, path in models.by_language.items():
        if path not in names:
            # files of several languages may have one name, in folders of their own
            taken = path.name in names.values()
            names[path] = f"{language}.{path.name}" if taken else path.name
            shutil.copyfile(path, folder / names[path])
        files[language] = names[path]
    options = dict(models.options)
    for option, place in models.shared_files.items():
        path = Path(cached_path(place))  # the file of an address, as the coder reads it
        # under the option's name: those of a kind may have one name, or that of another file here
        options[option] = f"{option}{path.suffix}"
        shutil.copyfile(path, folder / options[option])
    return {"kind": models.kind, "files": files, "options": options}


def _write_sums(folder: Path) -> None:
    """Write the checksums of all files but the card."""
    names = sorted(path.name for path in folder.iterdir() if path.name not in (CARD, SUMS))
    lines = [f"{file_sum(folder / name)}  {name}\n" for name in names]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def _check_whole(folder: Path) -> None:
    """Load what was written: nothing else is needed."""
    read_packed(folder)
    load(folder)
