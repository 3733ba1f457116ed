"""What `fairseq-ext export` refuses, and what it leaves untouched then."""

import pytest
import torch
from common import inprocess
from common.exchanged import with_two_words_exchanged
from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from tools.exporting import export


def test_a_direction_that_is_not_there(two, tmp_path, capsys):
    for source, target in (("xx", "qq"), ("qq", "xx"), ("xx", "xx")):
        assert export(two[0], source, target, "fairseq", tmp_path / "stock.pt") == 2
        message = capsys.readouterr().err
        assert f"-s {source} -t {target}" in message and "xx-yy, yy-xx" in message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("model", ["two", "tagged"])
def test_a_direction_that_one_way_left_untrained(request, model, tmp_path, capsys):
    state = load_checkpoint_to_cpu(str(request.getfixturevalue(model)[0]))
    state["cfg"]["model"].lang_pairs = "xx-yy"  # as --one-way stores it
    torch.save(state, tmp_path / "one_way.pt")
    for source, target in (("yy", "xx"), ("a-b", "yy")):
        assert export(tmp_path / "one_way.pt", source, target, "fairseq", tmp_path / "no.pt") == 2
        message = capsys.readouterr().err
        assert f"-s {source} -t {target}: " in message
        assert "was trained for xx-yy: it reads xx and writes yy" in message
    assert export(tmp_path / "one_way.pt", "xx", "yy", "fairseq", tmp_path / "stock.pt") == 0


def test_a_tag_is_not_quantised(tagged, tmp_path, capsys):
    """As the vector of an end symbol it would be, and change the scale of all others."""
    state = load_checkpoint_to_cpu(str(tagged[0]))
    state["cfg"]["model"].quant_noise_scalar = 0.1
    torch.save(state, tmp_path / "quantised.pt")
    assert export(tmp_path / "quantised.pt", "xx", "yy", "fairseq", tmp_path / "stock.pt") == 2
    assert "--quant-noise-scalar 0.1: the checkpoint was trained" in capsys.readouterr().err
    assert not (tmp_path / "stock.pt").exists()


def test_two_models_have_their_own_directions(separate, tmp_path, capsys):
    assert export(separate[0], "yy", "yy", "fairseq", tmp_path / "stock.pt") == 2
    assert "-s yy -t yy: " in (message := capsys.readouterr().err)
    assert "has models of xx-yy, yy-xx" in message


def test_files_that_are_no_dual_checkpoint(two, tmp_path, capsys):
    export(two[0], "xx", "yy", "fairseq", tmp_path / "stock.pt")
    (tmp_path / "text.pt").write_text("no checkpoint", encoding="utf-8")
    torch.save(torch.zeros(3), tmp_path / "tensor.pt")
    torch.save({"weights": torch.zeros(3), "epoch": 1}, tmp_path / "other.pt")
    expected = {
        "absent.pt": "is not a file",
        "text.pt": "cannot be read",
        "tensor.pt": "type Tensor",
        "other.pt": "the entries epoch, weights",
        "stock.pt": "architecture 'transformer'",
    }
    for name, words in expected.items():
        capsys.readouterr()
        assert export(tmp_path / name, "xx", "yy", "fairseq", tmp_path / "new.pt") == 2
        message = capsys.readouterr().err
        assert str(tmp_path / name) in message and words in message
    assert not (tmp_path / "new.pt").exists()


def test_an_unknown_parameter_is_named(two, tmp_path, capsys):
    state = torch.load(two[0], weights_only=True)
    state["model"]["components.yy.blocks.0.gate.weight"] = torch.zeros(1)
    torch.save(state, tmp_path / "later.pt")
    assert export(tmp_path / "later.pt", "xx", "yy", "fairseq", tmp_path / "stock.pt") == 2
    assert "blocks.0.gate.weight" in capsys.readouterr().err


def test_outputs_are_not_overwritten(two, tmp_path, capsys):
    present, folder = tmp_path / "present.pt", tmp_path / "folder"
    present.write_text("precious", encoding="utf-8")
    folder.mkdir()
    for to, output, options, words in (
        ("fairseq", present, [], "--force"),
        ("fairseq", folder, ["--force"], "is a folder"),
        ("ctranslate2", folder, ["--force"], "no folder of CTranslate2"),
        ("fairseq", two[0], ["--force"], "the checkpoint itself"),
        ("fairseq", tmp_path / "absent" / "stock.pt", [], "is not a folder"),
        ("fairseq", tmp_path / "new.pt", ["--quantization", "int8"], "--to ctranslate2"),
    ):
        assert export(two[0], "xx", "yy", to, output, *options) == 2
        message = capsys.readouterr().err
        assert words in message and (str(output) in message or "--quantization" in options)
    assert present.read_text(encoding="utf-8") == "precious"
    assert export(two[0], "xx", "yy", "fairseq", present, "--force") == 0
    assert "encoder.embed_tokens.weight" in inprocess.parameters(present)


def test_an_interrupted_export_leaves_what_was_there(two, tmp_path, monkeypatch, capsys):
    output = tmp_path / "present.pt"
    output.write_text("precious", encoding="utf-8")

    def half(state, file):
        file.write(b"half of it")
        raise OSError("disk full")

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(SystemExit) as ended:
        export(two[0], "xx", "yy", "fairseq", output, "--force")
    assert ended.value.code == 1 and "error: disk full" in capsys.readouterr().err
    assert output.read_text(encoding="utf-8") == "precious"
    assert list(tmp_path.iterdir()) == [output]


def test_dictionaries_must_fit(two, tmp_path, capsys):
    words = ("--data", tmp_path)
    assert export(two[0], "xx", "yy", "fairseq", tmp_path / "stock.pt", *words) == 2
    assert "dict.xx.txt" in capsys.readouterr().err
    for language in ("xx", "yy"):
        (tmp_path / f"dict.{language}.txt").write_text("word 1\n", encoding="utf-8")
    assert export(two[0], "xx", "yy", "fairseq", tmp_path / "stock.pt", *words) == 2
    assert "has 5 entries" in capsys.readouterr().err


def test_dictionaries_must_be_those_of_the_training(two, tmp_path, capsys):
    other = with_two_words_exchanged(two[1], tmp_path / "data", "yy")
    output = tmp_path / "stock.pt"
    assert export(two[0], "xx", "yy", "fairseq", output, "--data", other) == 2
    message = capsys.readouterr().err
    assert f"--data {other}: " in message and "another dictionary of yy" in message
    assert not output.exists()
