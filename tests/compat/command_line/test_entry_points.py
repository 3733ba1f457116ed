"""The commands read their options, and say what is missing, before they do anything else."""

import pytest
from common.inprocess import parsed

from fairseq_ext.compat.user_errors import OptionError


def test_options_of_hydra_without_a_value_are_not_read():
    from fairseq_ext.compat.command_line.entry_points import values_of_hydra

    groups = {"task": {"_name": "x", "data": "???", "labels": None}, "bpe": None}
    assert values_of_hydra(groups) == {"task": "x", "_name": "x", "labels": None}


def test_the_command_line_is_checked():
    base = ["data", "--arch", "transformer", "--optimizer", "adam", "--max-tokens", 100]
    parsed(*base)
    with pytest.raises(OptionError, match="--update-freq 0 is not allowed; allowed: at least 1"):
        parsed(*base, "--update-freq", 0)
    with pytest.raises(OptionError, match="--arch is missing"):
        parsed("data")


def test_a_training_has_an_optimizer():
    """Reading the options alone asks for none: recipes and tests build models that way."""
    import fairseq_cli.train
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    cfg = convert_namespace_to_omegaconf(parsed("data", "--arch", "transformer", "--max-tokens", 9))
    with pytest.raises(OptionError, match="--optimizer is missing"):
        fairseq_cli.train.main(cfg)


@pytest.mark.parametrize(
    "option, value, allowed",
    [
        ("--lr", "abc", "a finite number, or several with commas between them"),
        ("--lr", "nan", "a finite number, or several with commas between them"),
        ("--update-freq", "1.5,x", "a whole number, or several with commas between them"),
    ],
)
def test_lists_of_numbers(option, value, allowed, capsys):
    with pytest.raises(SystemExit):
        parsed("data", "--arch", "transformer", option, value)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith(f"argument {option}: {value!r} is not allowed; allowed: {allowed}")


@pytest.mark.parametrize("words", ["prob,temp", "[prob,temp]", '["prob", "temp"]', "prob, temp"])
def test_lists_of_words_need_no_quotes(words):
    from fairseq.dataclass.utils import eval_str_list

    assert eval_str_list(words, str) == ["prob", "temp"]


def test_empty_save_dir_does_not_stay(call, tmp_path, capsys):
    import fairseq_cli.train

    base = ["--arch", "transformer", "--optimizer", "adam", "--max-tokens", 100, "--cpu"]
    with pytest.raises(SystemExit):
        call(fairseq_cli.train, tmp_path / "none", *base, "--save-dir", tmp_path / "a" / "b")
    assert "none" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
