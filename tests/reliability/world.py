"""A folder with text, binarised data, a checkpoint of every system, and damaged copies of them."""

import os
import random
import shutil
from pathlib import Path
from typing import List

import torch

from . import forked

SPLITS = {"train": 60, "valid": 12, "test": 12}
OPTIMISE = "--optimizer adam --lr 0.005 --batch-size 16 --max-update 1 --cpu --num-workers 0"
OPTIMISE += " --no-epoch-checkpoints --no-progress-bar --seed 1"
TRANSFORMER = "--encoder-layers 1 --decoder-layers 1 --encoder-attention-heads 2"
TRANSFORMER += " --decoder-attention-heads 2 --encoder-embed-dim 16 --decoder-embed-dim 16"
TRANSFORMER += " --encoder-ffn-embed-dim 16 --decoder-ffn-embed-dim 16"
LSTM = "--encoder-embed-dim 16 --encoder-hidden-size 16 --decoder-embed-dim 16"
LSTM += " --decoder-hidden-size 16 --decoder-out-embed-dim 16"
LANGUAGE = "--decoder-layers 1 --decoder-embed-dim 16 --decoder-ffn-embed-dim 16"
LANGUAGE += " --decoder-attention-heads 2 --sample-break-mode eos --tokens-per-sample 64"
ROUTED = "--embed-dim 12 --hidden-size 10 --attention-size 12"
MULTIWAY = "--embed-dim 16 --hidden-size 24 --context-size 20 --readout-size 16"
MULTIWAY += " --init-hidden-size 12 --init-size 12"
DUO = "--embed-dim-s 16 --embed-dim-p 24 --ffn-embed-dim 20"

# system: (data folder, task, what fairseq-train is told of the model, -s and -t of inference)
SYSTEMS = {
    "transformer": ("bin", "translation", f"--arch transformer {TRANSFORMER}", "-s xx -t yy"),
    "lstm": ("bin", "translation", f"--arch lstm {LSTM}", "-s xx -t yy"),
    "lm": ("bin-lm", "language_modeling", f"--arch transformer_lm {LANGUAGE}", ""),
    "dual": (
        "bin",
        "dual_translation",
        "--arch dual_transformer_tiny --lang-pairs xx-yy",
        "-s xx -t yy",
    ),
    "duo": ("bin", "translation", "--arch duo_transformer_tiny", "-s xx -t yy"),
    "classifier": (
        "bin-labels",
        "text_classification",
        f"--arch duo_classifier {DUO} --criterion label_cross_entropy",
        "-s text -t label",
    ),
    "twin": (
        "bin",
        "translation",
        "--arch twin_lstm_tiny --criterion twin",
        "-s xx -t yy",
    ),
    "twin_lm": (
        "bin-lm",
        "language_modeling",
        "--arch twin_lstm_lm_tiny --criterion twin --sample-break-mode eos",
        "",
    ),
    "routed": (
        "bin-three",
        "routed_mtl",
        f"--arch routed_gru {ROUTED} --lang-pairs xx-yy,xx-zz --main-pair xx-yy",
        "-s xx -t yy",
    ),
    "multiway": (
        "bin-three",
        "multiway_translation",
        f"--arch multiway_gru {MULTIWAY} --lang-pairs xx-yy,xx-zz,yy-zz",
        "-s xx -t yy",
    ),
}  # fmt: skip


class World:
    """The folder; what a case names is made when it is first named."""

    def __init__(self, folder: Path):
        self.folder = Path(folder)
        self._write_text()

    def command(self, *words: str) -> None:
        """Run a command that must succeed."""
        ended = forked.run(list(words), self.folder)
        assert ended.status == 0, ended.text[-3000:]

    def prepare(self, words: List[str]) -> None:
        """Make what the words of a command name and is not there yet."""
        for word in words:
            for part in word.replace("=", ":").split(":"):
                top = part.split("/")[0]
                if top.startswith("bin") and not (self.folder / top).exists():
                    self._binarise(top)
                if part.startswith("models/"):
                    self.model(part.split("/")[1])
                if part.startswith("bad/") and not (self.folder / part).exists():
                    self._damage(part.split("/")[1])

    def model(self, system: str) -> Path:
        """The checkpoint of a system after one update."""
        path = self.folder / "models" / system / "checkpoint_last.pt"
        if not path.exists() and system in SYSTEMS:
            self.prepare([SYSTEMS[system][0]])
            self.command(*train_words(system), "--save-dir", f"models/{system}")
        return path

    def remove(self, paths):
        """Remove files and folders that a command should not have written."""
        for path in sorted(paths, reverse=True):
            whole = self.folder / path
            whole.rmdir() if whole.is_dir() else whole.unlink()

    def listing(self):
        """{path: (size, time of change)} of all files, to see what a command has written."""
        entries = {}
        for top, folders, files in os.walk(self.folder):
            for name in files:
                about = os.stat(os.path.join(top, name))
                path = os.path.relpath(os.path.join(top, name), self.folder)
                entries[path] = (about.st_size, about.st_mtime_ns)
            for name in folders:
                entries[os.path.relpath(os.path.join(top, name), self.folder)] = None
        return entries

    def _write_text(self):
        text, rng = self.folder / "text", random.Random(5)
        text.mkdir(parents=True)
        for split, size in SPLITS.items():
            lines = {"xx": [], "yy": [], "zz": [], "text": [], "label": []}
            for number in range(size):
                words = [rng.randrange(12) for _ in range(rng.randint(3, 9))]
                if split == "train" and number < 12:
                    words[0] = number  # every word is in every dictionary
                for lang in ("xx", "yy", "zz"):
                    order = words if lang == "xx" else words[::-1]
                    lines[lang].append(" ".join(f"{lang[0]}{word}" for word in order))
                lines["text"].append(lines["xx"][-1])
                lines["label"].append(("good", "bad")[words[0] % 2])
            for ending, rows in lines.items():
                (text / f"{split}.{ending}").write_text("".join(row + "\n" for row in rows))

    def _binarise(self, name):
        prefixes = " ".join(f"--{split}pref text/{split}" for split in SPLITS)
        if name == "bin-lm":
            prefixes = " ".join(f"--{split}pref text/{split}.xx" for split in SPLITS)
            self.command(*f"fairseq-preprocess --only-source {prefixes} --destdir {name}".split())
        elif name == "bin-labels":
            words = f"fairseq-preprocess -s text -t label {prefixes} --destdir {name}"
            self.command(*words.split())
        elif name == "bin-three":
            dictionaries = ""
            for source, target in (("xx", "yy"), ("xx", "zz"), ("yy", "zz")):
                dictionaries = (
                    f" --srcdict {name}/dict.{source}.txt" if dictionaries or source == "yy" else ""
                )
                if (source, target) == ("yy", "zz"):
                    dictionaries += f" --tgtdict {name}/dict.zz.txt"
                words = f"fairseq-preprocess -s {source} -t {target} {prefixes} --destdir {name}"
                self.command(*(words + dictionaries).split())
                dictionaries = "known"
        else:
            words = f"fairseq-preprocess -s xx -t yy {prefixes} --destdir {name}"
            self.command(*words.split())

    def _damage(self, name):
        if name.startswith("ckpt"):
            self._damage_checkpoint(name)
        elif name.startswith("bin"):
            self._damage_data(name)
        else:
            self._damage_text(name)

    def _damage_checkpoint(self, name):
        path = self.folder / "bad" / name
        path.parent.mkdir(exist_ok=True)
        whole = self.model("transformer").read_bytes()
        if name == "ckpt-folder.pt":
            path.mkdir()
        elif name in ("ckpt-list.pt", "ckpt-dict.pt", "ckpt-tensor.pt", "ckpt-no-model.pt"):
            state = torch.load(self.model("transformer"), weights_only=True)
            del state["model"]
            torch.save(
                {"list": [1, 2], "dict": {"a": 1}, "tensor": torch.ones(3)}.get(name[5:-3], state),
                path,
            )
        else:
            content = {
                "ckpt-empty.pt": b"",
                "ckpt-text.pt": b"this is not a checkpoint\n" * 9,
                "ckpt-random.pt": random.Random(1).randbytes(4000),
                "ckpt-cut.pt": whole[: len(whole) // 2],
                "ckpt-torn.pt": whole[:-100],
                "ckpt-zeros.pt": bytes(len(whole)),
            }
            path.write_bytes(content[name])

    def _damage_data(self, name):
        """A copy of `bin` with one fault: bad/bin-FAULT."""
        self.prepare(["bin"])
        folder = self.folder / "bad" / name
        shutil.copytree(self.folder / "bin", folder)
        train, index = folder / "train.xx-yy.xx.bin", folder / "train.xx-yy.xx.idx"
        dictionary = folder / "dict.xx.txt"
        lines = dictionary.read_text().splitlines(keepends=True)
        noise = random.Random(2)
        actions = {
            "bin-cut-bin": lambda: train.write_bytes(train.read_bytes()[:-11]),
            "bin-cut-idx": lambda: index.write_bytes(index.read_bytes()[:-20]),
            "bin-short-idx": lambda: index.write_bytes(index.read_bytes()[:12]),
            "bin-empty-bin": lambda: train.write_bytes(b""),
            "bin-empty-idx": lambda: index.write_bytes(b""),
            "bin-random-bin": lambda: train.write_bytes(noise.randbytes(train.stat().st_size)),
            "bin-random-idx": lambda: index.write_bytes(noise.randbytes(index.stat().st_size)),
            "bin-text-idx": lambda: index.write_text("a b c\n" * 50),
            "bin-no-bin": train.unlink,
            "bin-no-idx": index.unlink,
            "bin-no-dict": dictionary.unlink,
            "bin-empty-dict": lambda: dictionary.write_text(""),
            "bin-short-dict": lambda: dictionary.write_text("".join(lines[:4])),
            "bin-no-count": lambda: dictionary.write_text("".join(["word\n", *lines[1:]])),
            "bin-bad-count": lambda: dictionary.write_text("".join([*lines[:2], "w many\n"])),
            "bin-twice": lambda: dictionary.write_text("".join([*lines, lines[0]])),
            "bin-latin1": lambda: dictionary.write_bytes(b"caf\xe9 3\n"),
            "bin-other-order": lambda: self._other_order(folder),
            "bin-lengths": lambda: self._other_length(folder, "train"),
            "bin-valid-lengths": lambda: self._other_length(folder, "valid"),
            "bin-test-lengths": lambda: self._other_length(folder, "test"),
            "bin-no-train": lambda: self._without(folder, "train"),
            "bin-no-valid": lambda: self._without(folder, "valid"),
            "bin-no-test": lambda: self._without(folder, "test"),
            "bin-test-cut": lambda: self._cut(folder / "test.xx-yy.xx.bin"),
            "bin-test-random": lambda: (folder / "test.xx-yy.yy.idx").write_bytes(
                noise.randbytes(500)
            ),
            "bin-nothing": lambda: (shutil.rmtree(folder), folder.mkdir()),
        }
        actions[name]()

    def _other_order(self, folder):
        """The dictionaries with their symbols in another order."""
        for path in folder.glob("dict.*"):
            lines = [line for line in path.read_text().splitlines(keepends=True)]
            path.write_text("".join(lines[1:] + lines[:1]))

    def _other_length(self, folder, split):
        """The target of a split is taken from a longer split."""
        other = "test" if split == "train" else "train"
        for ending in ("bin", "idx"):
            shutil.copy(
                folder / f"{other}.xx-yy.yy.{ending}", folder / f"{split}.xx-yy.yy.{ending}"
            )

    def _without(self, folder, split):
        for path in folder.glob(f"{split}.*"):
            path.unlink()

    def _cut(self, path):
        path.write_bytes(path.read_bytes()[:-6])

    def _damage_text(self, name):
        """bad/text-FAULT: a copy of `text`; bad/NAME: a file."""
        folder = self.folder / "bad" / name
        folder.parent.mkdir(exist_ok=True)
        files = {
            "dict-no-count.txt": b"a 3\nb\n",
            "dict-empty.txt": b"",
            "dict-latin1.txt": b"caf\xe9 3\n",
            "dict-twice.txt": b"a 3\na 2\n",
            "not-json.json": b"{no json",
            "empty.txt": b"",
            "latin1.txt": b"caf\xe9 au lait\n",
            "text.txt": b"a b c\nd e\n",
            "text3.txt": b"a b c\nd e\nf\n",
            "random.bin": random.Random(3).randbytes(300),
            "plugin-syntax": None,
        }
        if name in files and files[name] is not None:
            folder.write_bytes(files[name])
            return
        shutil.copytree(self.folder / "text", folder)
        source = folder / "train.xx"
        if name == "text-lengths":
            source.write_text(source.read_text() + "x1 x2\n")
        elif name == "text-valid-lengths":
            (folder / "valid.yy").write_text("y1\n")
        elif name == "text-latin1":
            source.write_bytes(source.read_bytes().replace(b"x3", b"caf\xe9", 1))
        elif name == "text-folder":
            source.unlink()
            source.mkdir()
        elif name == "text-none":
            source.unlink()
        elif name == "text-empty":
            for path in folder.glob("train.*"):
                path.write_text("")


def train_words(system: str) -> List[str]:
    """The command line of a training of the system, the folder for checkpoints not named."""
    data, task, model, direction = SYSTEMS[system]
    langs = "" if "--lang-pairs" in model else direction
    return f"fairseq-train {data} --task {task} {model} {langs} {OPTIMISE}".split()


def use_words(command: str, system: str) -> List[str]:
    """The command line of inference with the system's checkpoint."""
    data, task, _, direction = SYSTEMS[system]
    path = f"--path models/{system}/checkpoint_last.pt"
    more = (
        "--beam 2 --max-len-b 12" if command in ("fairseq-generate", "fairseq-interactive") else ""
    )
    if command == "fairseq-interactive":
        more += " --buffer-size 4"
    if command == "fairseq-eval-lm":
        more = "--sample-break-mode eos"
    words = f"{command} {data} --task {task} {direction} {path} {more}"
    return f"{words} --cpu --num-workers 0 --batch-size 4".split()
