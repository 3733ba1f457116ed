"""The model card of a packed folder, in Markdown with a head in YAML."""

import platform
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import torch
from fairseq import __version__ as fairseq_version
from fairseq.data import indexed_dataset
from fairseq.tasks import FairseqTask

from ..compat.checkpoints.configurations import chosen_name, options_of
from ..streams.language_pair import languages as languages_of_pairs
from .loading import dictionaries_of
from .model import Model
from .stored_models import StoredModel
from .train_command import train_command

# names that model hubs know
PIPELINES = {
    "translation": "translation",
    "classification": "text-classification",
    "language_model": "text-generation",
    "speech": "automatic-speech-recognition",
    "captions": "image-to-text",
}
SPLITS = ("train", "valid", "test")
USES = {
    "translation": 'model.translate(["{text}"])[0].text',
    "classification": 'model.classify(["{text}"])[0].label',
    "language_model": 'model.perplexity(["{text}"])[0].perplexity',
    "speech": 'model.translate(["recording.wav"])[0].text',
    "captions": 'model.translate(["features.npy"])[0].text',
}
LONGEST_LIST = 12


class Facts(NamedTuple):
    """What a card is made of.

    model: as loaded. stored: the checkpoints. data: the data folder. scores: Markdown, or None.
    """

    model: Model
    stored: List[StoredModel]
    data: Path
    scores: Optional[str]


def model_card(facts: Facts, name: str) -> str:
    """Return the card of a model; ``name``: of the folder."""
    parts = [
        _head(facts),
        f"# {name}\n\n{_summary(facts)}",
        f"## Use\n\n{_use(facts, name)}",
        f"## Sizes\n\n{_sizes(facts)}",
        f"## Data\n\n{_data(facts)}",
        f"## Scores\n\n{_scores(facts)}",
        f"## Training\n\n{_training(facts)}",
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _table(header: Tuple[str, ...], rows: List[Tuple[Any, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in lines)


def languages(facts: Facts) -> List[str]:
    """Return the languages of all directions, each once."""
    model = facts.model
    if len(model.directions) > 1:
        return languages_of_pairs(model.directions)
    return list(dict.fromkeys(model.pair or ()))


def _head(facts: Facts) -> str:
    """Return the lines that model hubs read."""
    lines = ["---"]
    # codes of languages; a side of labels is none
    codes = [code for code in languages(facts) if 2 <= len(code) <= 3]
    if codes:
        lines += ["language:", *(f"  - {code}" for code in codes)]
    lines += ["library_name: fairseq", f"pipeline_tag: {PIPELINES[facts.model.kind]}", "---"]
    return "\n".join(lines)


def _architecture(facts: Facts) -> str:
    return str(chosen_name(facts.stored[0].cfg.model, "model"))


def _summary(facts: Facts) -> str:
    """Return what the model is, in two sentences."""
    task = chosen_name(facts.stored[0].cfg.task, "task")
    text = f"A `{_architecture(facts)}` of the task `{task}`"
    if len(facts.stored) > 1:
        text = f"An ensemble of {len(facts.stored)} models. Each is a{text[1:]}"
    directions = facts.model.directions
    if not directions:
        return f"{text}."
    shown = ", ".join(directions[:LONGEST_LIST])
    more = f" and {len(directions) - LONGEST_LIST} more" if len(directions) > LONGEST_LIST else ""
    return f"{text}. Directions: {shown}{more}."


def _use(facts: Facts, name: str) -> str:
    """Return the lines of Python that use the model."""
    direction = f', direction="{facts.model.direction}"' if facts.model.direction else ""
    use = USES[facts.model.kind].format(text="...")
    return (
        "The folder holds all that the model needs. `pip install 'fairseq-ext[pack]'` and "
        "`pip install --no-deps fairseq==0.12.2` bring the rest.\n\n"
        f'```python\nimport fairseq_ext\n\nmodel = fairseq_ext.load("{name}"{direction})\n'
        f"print({use})\n```"
    )


def _sizes(facts: Facts) -> str:
    """Return the table of parameters and vocabularies."""
    rows: List[Tuple[Any, ...]] = []
    for number, model in enumerate(facts.model.loaded.models, start=1):
        # tied parameters count once
        count = sum(parameter.numel() for parameter in model.parameters())
        mark = f" of model {number}" if len(facts.stored) > 1 else ""
        rows.append((f"parameters{mark}", f"{count:,}"))
    if facts.model.loaded.twin is not None:
        count = sum(parameter.numel() for parameter in facts.model.loaded.twin.parameters())
        rows.append(("parameters of the backward network", f"{count:,}"))
    for language, dictionary in vocabularies(facts.model.task).items():
        mark = f" of {language}" if language else ""
        rows.append((f"vocabulary{mark}", f"{len(dictionary):,}"))
    subwords = facts.model.loaded.subwords.kind or "none: texts are split at blanks"
    rows.append(("sub-words", subwords))
    return _table(("", "size"), rows)


def vocabularies(task: FairseqTask) -> Dict[str, Any]:
    """Return {language: dictionary}; "" where there is one without a language."""
    dictionaries = dictionaries_of(task)
    # a language model may write fewer words than it reads; recordings and images are no texts
    return dictionaries if any(dictionaries) else {"": task.target_dictionary}


def _data(facts: Facts) -> str:
    """Return the table of the binarised data, or a sentence where there are none."""
    rows: List[Tuple[Any, ...]] = []
    for split in SPLITS:
        for path in sorted(facts.data.glob(f"{split}*.idx")):
            prefix = str(path)[: -len(".idx")]
            kind = indexed_dataset.infer_dataset_impl(prefix)
            dataset = indexed_dataset.make_dataset(prefix, kind) if kind else None
            if dataset is not None:
                # each sentence has an end symbol, which is no word
                tokens = int(np.sum(dataset.sizes, dtype=np.int64)) - len(dataset)
                rows.append((path.stem, f"{len(dataset):,}", f"{tokens:,}"))
        table = facts.data / f"{split}.tsv"
        if table.is_file():  # of recordings: the first line names the columns
            with open(table, encoding="utf-8") as stream:
                rows.append((table.name, f"{sum(1 for _ in stream) - 1:,}", "-"))
    if not rows:
        return "The data were not there when the model was packed."
    return _table(("file", "sentences", "tokens"), rows)


def _scores(facts: Facts) -> str:
    """Return what the checkpoints say about validation, and what the caller has measured."""
    rows: List[Tuple[Any, ...]] = []
    for entry in facts.stored:
        extra = entry.state.get("extra_state") or {}
        options = options_of(entry.cfg.get("checkpoint"))
        metric = options.get("best_checkpoint_metric") or "loss"
        for title, value in (("at this checkpoint", extra.get("val_loss")),
                             ("best of the training", extra.get("best"))):  # fmt: skip
            if value is not None:
                rows.append((f"validation {metric}, {title}", f"{value:.4g}"))
    text = _table(("", "score"), rows) if rows else "The checkpoint holds no validation score."
    return f"{text}\n\n{facts.scores.strip()}" if facts.scores else text


def _training(facts: Facts) -> str:
    """Return the command, the length of the training, and the versions."""
    entry = facts.stored[0]
    history = entry.state.get("optimizer_history") or [{}]
    extra = entry.state.get("extra_state") or {}
    epoch = (extra.get("train_iterator") or {}).get("epoch")
    length = f"{history[-1].get('num_updates', 0):,} updates"
    length += f", in epoch {epoch}" if epoch else ""
    versions = [
        ("fairseq-ext", _own_version()),
        ("fairseq", fairseq_version),
        ("torch", torch.__version__),
        ("Python", platform.python_version()),
    ]
    return (
        f"{length}. What differs from fairseq's defaults:\n\n```bash\n{train_command(entry.cfg)}\n"
        f"```\n\nVersions that packed the model:\n\n{_table(('', 'version'), list(versions))}"
    )


def _own_version() -> str:
    from .. import __version__

    return __version__
