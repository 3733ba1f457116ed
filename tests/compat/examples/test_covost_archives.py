"""prep_covost_data (fairseq_ext/compat/examples/covost_archives.py)."""

import sys
import tarfile
from types import ModuleType, SimpleNamespace

import pytest

from fairseq_ext.compat.examples import covost_archives

NAMES = ("torchaudio", "torchaudio.datasets", "torchaudio.datasets.utils")


@pytest.fixture
def torchaudio(monkeypatch):
    """A torchaudio without the functions."""
    modules = [ModuleType(name) for name in NAMES]
    for name, module in zip(NAMES, modules):
        module.__path__ = []
        monkeypatch.setitem(sys.modules, name, module)
    modules[0].datasets, modules[1].utils = modules[1:]
    return modules[0]


def test_dropped_functions_are_there(torchaudio, tmp_path, monkeypatch):
    covost_archives.archives_of_covost_are_read(SimpleNamespace())
    archives = torchaudio.datasets.utils
    (tmp_path / "remote").mkdir()
    (tmp_path / "a.tsv").write_text("path\ttranslation\n", encoding="utf-8")
    with tarfile.open(tmp_path / "remote" / "a.tsv.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "a.tsv", "b.tsv")
    url = (tmp_path / "remote" / "a.tsv.tar.gz").as_uri()
    archives.download_url(url, str(tmp_path), hash_value=None)
    archives.extract_archive(str(tmp_path / "a.tsv.tar.gz"))
    assert (tmp_path / "b.tsv").read_text(encoding="utf-8") == "path\ttranslation\n"
    header = SimpleNamespace(samplerate=48000, frames=7, channels=1)
    soundfile = SimpleNamespace(info=lambda path: header)
    monkeypatch.setitem(sys.modules, "soundfile", soundfile)
    recording = torchaudio.info("a.mp3")
    assert (recording.sample_rate, recording.num_frames, recording.num_channels) == (48000, 7, 1)


def test_present_functions_stay(torchaudio):
    torchaudio.info = present = object()
    covost_archives.archives_of_covost_are_read(SimpleNamespace())
    assert torchaudio.info is present


def test_a_program_without_torchaudio(monkeypatch):
    monkeypatch.delitem(sys.modules, "torchaudio", raising=False)
    covost_archives.archives_of_covost_are_read(SimpleNamespace())
    assert "torchaudio" not in sys.modules


def test_the_script_imports_them(torchaudio, tmp_path, run):
    # other modules stand in for what the project's environment lacks
    (tmp_path / "torchaudio" / "datasets").mkdir(parents=True)
    for folder in ("torchaudio", "torchaudio/datasets"):
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "torchaudio" / "datasets" / "utils.py").touch()
    for name in ("pandas", "soundfile"):
        (tmp_path / f"{name}.py").write_text("class DataFrame: pass\n", encoding="utf-8")
    code = (
        "import sys; sys.path.insert(0, ''); import fairseq, os; "
        "sys.argv[1:] = ['--help']; import runpy; runpy.run_path(os.path.join(os.path.dirname("
        "fairseq.__file__), 'examples', 'speech_to_text', 'prep_covost_data.py'), "
        "run_name='__main__')"
    )
    assert "--tgt-lang" in run(sys.executable, "-c", code, cwd=tmp_path)
