"""Archives, YAML files and FASTA files are data."""

import io
import os
import tarfile

import pytest

from fairseq_ext.compat.data.data_files import UnreadableFile


def archive(path, *members):
    with tarfile.open(path, "w:gz") as stream:
        for name, kind, link in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, link
            info.size = 2 if kind == tarfile.REGTYPE else 0
            stream.addfile(info, io.BytesIO(b"ok") if info.size else None)


@pytest.mark.parametrize(
    "member",
    [
        ("../outside", tarfile.REGTYPE, ""),
        ("/outside", tarfile.REGTYPE, ""),
        ("model/a/../../../outside", tarfile.REGTYPE, ""),
        ("model/link", tarfile.SYMTYPE, "/"),
        ("model/link", tarfile.LNKTYPE, "/etc/hostname"),
        ("model/pipe", tarfile.FIFOTYPE, ""),
    ],
)
def test_archives_stay_in_their_folder(member, tmp_path, monkeypatch):
    from fairseq import file_utils

    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    path = tmp_path / "model.tar.gz"
    archive(path, ("model/model.pt", tarfile.REGTYPE, ""), member)
    with pytest.raises(UnreadableFile, match="model.tar.gz: refused, its member"):
        file_utils.load_archive_file(str(path))
    assert path.is_file() and not os.listdir(folder)
    assert sorted(os.listdir(tmp_path)) == ["model.tar.gz", "temporary"]


def test_good_archives_are_unpacked(tmp_path):
    from fairseq import file_utils

    path = tmp_path / "model.tar.gz"
    directory = ("model", tarfile.DIRTYPE, "")
    archive(path, directory, ("model/model.pt", tarfile.REGTYPE, ""))
    unpacked = file_utils.load_archive_file(str(path))
    assert os.listdir(unpacked) == ["model.pt"]


def test_yaml_files_are_data(tmp_path):
    from fairseq.data.audio.data_cfg import get_config_from_yaml

    path = tmp_path / "config.yaml"
    path.write_text("a: [1, x]\nb: {c: 2.5}\n", encoding="utf-8")
    assert get_config_from_yaml(path) == {"a": [1, "x"], "b": {"c": 2.5}}
    path.write_text("a: !!python/object/apply:os.mkdir [marker]\n", encoding="utf-8")
    with pytest.raises(UnreadableFile, match="config.yaml: not allowed"):
        get_config_from_yaml(path)
    with pytest.raises(FileNotFoundError):
        get_config_from_yaml(tmp_path / "none.yaml")


def test_speech_models_name_no_other_code():
    from fairseq.models.speech_to_text import hub_interface

    with pytest.raises(UnreadableFile, match="tts_model_id"):
        hub_interface.torch.hub.load("somebody/repository", "model", verbose=False)


def test_fasta_files_need_no_shell(tmp_path, monkeypatch):
    from fairseq.data.fasta_dataset import FastaDataset

    monkeypatch.chdir(tmp_path)
    prefix = "$(mkdir marker) a"
    (tmp_path / f"{prefix}.fasta").write_text(">x\nAC\nG\n>y long\nTT\n", encoding="utf-8")
    dataset = FastaDataset(prefix)
    assert not (tmp_path / "marker").exists()
    assert (dataset.offsets.tolist(), dataset.sizes.tolist()) == ([0, 8], [3, 2])
    assert [dataset[0], dataset[1]] == [(">x", "ACG"), (">y long", "TT")]
