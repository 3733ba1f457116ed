"""Every command that is given a checkpoint refuses one that would act, and says so in a line."""

import ast
import hashlib
import os
import shutil
from pathlib import Path

import pytest
from common import inprocess
from compat.checkpoints.test_reference_sizes import lists
from compat.payloads import FORMATS, PAYLOADS, state, write
from fairseq import options
from fairseq_cli import eval_lm
from inference.test_packing import seal

import fairseq_ext
from fairseq_ext.__main__ import COMMANDS, main
from fairseq_ext.compat.checkpoints.data_only import RefusedCheckpoint

PACKAGE = Path(fairseq_ext.__file__).parent
QUICK = ("os.mkdir", "a forged number of numpy")
PAIR = ("-s", "xx", "-t", "yy")
TRAIN = ("--arch", "transformer_iwslt_de_en", "--encoder-embed-dim", 4, "--decoder-embed-dim", 4)
TRAIN += ("--encoder-ffn-embed-dim", 4, "--decoder-ffn-embed-dim", 4, "--max-tokens", 400)
TRAIN += ("--encoder-attention-heads", 1, "--decoder-attention-heads", 1)


class Place:
    """A checkpoint, the folders that commands need, and the options of most of them."""

    def __init__(self, path, data):
        self.path, self.data, self.folder = str(path), data, path.parent
        self.words = (data, "--task", "translation", *PAIR)

    def new(self, name):
        """A path below the folder of the test."""
        return str(self.folder / "new" / name)

    def lines(self):
        """A file of text."""
        file = Path(self.new("lines"))
        file.write_text("an1\n", encoding="utf-8")
        return str(file)

    def train(self, *more):
        """fairseq-train, which makes its model before it reads the checkpoint."""
        inprocess.train(*self.words, *TRAIN, "--save-dir", self.new("run"), *more)

    def language_model(self):
        """fairseq-eval-lm."""
        shutil.copy(self.data / "dict.xx.txt", self.new("dict.txt"))
        words = (self.new(""), "--path", self.path)
        inprocess._printed(eval_lm.main, options.get_eval_lm_parser(), words)

    def tool(self, *words):
        """fairseq-ext, whose status says that the file cannot be used."""
        try:
            status = main([*map(str, words)])
        except SystemExit as end:  # of errors of fairseq, which are described at the end
            status = end.code
        assert status in (1, 2)
        raise RefusedCheckpoint("refused: its words are those of the standard error")


STOCK = {
    "fairseq-generate": lambda p: inprocess.generate(*p.words, "--path", p.path),
    "fairseq-interactive": lambda p: inprocess.interactive(
        *p.words, "--path", p.path, "--input", p.lines()
    ),
    "fairseq-validate": lambda p: inprocess.validate(*p.words, "--path", p.path, "--batch-size", 2),
    "fairseq-eval-lm": lambda p: p.language_model(),
    "fairseq-train --restore-file": lambda p: p.train("--restore-file", p.path),
    "fairseq-train --finetune-from-model": lambda p: p.train("--finetune-from-model", p.path),
    "fairseq_ext.load": lambda p: fairseq_ext.load(p.path, p.data, "xx-yy"),
}
TOOLS = {
    "average": lambda p: p.tool("average", "--inputs", p.path, p.path, "--output", p.new("a.pt")),
    "export": lambda p: p.tool(
        *("export", p.path, *PAIR, "--to", "fairseq", "--data", p.data, "--output", p.new("x"))
    ),
    "pack": lambda p: p.tool("pack", p.path, p.data, "--output", p.new("packed")),
    "add-language": lambda p: p.tool(
        *("add-language", p.path, p.data, "--pair", "xx-yy", "--output", p.new("a.pt"))
    ),
    "router-usage": lambda p: p.tool("router-usage", p.path, p.data, "--output", p.new("u")),
    "twin-distance": lambda p: p.tool("twin-distance", p.path, p.data, "--output", p.new("d")),
    "translate": lambda p: p.tool("translate", p.path, "--data", p.data, "--input", p.lines()),
    "serve": lambda p: p.tool("serve", p.path, "--data", p.data, "--port", 0),
    "back-translate": lambda p: p.tool(
        *("back-translate", p.path, p.data, *PAIR, "--monolingual", p.lines()),
        *("--output", p.new("synthetic")),
    ),
    "tune-alpha": lambda p: p.tool(
        *("tune-alpha", "--ref", p.lines(), "--output", p.new("alpha.png")),
        *("--", p.data, *PAIR, "--path", p.path),
    ),
}
WAYS = {**STOCK, **{f"fairseq-ext {name}": way for name, way in TOOLS.items()}}
# sub-commands that are given no checkpoint
OTHERS = {"user-dir", "list", "doctor", "run", "plot", "compare", "evaluate", "linearise"}
OTHERS |= {"filter-banks", "pixel-lines"}


def check(name, kind, way, folder, corpus, capfd):
    """Give the command the payload: nothing but what `Place` writes may be there afterwards."""
    (folder / "new").mkdir()
    body = PAYLOADS[name].body(str(folder / "marker"))
    path = write(folder / "model.pt", state(body), kind)
    with pytest.raises((RefusedCheckpoint, ValueError)) as caught:
        WAYS[way](Place(Path(path), corpus.two))
    text = f"{caught.value}\n{capfd.readouterr().err}"
    assert "refused" in text and "model.pt" in text, (name, kind, text)
    assert "weights_only" not in text
    assert sorted(os.listdir(folder)) == ["model.pt", "new"]
    assert set(os.listdir(folder / "new")) <= {"lines", "dict.txt"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", QUICK)
def test_commands_refuse_it(name, way, tmp_path, toy_corpus, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(name, "zip", way, tmp_path, toy_corpus, capfd)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_commands_refuse_all(way, tmp_path, toy_corpus, capfd, monkeypatch):
    for name in sorted(set(PAYLOADS) - set(QUICK)):
        for kind in FORMATS:
            folder = tmp_path / f"{len(os.listdir(tmp_path))}"
            folder.mkdir()
            monkeypatch.chdir(folder)
            check(name, kind, way, folder, toy_corpus, capfd)


def test_every_sub_command_is_tried():
    assert set(TOOLS) | OTHERS == set(COMMANDS)


READING = {"load_checkpoint_to_cpu", "load_model_ensemble", "load_model_ensemble_and_task"}
READING |= {"load_file", "read_stored", "unpickle", "Unpickler", "from_pretrained"}
MODULES = {"torch", "pickle", "numpy", "np", "yaml", "joblib", "marshal", "shelve", "dill"}


def readers():
    """{file of the package: the functions it calls that read checkpoints, arrays or pickles}."""
    places = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            function = node.func if isinstance(node, ast.Call) else None
            name = getattr(function, "attr", getattr(function, "id", ""))
            owner = ast.unparse(function.value) if isinstance(function, ast.Attribute) else ""
            loads = name in ("load", "loads") and owner.rpartition(".")[2] in MODULES
            if name in READING or loads:
                places.setdefault(file.relative_to(PACKAGE).as_posix(), set()).add(name)
    return places


def test_every_reader_is_known():
    """A new one belongs to the ways above, or to those of test_payloads.py."""
    inside = {file: names for file, names in readers().items() if not file.startswith("compat/")}
    assert inside == {
        "common/stored.py": {"load_checkpoint_to_cpu"},
        "dual/commands/nbest_lists.py": {"load_model_ensemble"},
        "dual/reverse_models.py": {"load_checkpoint_to_cpu", "load_model_ensemble_and_task"},
        "dual/supervised/marginals.py": {"read_stored"},
        "duo/freezing.py": {"read_stored"},
        "inference/loading.py": {"load_model_ensemble_and_task"},
        "inference/packed.py": {"load_file"},
        "inference/stored_models.py": {"load_checkpoint_to_cpu"},
        "multiway/deep_fusion/model.py": {"read_stored"},
        "tools/checkpoint/average.py": {"load_checkpoint_to_cpu"},
        "tools/checkpoint/reading.py": {"load", "load_checkpoint_to_cpu"},
        "twin/captions/dataset.py": {"load"},
    }


@pytest.mark.parametrize(
    "model", [{"x": "${oc.env:HOME}"}, lists(10)], ids=["resolver", "references"]
)
def test_packed_folders_are_refused(model, tmp_path):
    entry = {"weights": "model.safetensors", "aliases": {}, "twin": None, "updates": 1}
    manifest = {"format": 1, "models": [{**entry, "options": {"model": model}}]}
    (tmp_path / "model.safetensors").touch()
    empty = hashlib.sha256().hexdigest()
    (tmp_path / "SHA256SUMS").write_text(f"{empty}  model.safetensors\n", encoding="utf-8")
    seal(tmp_path, {**manifest, "subwords": {"kind": None, "files": {}, "options": {}}})
    with pytest.raises(RefusedCheckpoint, match="manifest.json: refused, its configuration"):
        fairseq_ext.load(tmp_path)
