"""Every feature of stock fairseq that we say works, run from the command line (slow)."""

import importlib
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from matrix_rows import LANGUAGE_MODEL, ROWS, TRAIN

pytestmark = pytest.mark.slow
PLUGIN = Path(__file__).parent / "tiny_plugin"
# imports functions that fairseq 0.12 had moved elsewhere: fails with every version of everything
BROKEN = {"fairseq.models.nat.nonautoregressive_ensembles"}


@pytest.fixture(scope="module")
def places(toy_corpus, run, tmp_path_factory):
    """What rows may name in braces, with a transformer and a language model trained once."""
    folder = tmp_path_factory.mktemp("matrix")
    places = {
        "two": toy_corpus.two,
        "text": toy_corpus.text,
        "lm": folder / "lm",
        "trained": folder / "trained",
        "trained_lm": folder / "trained_lm",
        "scripts": Path(sys.executable).parent,
    }
    prepare = "fairseq-preprocess --only-source --srcdict {two}/dict.xx.txt --destdir {lm}"
    for split in toy_corpus.sizes:
        prepare += f" --{split}pref {{text}}/{split}.xx"
    for line in (
        prepare,
        TRAIN + " --save-dir {trained}",
        LANGUAGE_MODEL + " --arch transformer_lm --save-dir {trained_lm}",
    ):
        run(*shlex.split(line.format(**places)), cwd=folder)
    return places


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(row, places, run, tmp_path):
    if "--tensorboard-logdir" in row.commands[0]:
        pytest.importorskip("tensorboardX")
    shutil.copytree(PLUGIN, tmp_path / "tiny_plugin")
    output = ""
    for line in row.commands:
        names = {**places, "out": tmp_path, "plugin": tmp_path / "tiny_plugin"}
        # no shell: the brackets of fconv's layers stay as they are
        words = [word.format(**names) for word in line.split()]
        output += run(*words, cwd=tmp_path, stdin=row.stdin)
    assert re.search(row.expect, output, re.DOTALL), output[-3000:]


def test_names_are_unique():
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_every_module_of_fairseq_imports():
    """All but those that need a package or a CUDA extension that is not installed."""
    import fairseq
    import fairseq_cli

    failed = []
    for package in (fairseq, fairseq_cli):
        root = Path(package.__file__).parent
        for path in sorted(root.rglob("*.py")):
            inside = path.relative_to(root.parent).with_suffix("").parts
            name = ".".join(part for part in inside if part != "__init__")
            if "examples" in inside:
                continue
            try:
                importlib.import_module(name)
            except ImportError as error:
                blamed = (getattr(error, "name", None) or "").partition(".")[0]
                ours = blamed in ("fairseq", "fairseq_cli", "numpy", "torch", "hydra", "omegaconf")
                if ours or not (blamed or "install" in str(error)):
                    failed.append((name, error))
    assert {name for name, _ in failed} <= BROKEN, failed


def test_torchscript_model_and_generator(places):
    import torch
    from fairseq import checkpoint_utils
    from fairseq.sequence_generator import SequenceGenerator

    path = str(places["trained"] / "checkpoint_last.pt")
    models, _, task = checkpoint_utils.load_model_ensemble_and_task(
        [path], arg_overrides={"data": str(places["two"])}
    )
    model = models[0].eval()
    source = torch.tensor([[1, 5, 6, 2], [5, 6, 7, 2]])
    lengths, previous = torch.tensor([3, 4]), torch.tensor([[2, 5], [2, 6]])
    scripted = torch.jit.script(model)
    expected = model(source, lengths, previous)[0]
    torch.testing.assert_close(scripted(source, lengths, previous)[0], expected)
    generator = SequenceGenerator(models, task.target_dictionary, beam_size=2, max_len_b=6)
    sample = {"net_input": {"src_tokens": source, "src_lengths": lengths}}
    expected = generator.generate(models, sample)[0][0]["tokens"]
    assert torch.jit.script(generator)(sample)[0][0]["tokens"].tolist() == expected.tolist()


def test_hub_interface(places):
    from fairseq.models.transformer import TransformerModel

    folder = str(places["trained"])
    model = TransformerModel.from_pretrained(folder, "checkpoint_last.pt", str(places["two"]))
    assert isinstance(model.translate("an1 av2 an3", beam=2, max_len_b=5), str)
