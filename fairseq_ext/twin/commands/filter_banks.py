"""`fairseq-ext filter-banks`: recordings as data for fairseq's task speech_to_text.

fairseq-ext filter-banks train.tsv valid.tsv --audio-root wavs --sample-rate 8000 --output DATA
fairseq-ext filter-banks new-recordings --output DATA

A table is a tab-separated file with a line of column names, at least `id`, `audio` (a wav file) and
`tgt_text`. What is written:

    DATA/features/SPLIT/ID.npy   40 log-mel filter banks and the energy, deltas, deltas of these
    DATA/SPLIT.tsv               the table with `audio` and `n_frames` of the features
    DATA/dict.txt                the characters of the training table
    DATA/gcmvn.npz               mean and standard deviation of its features
    DATA/config.yaml             all that fairseq has to know, and the settings of the features

The training table is the one whose name begins with "train"; without one, DATA must have these
files already and its settings are used. A folder of wav files gives features alone.
"""

import csv
import math
import os
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

import numpy as np

from ...compat.atomic_files import folder_beside, signals_wait
from ...compat.text_lines import UnreadableText, lines_of
from ...compat.user_errors import option_of
from ...tools import UsageError, atomic_path, check_apart, check_new
from ..audio import AudioError, Banks, filter_banks, is_silent, read_wav, triangles

COLUMNS = ("id", "audio", "tgt_text")
SPACE = "\u2581"  # what stands for a blank in fairseq's `--bpe characters`
SMALLEST = 1e-5  # of a standard deviation


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of `fairseq-ext filter-banks`."""
    parser.add_argument(
        "inputs", nargs="+", metavar="INPUT", help="SPLIT.tsv, or a folder of wav files"
    )
    parser.add_argument(
        "--output",
        required=True,
        metavar="DATA",
        help="folder to write; it is made if it does not exist",
    )
    parser.add_argument(
        "--audio-root", metavar="DIR", help="folder of the wav files (default: that of the table)"
    )
    parser.add_argument("--sample-rate", type=int, metavar="HZ", help="sample rate of all files")
    parser.add_argument(
        "--mel-bins", type=int, metavar="M", help="number of filter banks (default: 40)"
    )
    parser.add_argument(
        "--window-ms", type=float, metavar="MS", help="length of a frame (default: 25)"
    )
    parser.add_argument(
        "--hop-ms", type=float, metavar="MS", help="step from frame to frame (default: 10)"
    )
    parser.add_argument(
        "--root",
        metavar="DIR",
        help="path at which DATA will be used, for the paths in config.yaml (default: DATA)",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace tables of the same names, and config.yaml"
    )


class Split(NamedTuple):
    """A table: name, the names of its columns, its rows, and the wav file of each row.

    columns: empty for a folder of wav files.
    """

    name: str
    columns: List[str]
    rows: List[Dict[str, str]]
    paths: List[Path]


def read_folder(folder: Path) -> Split:
    """Return the wav files of a folder; UsageError if there are none."""
    paths = sorted(folder.glob("*.wav"))
    if not paths:
        raise UsageError(f"{folder} holds no .wav file")
    return Split(folder.name, [], [{"id": path.stem} for path in paths], paths)


def _check_row(row: Dict[Any, Any], place: str, seen: Set[str]) -> None:
    """Raise UsageError for an empty or superfluous value, or an id that is there twice."""
    empty = next((name for name, value in row.items() if name and not value), None)
    # csv puts values beyond the last column under None
    if empty or None in row:
        what = f"{empty} is empty" if empty else f"{row[None]} is in no column"
        raise UsageError(f"{place}: {what}; allowed: a value in each column")
    name = row["id"]
    # the id becomes a file name: no folders in it
    if name in seen or Path(name).name != name:
        raise UsageError(f"{place}: id {name!r}; allowed: a file name that no other line has")
    seen.add(name)


def read_table(path: Path, audio_root: Optional[str]) -> Split:
    """Return a table; UsageError naming file and line for what is missing, empty or there twice."""
    if not path.is_file():
        raise UsageError(f"INPUT {path} is neither a file nor a folder")
    root = Path(audio_root or path.parent)
    paths: List[Path] = []
    seen: Set[str] = set()
    try:
        lines = list(lines_of(path))
    except UnreadableText as error:
        raise UsageError(f"INPUT: {error}; allowed: a table of audio") from error
    # as fairseq reads it: quotation marks are characters of the transcripts
    reader = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    columns = list(reader.fieldnames or [])
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise UsageError(f"{path}, line 1: no column {missing[0]}; there are {columns}")
    rows = []
    for row in reader:
        place = f"{path}, line {reader.line_num}"
        _check_row(row, place, seen)
        paths.append(root / row["audio"])
        if not paths[-1].is_file():
            raise UsageError(f"{place}: there is no {paths[-1]}")
        rows.append(row)
    if not rows:
        raise UsageError(f"{path} has no line below the names of its columns")
    return Split(path.stem, columns, rows, paths)


def stored_settings(config: Path) -> Dict[str, Any]:
    """Return the settings of a config.yaml."""
    import yaml

    stored: Dict[str, Any] = yaml.safe_load(config.read_text(encoding="utf-8"))
    return stored.get("filter_banks", {})


def settings(args: Namespace, config: Path, is_training: bool) -> Banks:
    """Return the options' settings and, without a training table, those of ``config``.

    Raises UsageError where the two differ, or no rate is known.
    """
    options = {name: getattr(args, name) for name in Banks._fields}
    # an option that was not given does not contradict the stored settings
    options = {name: value for name, value in options.items() if value is not None}
    stored = {}
    if not is_training:
        if not config.is_file():
            raise UsageError(f"no INPUT is named train*.tsv and there is no {config}")
        stored = stored_settings(config)
    for name, value in options.items():
        if name in stored and stored[name] != value:
            option = option_of(name)
            raise UsageError(f"{option} {value}: {config} has {stored[name]}")
    values = {**stored, **options}
    if "sample_rate" not in values:
        raise UsageError("--sample-rate is missing; allowed: the rate of the wav files in Hz")
    banks = Banks(**values)
    for name, value in banks._asdict().items():
        if not 0 < value < math.inf:  # nor NaN
            raise UsageError(f"{option_of(name)} {value}; allowed: more than 0")
    # rounded to samples, a short window may have none
    for name, samples in (("hop", banks.hop), ("window", banks.window)):
        if samples < 1:
            value = getattr(banks, f"{name}_ms")
            raise UsageError(
                f"--{name}-ms {value}: {samples} samples at {banks.sample_rate} Hz; "
                "allowed: 1 or more"
            )
    return banks


class Statistics:
    """Mean and standard deviation of frames, added up recording by recording."""

    def __init__(self, width: int):
        self.count, self.total, self.squares = 0, np.zeros(width), np.zeros(width)

    def add(self, rows: np.ndarray) -> None:
        """Count the frames (T, F) of a recording."""
        # squares of many frames add up: single precision would lose the small ones
        rows = rows.astype(np.float64)
        self.count += len(rows)
        self.total += rows.sum(axis=0)
        self.squares += (rows**2).sum(axis=0)

    def save(self, path: Path) -> None:
        """Write mean and standard deviation as fairseq's global_cmvn reads them."""
        mean = self.total / self.count
        # a feature that never varies would be divided by zero
        std = np.sqrt(np.maximum(self.squares / self.count - mean**2, SMALLEST**2))
        np.savez(path, mean=mean.astype(np.float32), std=std.astype(np.float32))


def extract(split: Split, banks: Banks, folder: Path) -> List[np.ndarray]:
    """Write and return the features of every recording. Warn of those that are silent."""
    folder.mkdir(parents=True, exist_ok=True)
    weights, features = triangles(banks), []  # the same for all recordings
    for row, wav in zip(split.rows, split.paths):
        samples = read_wav(wav, banks.sample_rate)
        try:
            features.append(filter_banks(samples, banks, weights))
        except AudioError as error:
            raise AudioError(f"{wav}: {error}") from error
        if is_silent(samples):
            print(f"warning: {wav}: {len(samples)} samples of silence", file=sys.stderr)
        with atomic_path(folder / f"{row['id']}.npy") as path:
            np.save(path, features[-1])
    return features


def write_table(split: Split, lengths: List[int], path: Path) -> None:
    """Write a split as the task speech_to_text reads it; ``lengths``: frames of each row."""
    columns = list(dict.fromkeys([*split.columns, "n_frames"]))
    with atomic_path(path) as temporary, open(temporary, "w", encoding="utf-8") as stream:
        stream.write("\t".join(columns) + "\n")
        for row, length in zip(split.rows, lengths):
            # relative to audio_root, so that the folder can be moved
            audio = f"{split.name}/{row['id']}.npy"
            values = {**row, "audio": audio, "n_frames": str(length)}
            stream.write("\t".join(values[name] for name in columns) + "\n")


def write_dictionary(split: Split, path: Path) -> None:
    """Write the characters, most frequent first, in fairseq's format."""
    counts: Counter[str] = Counter()
    for row in split.rows:
        counts.update(row["tgt_text"].replace(" ", SPACE))
    with atomic_path(path) as temporary, open(temporary, "w", encoding="utf-8") as stream:
        # equal counts by character: the same table gives the same file
        for symbol, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
            stream.write(f"{symbol} {count}\n")


def write_config(banks: Banks, root: Path, path: Path) -> None:
    """Write config.yaml of a data folder that will be used as ``root``."""
    import yaml

    # trainings may start in any folder
    root = root.absolute()
    content = {
        "audio_root": str(root / "features"),
        "input_feat_per_channel": banks.features,
        "input_channels": 1,
        "vocab_filename": "dict.txt",
        "bpe_tokenizer": {"bpe": "characters"},
        "transforms": {"*": ["global_cmvn"]},
        "global_cmvn": {"stats_npz_path": str(root / "gcmvn.npz")},
        "shuffle": True,
        # fairseq ignores it; this command reads it when it adds a split
        "filter_banks": banks._asdict(),
    }
    with atomic_path(path) as temporary:
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        temporary.write_text(text, encoding="utf-8")


def make_data(
    splits: List[Split], training: Optional[Split], banks: Banks, data: Path, root: Path
) -> Dict[str, Tuple[int, int]]:
    """Write DATA and return {split: (recordings, frames)}."""
    counts: Dict[str, Tuple[int, int]] = {}
    for split in splits:
        features = extract(split, banks, data / "features" / split.name)
        lengths = [len(rows) for rows in features]
        counts[split.name] = len(lengths), sum(lengths)
        # mean and deviation of the training recordings alone, as at inference
        if split is training:
            statistics = Statistics(banks.features)
            for rows in features:
                statistics.add(rows)
        if split.columns:
            write_table(split, lengths, data / f"{split.name}.tsv")
    if training:
        with atomic_path(data / "gcmvn.npz") as path:
            statistics.save(path)
        write_dictionary(training, data / "dict.txt")
        write_config(banks, root, data / "config.yaml")
    return counts


def move_files(work: Path, data: Path) -> None:
    """Move all files of a folder to their places in another; tables, which name features, last."""
    with signals_wait():
        files = [path for path in work.rglob("*") if path.is_file()]
        for path in sorted(files, key=lambda path: path.suffix == ".tsv"):
            place = data / path.relative_to(work)
            place.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, place)


def check_present(
    splits: List[Split], training: Optional[Split], banks: Banks, args: Namespace
) -> None:
    """Raise UsageError for files of DATA that may not be replaced, or would not fit what is new."""
    data = Path(args.output)
    config = data / "config.yaml"
    # with another config.yaml, the tables that are there would have other statistics
    written = [config] if training else []
    tables = [data / f"{split.name}.tsv" for split in splits if split.columns]
    for path in [*written, *tables]:
        check_new(path, args.force)
    for split in splits:
        path = data / f"{split.name}.tsv"
        if not split.columns and path.exists():
            raise UsageError(
                f"INPUT {split.name}: the features of {path} would be replaced; allowed: a folder "
                "of another name"
            )
    stored = stored_settings(config) if training and config.is_file() else {}
    if any(stored.get(name, value) != value for name, value in banks._asdict().items()):
        for path in sorted(set(data.glob("*.tsv")) - set(tables)):
            raise UsageError(
                f"--output {args.output}: {path} has features of other settings; allowed: its "
                "table as an INPUT too, or another folder"
            )


def training_table(args: Namespace, splits: List[Split]) -> Optional[Split]:
    """Return the table that settings and statistics are of, if there is one.

    Raises UsageError for inputs of one name, several such tables, and options that need a table.
    """
    names = [split.name for split in splits]
    if len(set(names)) < len(names):
        raise UsageError(f"INPUTs {', '.join(names)}; allowed: each name once")
    training = [split for split in splits if split.columns and split.name.startswith("train")]
    if len(training) > 1:
        several = ", ".join(split.name for split in training)
        raise UsageError(f"INPUTs {several}; allowed: one table whose name begins with train")
    if args.root and not training:
        raise UsageError(f"--root {args.root}: config.yaml is written with a training table alone")
    if args.audio_root and not any(split.columns for split in splits):
        raise UsageError(f"--audio-root {args.audio_root}: no INPUT is a table; leave it out")
    return training[0] if training else None


def make_filter_banks(args: Namespace) -> int:
    """Write the data folder; print recordings and frames of every input."""
    paths = [Path(name) for name in args.inputs]
    splits = [
        read_folder(path) if path.is_dir() else read_table(path, args.audio_root) for path in paths
    ]
    training = training_table(args, splits)
    tables = [path for path, split in zip(paths, splits) if split.columns]
    data = Path(args.output)
    for path in tables:
        check_apart(data / f"{path.stem}.tsv", tables)
    try:
        banks = settings(args, data / "config.yaml", training is not None)
        check_present(splits, training, banks, args)
        data.mkdir(parents=True, exist_ok=True)
        # all files or none: features and statistics of two runs would be trained on
        with folder_beside(str(data / "features")) as work:
            counts = make_data(splits, training, banks, Path(work), Path(args.root or args.output))
            move_files(Path(work), data)
    except AudioError as error:
        raise UsageError(str(error)) from error
    for name, (recordings, frames) in counts.items():
        print(f"{name}: {recordings} recordings, {frames} frames of {banks.features} features")
    return 0
