"""prepare.py: what it makes, what it refuses, and that it leaves nothing half-made."""

import gzip
import re
import shutil

import pytest
from recipe_tools import RecipeError


@pytest.fixture
def prepare(script, small):
    """Function (raw, data, options) -> runs prepare.py with the small settings."""
    main = script("prepare").main
    return lambda *arguments: main([*map(str, arguments), "--recipe", str(small)])


def snapshot(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.bin")}


def test_prepared_folder(prepare, raw, tmp_path, capsys):
    data = tmp_path / "data"
    prepare(raw, data)
    text = capsys.readouterr().out
    assert "train        120 sentence pairs (train)" in text
    assert "test          12 sentence pairs (test_a)" in text
    assert (data / "raw" / "test.de").read_bytes() == (raw / "test_a.de").read_bytes()
    assert (data / "bin" / "dict.de.txt").read_bytes() == (
        data / "bin" / "dict.en.txt"
    ).read_bytes()
    pieces = (data / "text" / "valid.en").read_text(encoding="utf-8").splitlines()
    plain = [line.replace(" ", "").replace("\u2581", " ").strip() for line in pieces]
    assert plain == (raw / "val.en").read_text(encoding="utf-8").splitlines()

    prepare(raw, data)
    assert "up to date" in capsys.readouterr().out

    # the same text, packed, in another folder: the same data
    packed = tmp_path / "packed"
    packed.mkdir()
    for path in raw.iterdir():
        with gzip.open(packed / f"{path.name}.gz", "wb") as stream:
            stream.write(path.read_bytes())
    prepare(packed, tmp_path / "again")
    assert len(snapshot(data)) == 6 + 4
    for language in ("de", "en"):
        folder = data / "bin" / f"lm.{language}"
        for name, same in (
            ("dict.txt", f"dict.{language}.txt"),
            ("train.bin", f"train.de-en.{language}.bin"),
            ("valid.idx", f"valid.de-en.{language}.idx"),
        ):
            assert (folder / name).read_bytes() == (data / "bin" / same).read_bytes()
    assert snapshot(tmp_path / "again") == snapshot(data)


@pytest.mark.slow
def test_other_input_is_refused_and_forced(prepare, raw, tmp_path):
    data = tmp_path / "data"
    prepare(raw, data)
    for language in ("de", "en"):
        with open(raw / f"train.{language}", "a", encoding="utf-8") as stream:
            stream.write("eins\n")
    before = snapshot(data)
    with pytest.raises(RecipeError, match="made with other inputs; .* --force"):
        prepare(raw, data)
    assert snapshot(data) == before
    prepare(raw, data, "--force")
    assert snapshot(data) != before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "raw", "small.cfg"]


def test_missing_split_is_named(prepare, raw, tmp_path):
    (raw / "val.en").unlink()
    with pytest.raises(RecipeError, match=r"RAW .*raw: there is neither val\.en nor val\.en\.gz"):
        prepare(raw, tmp_path / "data")
    with pytest.raises(RecipeError, match="RAW .*nowhere is not a folder"):
        prepare(tmp_path / "nowhere", tmp_path / "data")


@pytest.mark.parametrize("longer, shorter", [("de", "en"), ("en", "de")])
def test_different_line_counts_are_named(prepare, raw, tmp_path, longer, shorter):
    with open(raw / f"val.{longer}", "a", encoding="utf-8") as stream:
        stream.write("one\ntwo\nthree\n")
    message = rf"val\.{longer} has 15 lines and .*val\.{shorter} 12"
    with pytest.raises(RecipeError, match=message):
        prepare(raw, tmp_path / "data")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["raw", "small.cfg"]


def test_bad_encoding_and_empty_files_are_named(prepare, raw, tmp_path):
    good = (raw / "train.de").read_bytes()
    (raw / "train.de").write_bytes(good.replace(b"\n", b"\n\xff", 1))
    with pytest.raises(RecipeError, match=r"train\.de, line 2: not UTF-8"):
        prepare(raw, tmp_path / "data")
    for language in ("de", "en"):
        (raw / f"train.{language}").write_bytes(b"")
    with pytest.raises(RecipeError, match=r"train\.de and .*train\.en have no sentence pair"):
        prepare(raw, tmp_path / "data")


def test_failing_preprocess_leaves_nothing(prepare, raw, tmp_path, monkeypatch):
    # a fairseq that cannot be imported
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"))
    broken = tmp_path / "broken" / "fairseq"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise SystemExit('broken on purpose')\n")
    with pytest.raises(
        RecipeError, match="(?s)status 1 of the command fairseq-preprocess .*on purpose"
    ):
        prepare(raw, tmp_path / "data")
    shutil.rmtree(tmp_path / "broken")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["raw", "small.cfg"]


def test_vocabulary_that_the_text_cannot_fill(prepare, small, raw, tmp_path):
    text = small.read_text(encoding="utf-8").replace("vocabulary = 60", "vocabulary = 60000")
    small.write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError, match=r"vocabulary = 60000 does not fit train\.de, train\.en"):
        prepare(raw, tmp_path / "data")


def test_folder_of_someone_else_is_not_touched(prepare, raw, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "thesis.txt").write_text("mine")
    with pytest.raises(RecipeError, match="exists and was not made by this script"):
        prepare(raw, data, "--force")
    assert (data / "thesis.txt").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("bpe", ["sentencepiece", "fastbpe"])
def test_multi30k(script, real_data, tmp_path, capsys, bpe):
    if bpe == "fastbpe":
        pytest.importorskip("fastBPE", reason="fastBPE is not installed: it needs a C++ compiler")
    data = tmp_path / "data"
    script("prepare").main([str(real_data / "multi30k"), str(data), "--bpe", bpe])
    text = capsys.readouterr().out
    for size in ("29,000", "1,014", "1,000"):
        assert f" {size} sentence pairs" in text
    kept = (data / "bin" / "preprocess.log").read_text(encoding="utf-8")
    # a character that only the validation or test text has is unknown to fastBPE's vocabulary
    unknown = [float(share) for share in re.findall(r" ([\d.e-]+)% replaced", kept)]
    assert len(unknown) == 6 and max(unknown) < 0.02
