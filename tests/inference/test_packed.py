"""A packed folder that someone has changed is refused, whatever was changed."""

import json
import struct

import pytest
import torch

from fairseq_ext.compat.checkpoints.data_only import RefusedCheckpoint
from fairseq_ext.compat.file_sums import file_sum
from fairseq_ext.inference.packed import check_sums, read_packed, write_tensors

MODEL = {"weights": "model.safetensors", "aliases": {}, "twin": None, "twin_aliases": {}}
MODEL.update(updates=3, options={"model": {"_name": "transformer"}, "common": {"seed": 1}})
MANIFEST = {"format": 1, "kind": "translation", "tokenizer": None, "models": [MODEL]}
MANIFEST["subwords"] = {"kind": None, "files": {}, "options": {}}


def sign(folder):
    """Write the checksums of what is there, as whoever changes a folder can."""
    files = [path for path in folder.iterdir() if path.name not in ("SHA256SUMS", "README.md")]
    lines = [f"{file_sum(path)}  {path.name}\n" for path in files]
    (folder / "SHA256SUMS").write_text("".join(lines))


def manifest(folder, **changes):
    (folder / "manifest.json").write_text(json.dumps({**MANIFEST, **changes}))
    sign(folder)


@pytest.fixture
def folder(tmp_path):
    write_tensors({"weight": torch.ones(2, 3)}, tmp_path / "model.safetensors")
    (tmp_path / "README.md").write_text("# Card\n")
    manifest(tmp_path)
    return tmp_path


def test_what_is_there_is_read(folder):
    ((path, state),) = read_packed(folder).states
    assert path == folder / "model.safetensors" and torch.equal(
        state["model"]["weight"], torch.ones(2, 3)
    )
    assert state["cfg"].model._name == "transformer" and state["optimizer_history"] == [
        {"num_updates": 3}
    ]
    (folder / ".gitattributes").write_text("*.safetensors filter=lfs\n")
    (folder / "README.md").unlink()
    assert set(check_sums(folder)) == {"manifest.json", "model.safetensors"}


def test_files_beside_it_are_refused(folder):
    (folder / "dict.xx.txt").write_text("word 1\n")
    with pytest.raises(ValueError, match="dict.xx.txt: SHA256SUMS does not have it; allowed: tak"):
        read_packed(folder)
    sign(folder)
    read_packed(folder)


def test_links_are_refused(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "file"
    (folder / "model.safetensors").rename(elsewhere)
    (folder / "model.safetensors").symlink_to(elsewhere)
    with pytest.raises(ValueError, match="model.safetensors: a symbolic link; allowed: files"):
        read_packed(folder)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/b", "..\\secret", ""])
def test_paths_in_checksums_are_refused(folder, name):
    with open(folder / "SHA256SUMS", "a") as stream:
        stream.write(f"{'0' * 64}  {name}\n")
    with pytest.raises(ValueError, match="SHA256SUMS, line 3: .*; allowed: SHA-256, two blanks"):
        read_packed(folder)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "README.md", ".hidden", "SHA256SUMS"])
def test_paths_in_the_manifest_are_refused(folder, name):
    for changes in (
        {"models": [{**MODEL, "weights": name}]},
        {"models": [{**MODEL, "twin": name}]},
        {"subwords": {"kind": "sentencepiece", "files": {"xx": name}, "options": {}}},
    ):
        manifest(folder, **changes)
        with pytest.raises(ValueError, match="manifest.json: it names the file .*; allowed: those"):
            read_packed(folder)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", "{", '{"format": 1}', '{"format": 1, "models": 3, "subwords": {}}',
     "[" * 200_000, json.dumps({**MANIFEST, "models": [{**MODEL, "aliases": {"a": "none"}}]})],
)  # fmt: skip
def test_other_documents_are_refused(folder, text):
    (folder / "manifest.json").write_text(text)
    sign(folder)
    with pytest.raises(ValueError, match="manifest.json: .*not what fairseq-ext pack writes"):
        read_packed(folder)


def test_later_formats_are_refused(folder):
    manifest(folder, format=2)
    with pytest.raises(ValueError, match="format 2; allowed: 1. A later version of fairseq-ext"):
        read_packed(folder)


def test_resolvers_are_refused(folder):
    manifest(folder, models=[{**MODEL, "options": {"task": {"data": "${oc.env:HOME}"}}}])
    with pytest.raises(RefusedCheckpoint, match="refused, its configuration contains '[$]{oc"):
        read_packed(folder)


@pytest.mark.parametrize(
    "content",
    [
        struct.pack("<Q", 1 << 40) + b"{}",
        struct.pack("<Q", 2),
        b"",
        b"\x80\x04pickle",
        b"PK\x03\x04",
    ],
)
def test_other_weights_are_refused(folder, content):
    """Among them a header that is larger than the file, and a pickle."""
    (folder / "model.safetensors").write_bytes(content)
    sign(folder)
    with pytest.raises(ValueError, match="model.safetensors: .*; pack the model again"):
        read_packed(folder)
