"""`fairseq-ext pack`: the folder translates as the checkpoint does, and needs nothing else."""

import errno
import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from common.full_disk import largest_file
from common.pieces import learn_pieces
from fairseq import checkpoint_utils
from fairseq.data.encoders.byte_utils import byte_encode
from fairseq.data.encoders.gpt2_bpe_utils import bytes_to_unicode
from options.systems import SYSTEMS

import fairseq_ext
from fairseq_ext.compat.file_sums import file_sum
from fairseq_ext.inference.packed import read_tensors, write_tensors
from fairseq_ext.inference.packing import PackOptions, pack

LINES = ["an1 av2 an3", "an4 av5 an6 at1", "unknown av1 an8 at2", ""]
SEARCH = {"beam": 2, "nbest": 2, "max_len_b": 6}


def plain(results):
    return [
        [(h.text, h.tokens, pytest.approx(h.score, abs=1e-5)) for h in result.hypotheses]
        for result in results
    ]


@pytest.mark.parametrize("name", [name for name, system in SYSTEMS.items() if system.lines])
def test_every_system_translates_from_its_folder(name, data, checkpoint_of, tmp_path):
    system = SYSTEMS[name]
    texts = LINES if "an1 av2 an3" in system.lines else list(system.lines)
    model = fairseq_ext.load(checkpoint_of(name), data[system.data])
    folder = pack([checkpoint_of(name)], data[system.data], tmp_path / "packed")
    moved = tmp_path / "elsewhere" / "model"
    moved.parent.mkdir()
    folder.rename(moved)
    other = fairseq_ext.load(moved)
    assert (other.kind, other.directions) == (model.kind, model.directions)
    first, again = model.translate(texts, **SEARCH), other.translate(texts, **SEARCH)
    assert plain(again) == plain(first)
    assert [h.extras.keys() for r in again for h in r.hypotheses] == [
        h.extras.keys() for r in first for h in r.hypotheses
    ]


@pytest.mark.parametrize("name, width", [("stock lstm", 6), ("stock transformer_align", 8)])
def test_embeddings_of_a_file_are_in_the_folder(
    name, width, data, checkpoint_of, tmp_path, monkeypatch
):
    """--encoder-embed-path names the values that a training began with; nothing reads it again."""
    monkeypatch.chdir(tmp_path)
    vector = " ".join(["0.5"] * width)
    Path("vectors.txt").write_text(f"2 {width}\nan1 {vector}\nav2 {vector}\n", encoding="utf-8")
    checkpoint = checkpoint_of(name, "--encoder-embed-path", "vectors.txt")
    expected = fairseq_ext.load(checkpoint, data["two"]).translate(LINES, **SEARCH)
    folder = pack([checkpoint], data["two"], tmp_path / "packed")
    Path("vectors.txt").unlink()
    for arguments in ((folder,), (checkpoint, data["two"])):
        assert plain(fairseq_ext.load(*arguments).translate(LINES, **SEARCH)) == plain(expected)
    # the name of a part, as several processes write them
    shutil.copy(checkpoint, "part-rank-0.pt")
    load = checkpoint_utils.load_model_ensemble_and_task
    load(["part.pt"], {"data": str(data["two"])}, suffix="-rank-0")


OTHERS = ["twin_caption_attention", "twin_caption_lstm", "twin_speech_lstm", "gru_lm"]


@pytest.mark.parametrize("name", [*OTHERS, "twin_lstm_lm"])
def test_other_kinds_are_packed(name, data, checkpoint_of, tmp_path):
    system = SYSTEMS[name]
    folder = pack([checkpoint_of(name)], data[system.data], tmp_path / "packed")
    model = fairseq_ext.load(checkpoint_of(name), data[system.data])
    other = fairseq_ext.load(folder)
    assert other.kind == model.kind
    if system.data == "language":
        first, again = (m.perplexity(["un1 uv2", ""]) for m in (model, other))
        assert [r.perplexity for r in again] == pytest.approx([r.perplexity for r in first])
    else:
        files = sorted(data[system.data].rglob("*.npy"))[:3]
        assert files
        assert plain(other.translate(files, **SEARCH)) == plain(model.translate(files, **SEARCH))


def coded(model):
    """The sub-words of some lines."""
    return [model.coders().bpe.encode(line) for line in LINES]


def gpt2_files(folder):
    """Options of --bpe gpt2 with a file of each byte and one of no merges."""
    symbols = bytes_to_unicode().values()
    numbers = {symbol: number for number, symbol in enumerate(symbols)}
    (folder / "encoder.json").write_text(json.dumps(numbers), encoding="utf-8")
    (folder / "vocab.bpe").write_text("#version: 0.2\n", encoding="utf-8")
    encoder, vocabulary = folder / "encoder.json", folder / "vocab.bpe"
    return ["--gpt2-encoder-json", encoder, "--gpt2-vocab-bpe", vocabulary]


def byte_pieces(folder):
    """Options of --bpe byte_bpe with a model of the bytes of some words."""
    (folder / "bytes").write_text("".join(byte_encode(line) + "\n" for line in LINES[:3] * 9))
    return ["--sentencepiece-model-path", learn_pieces(folder / "bytes", folder / "bytes", 24)]


@pytest.mark.parametrize("bpe, files", [("gpt2", gpt2_files), ("byte_bpe", byte_pieces)])
def test_files_of_every_coder_are_in_the_folder(bpe, files, data, checkpoint_of, tmp_path):
    """Also those of --bpe that name several, or other options than the usual kinds."""
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    checkpoint = checkpoint_of("dual_transformer", "--bpe", bpe, *map(str, files(before)))
    expected = coded(fairseq_ext.load(checkpoint, data["two"]))
    folder = pack([checkpoint], data["two"], before / "packed")
    before.rename(after)
    moved = after / folder.name
    assert coded(fairseq_ext.load(moved)) == expected
    assert str(before) not in (moved / "manifest.json").read_text()
    # the training was moved: its files are looked for beside the checkpoint
    assert coded(fairseq_ext.load(shutil.copy(checkpoint, after), data["two"])) == expected
    manifest = json.loads((moved / "manifest.json").read_text())
    for option in manifest["subwords"]["options"]:
        manifest["subwords"]["options"][option] = "../other"
    seal(moved, manifest)
    with pytest.raises(ValueError, match="it names the file '../other'; allowed"):
        fairseq_ext.load(moved)


@pytest.fixture(scope="module")
def packed(data, checkpoint_of, tmp_path_factory):
    """A packed folder that tests copy before they change it."""
    folder = tmp_path_factory.mktemp("packed") / "model"
    return pack([checkpoint_of("twin_lstm")], data["two"], folder)


def test_the_folder_holds_no_pickle_and_no_path_of_this_machine(packed, tmp_path, data):
    names = {path.name for path in packed.iterdir()}
    assert names == {
        *("manifest.json", "model.safetensors", "twin.safetensors", "SHA256SUMS", "README.md"),
        *("dict.xx.txt", "dict.yy.txt"),
    }
    texts = [path.read_text() for path in packed.iterdir() if path.suffix in (".json", ".md")]
    assert not any(str(part) in text for text in texts for part in (data["two"], Path.home()))
    assert not any(b"pickle" in path.read_bytes()[:64] for path in packed.iterdir())
    for path in packed.glob("*.safetensors"):
        assert path.read_bytes()[8:9] == b"{"  # its header is JSON


@pytest.mark.parametrize(
    "name", ["model.safetensors", "twin.safetensors", "dict.xx.txt", "manifest.json"]
)
def test_changed_files_are_refused(name, packed, tmp_path):
    folder = tmp_path / "changed"
    shutil.copytree(packed, folder)
    content = bytearray((folder / name).read_bytes())
    content[-2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name}: its checksum differs"):
        fairseq_ext.load(folder)
    (folder / name).unlink()
    with pytest.raises((ValueError, FileNotFoundError), match=f"{name}"):
        fairseq_ext.load(folder)


def test_the_card_may_be_edited_and_the_sums_may_not(packed, tmp_path):
    folder = tmp_path / "edited"
    shutil.copytree(packed, folder)
    (folder / "README.md").write_text("# Mine\n")
    fairseq_ext.load(folder)
    (folder / "SHA256SUMS").write_text("nothing\n")
    with pytest.raises(ValueError, match="SHA256SUMS, line 1: 'nothing'; allowed"):
        fairseq_ext.load(folder)
    (folder / "SHA256SUMS").unlink()
    with pytest.raises(FileNotFoundError, match="SHA256SUMS: missing"):
        fairseq_ext.load(folder)


def seal(folder, manifest):
    """Write a manifest, and its checksum beside those of the other files."""
    (folder / "manifest.json").write_text(json.dumps(manifest))
    sums = folder / "SHA256SUMS"
    lines = sums.read_text().splitlines() if sums.exists() else []
    lines = [line for line in lines if "manifest" not in line]
    lines.append(f"{file_sum(folder / 'manifest.json')}  manifest.json")
    sums.write_text("\n".join(lines) + "\n")


def test_a_later_format_is_refused(packed, tmp_path):
    folder = tmp_path / "later"
    shutil.copytree(packed, folder)
    seal(folder, {**json.loads((folder / "manifest.json").read_text()), "format": 99})
    with pytest.raises(ValueError, match="format 99; allowed: 1"):
        fairseq_ext.load(folder)


def test_ensembles_and_twins(data, checkpoint_of, tmp_path, packed):
    twice = [checkpoint_of("twin_lstm"), checkpoint_of("twin_lstm")]
    folder = pack(twice, data["two"], tmp_path / "both", PackOptions(with_twin=False))
    assert not list(folder.glob("twin*"))
    both, single = fairseq_ext.load(folder), fairseq_ext.load(packed)
    assert len(both.loaded.models) == 2 and both.loaded.twin is None
    assert single.loaded.twin is not None
    first, again = single.translate(LINES, **SEARCH), both.translate(LINES, **SEARCH)
    assert [r.text for r in again] == [r.text for r in first]
    with pytest.raises(ValueError, match="a packed folder is loaded alone"):
        fairseq_ext.load([folder, packed])


def test_other_dictionaries_are_refused(data, packed, tmp_path):
    """As many words in another order: every word would be another one."""
    for language in ("xx", "yy"):
        path = tmp_path / f"dict.{language}.txt"
        lines = (data["two"] / path.name).read_text().splitlines()
        path.write_text("".join(f"{line}\n" for line in reversed(lines)))
    with pytest.raises(ValueError, match="trained with another dictionary of xx"):
        fairseq_ext.load(packed, tmp_path)
    assert fairseq_ext.load(packed, data["two"]).direction == "xx-yy"


def test_tied_parameters_are_written_once(data, checkpoint_of, tmp_path):
    table = torch.randn(4, 3)
    tensors = {"a": table, "b": table, "c": table[:2], "d": torch.ones(2)}
    aliases = write_tensors(tensors, tmp_path / "file")
    assert aliases == {"b": "a"}
    again = read_tensors(tmp_path / "file", aliases)
    assert all(torch.equal(again[name], tensor) for name, tensor in tensors.items())
    with pytest.raises(ValueError, match="parameter x: int; allowed: tensors"):
        write_tensors({"x": 3}, tmp_path / "file")


def test_output_is_whole_or_not_there(data, checkpoint_of, tmp_path, monkeypatch, packed):
    from fairseq_ext.inference import packing

    output, checkpoint = tmp_path / "model", checkpoint_of("twin_lstm")
    with monkeypatch.context() as patched:
        patched.setattr(packing, "_check_whole", lambda folder: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            pack([checkpoint], data["two"], output)
        assert list(tmp_path.iterdir()) == []
        shutil.copytree(packed, output)
        with pytest.raises(ZeroDivisionError):
            pack([checkpoint], data["two"], output, PackOptions(force=True))
    fairseq_ext.load(output)
    assert os.listdir(tmp_path) == ["model"]
    with pytest.raises(ValueError, match="exists; give another name, or --force"):
        pack([checkpoint], data["two"], output)
    pack([checkpoint], data["two"], output, PackOptions(force=True, with_twin=False))
    assert fairseq_ext.load(output).loaded.twin is None
    assert os.listdir(tmp_path) == ["model"]
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(ValueError, match="is no packed folder; --force leaves it alone"):
        pack([checkpoint], data["two"], other, PackOptions(force=True))
    with pytest.raises(ValueError, match="is not a folder"):
        pack([checkpoint], data["two"], tmp_path / "no" / "folder")


def test_missing_safetensors_is_named(packed, monkeypatch, tmp_path):
    import builtins

    real = builtins.__import__

    def without(name, *more, **options):
        if name.startswith("safetensors"):
            raise ImportError(name)
        return real(name, *more, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"fairseq-ext\[pack\]"):
        fairseq_ext.load(packed)


def test_a_full_disk_names_the_folder_and_leaves_nothing(data, checkpoint_of, tmp_path):
    checkpoint, folder, output = checkpoint_of("dual_transformer"), data["two"], tmp_path / "model"
    with largest_file(4_000), pytest.raises(OSError) as caught:
        pack([checkpoint], folder, output)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(output))
    assert not os.listdir(tmp_path)
