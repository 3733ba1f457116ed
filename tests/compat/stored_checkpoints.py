"""The recipe of tests/data/checkpoints: a very small checkpoint of each system by an older commit.

    python tests/compat/stored_checkpoints.py [--commit COMMIT] [SYSTEM ...]

It checks the commit out into a temporary git worktree and runs fairseq's commands with the package
of that worktree. Written for each system, next to the texts that all of them are trained on:

- SYSTEM.pt.xz: the checkpoint after 4 updates, as fairseq-train wrote it;
- SYSTEM.resumed.pt.xz: {name: parameter} of model and criterion after 2 more updates;
- SYSTEM.json: what fairseq-generate translates with the first of them.

``test_stored_checkpoints.py`` loads, resumes and translates them with the present code.
"""

import argparse
import io
import json
import lzma
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

REPOSITORY = Path(__file__).resolve().parents[2]
STORED = REPOSITORY / "tests" / "data" / "checkpoints"
# the last commit before names, types and visible state were revised in the whole package
COMMIT = "822910a"
UPDATES, MORE_UPDATES = 4, 2
LANGUAGES = ("xx", "yy", "zz")
PAIRS = ("xx-yy", "xx-zz")
VECTORS = "vectors.txt"

ADAM = "--optimizer adam --lr 0.01 --clip-norm 1 --batch-size 8 --seed 3"
SMOOTHED = "--criterion label_smoothed_cross_entropy --label-smoothing 0.1"
GRU = "--embed-dim 6 --hidden-size 5"


class System(NamedTuple):
    """An architecture of a task.

    train: options of fairseq-train, with {vectors} for the file of vectors. task: of
    fairseq-generate.
    """

    train: str
    task: str


SYSTEMS = {
    "dual": System(
        "--task dual_translation --arch dual_transformer -s xx -t yy --dropout 0.2 --embed-dim 6 "
        f"--ffn-embed-dim 8 --attention-heads 2 --layers 1 {SMOOTHED}",
        "dual_translation",
    ),
    "duo": System(
        "--task translation --arch duo_transformer -s xx -t yy --dropout 0.2 --embed-dim 6 "
        f"--ffn-embed-dim 8 --attention-heads 2 --layers 1 --freeze-embeddings "
        f"--embed-path-p {{vectors}} {SMOOTHED}",
        "translation",
    ),
    "twin": System(
        "--task translation --arch twin_lstm -s xx -t yy --dropout 0.2 --encoder-embed-dim 5 "
        "--encoder-hidden-size 5 --decoder-embed-dim 5 --decoder-hidden-size 5 "
        "--decoder-out-embed-dim 5 --criterion twin --label-smoothing 0.1",
        "translation",
    ),
    "routed": System(
        f"--task routed_mtl --arch routed_gru --lang-pairs {','.join(PAIRS)} --main-pair xx-yy "
        f"--dropout 0.2 {GRU} --attention-size 4 {SMOOTHED}",
        "routed_mtl",
    ),
    "multiway": System(
        f"--task multiway_translation --arch multiway_gru --lang-pairs {','.join(PAIRS)} "
        f"--dropout 0.2 {GRU} --context-size 5 --readout-size 4 --init-hidden-size 4 "
        f"--init-size 4 {SMOOTHED}",
        "multiway_translation",
    ),
}


def preprocess_words(pair: str, texts: Path, folder: str) -> List[str]:
    """Return the options of fairseq-preprocess for a pair; its dictionaries are the stored ones."""
    source, target = pair.split("-")
    words = ["-s", source, "-t", target, "--destdir", folder, "--workers", "1"]
    for option, lang in (("--srcdict", source), ("--tgtdict", target)):
        words += [option, str(texts / f"dict.{lang}.txt")]
    for split in ("train", "valid"):
        words += [f"--{split}pref", str(texts / split)]
    return words


def train_words(system: str, folder: str, vectors: str, save_dir: str, updates: int) -> List[str]:
    """Return the options of fairseq-train that begin or resume a run."""
    words = [folder, *SYSTEMS[system].train.format(vectors=vectors).split(), *ADAM.split()]
    words += ["--save-dir", save_dir, "--max-update", str(updates), "--no-epoch-checkpoints"]
    return [*words, "--disable-validation"]


def generate_words(system: str, folder: str, path: str) -> List[str]:
    """Return the options of fairseq-generate: a beam of 2 over the validation set."""
    words = [folder, "--task", SYSTEMS[system].task, "--path", path, "-s", "xx", "-t", "yy"]
    return [*words, *"--gen-subset valid --beam 2 --batch-size 8 --max-len-b 8".split()]


def translations(output: str) -> List[Tuple[float, str]]:
    """Return (score, text) of the H- lines that fairseq-generate printed, by sentence."""
    lines = re.findall(r"^H-(\d+)\t(\S+)\t(.*)$", output, flags=re.MULTILINE)
    return [(float(score), text) for _, score, text in sorted(lines, key=lambda line: int(line[0]))]


def compress(state: Any) -> bytes:
    """Return a checkpoint as it is stored."""
    import torch

    # lzma finds the repetitions between the entries of the archive, each of which is small
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def parameters(state: Dict[str, Any]) -> Dict[str, Dict[str, Any]]:
    """Return the parameters of a checkpoint's model and criterion."""
    return {part: dict(state[part] or {}) for part in ("model", "criterion")}


# ---------------------------------------------------------------- the recipe


def write_texts(folder: Path) -> None:
    """Write splits and dictionaries: sentences of 10 words, reversed and translated."""
    rng = random.Random(11)
    for split, size in (("train", 40), ("valid", 6)):
        sentences = [rng.choices(range(10), k=rng.randint(2, 6)) for _ in range(size)]
        for lang in LANGUAGES:
            order = [words if lang == "xx" else words[::-1] for words in sentences]
            lines = [" ".join(f"{lang[0]}{word}" for word in words) + "\n" for words in order]
            (folder / f"{split}.{lang}").write_text("".join(lines), encoding="utf-8")
    for lang in LANGUAGES:
        entries = "".join(f"{lang[0]}{word} {20 - word}\n" for word in range(10))
        (folder / f"dict.{lang}.txt").write_text(entries, encoding="utf-8")


def write_vectors(path: Path) -> None:
    """Write vectors of 4 numbers for the words of both languages of the duo model."""
    rng = random.Random(13)
    words = [f"{letter}{number}" for letter in "xy" for number in range(10)]
    lines = [" ".join([word, *(f"{rng.gauss(0, 1):.3f}" for _ in range(4))]) for word in words]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def begin(commit: str, systems: Sequence[str], output: Path) -> None:
    """Check the commit out and run this file with the package and the test helpers of it."""
    output.mkdir(parents=True, exist_ok=True)
    write_texts(output)
    write_vectors(output / VECTORS)
    with tempfile.TemporaryDirectory() as folder:
        worktree = Path(folder) / "worktree"
        shutil.copy(output / VECTORS, folder)
        git = ["git", "-C", str(REPOSITORY), "worktree"]
        subprocess.run([*git, "add", "--detach", str(worktree), commit], check=True)
        variables = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(worktree), str(worktree / "tests"))),
            "OMP_NUM_THREADS": "1",
        }
        words = [__file__, *systems, "--inside", "--output", str(output.resolve())]
        try:
            # paths are relative to the folder, so that checkpoints hold none of this machine
            subprocess.run([sys.executable, *words], cwd=folder, env=variables, check=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(worktree)], check=True)


def make_all(systems: Sequence[str], output: Path) -> None:
    """Write the files of these systems; the working directory is that of ``begin``."""
    from fairseq import options
    from fairseq_cli import preprocess

    import fairseq_ext

    assert Path(fairseq_ext.__file__).is_relative_to(Path("worktree").resolve())
    for pair in PAIRS:
        words = preprocess_words(pair, output, "data-bin")
        preprocess.main(options.get_preprocessing_parser().parse_args(words))
    for system in systems:
        make(system, output)
        size = sum(path.stat().st_size for path in output.glob(f"{system}.*"))
        print(f"{system}: {size} bytes", flush=True)


def make(system: str, output: Path) -> None:
    """Write the files of a system."""
    import torch
    from common import inprocess

    path = f"{system}/checkpoint_last.pt"
    words = "data-bin", VECTORS, system
    inprocess.train(*train_words(system, *words, UPDATES))
    state = torch.load(path, map_location="cpu", weights_only=True)
    (output / f"{system}.pt.xz").write_bytes(compress(state))
    printed = inprocess.generate(*generate_words(system, "data-bin", path))
    text = json.dumps(translations(printed), indent=0)
    (output / f"{system}.json").write_text(text + "\n", encoding="utf-8")
    inprocess.train(*train_words(system, *words, UPDATES + MORE_UPDATES))
    state = torch.load(path, map_location="cpu", weights_only=True)
    assert state["optimizer_history"][-1]["num_updates"] == UPDATES + MORE_UPDATES
    (output / f"{system}.resumed.pt.xz").write_bytes(compress(parameters(state)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("systems", nargs="*", help=f"default: {', '.join(SYSTEMS)}")
    parser.add_argument("--commit", default=COMMIT, help=f"default: {COMMIT}")
    parser.add_argument("--output", type=Path, default=STORED, help=f"default: {STORED}")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        make_all(arguments.systems or list(SYSTEMS), arguments.output)
    else:
        begin(arguments.commit, arguments.systems, arguments.output)


if __name__ == "__main__":
    main()
