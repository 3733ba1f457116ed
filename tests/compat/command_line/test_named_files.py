"""Options that name files and folders are checked before models and data are read."""

import pytest
from common import inprocess
from fairseq.data import encoders
from omegaconf import OmegaConf
from options.systems import SYSTEMS

from fairseq_ext.compat.command_line.named_files import FILES, FIRST_VALUES
from fairseq_ext.compat.command_line.option_checks import check
from fairseq_ext.compat.data.data_files import UnreadableFile
from fairseq_ext.compat.user_errors import OptionError, option_of

# --replace-unk has words in raw data
TRAINING = {"update_freq": [1], "store_ema": True, "dataset_impl": "raw"}


@pytest.mark.parametrize("name", FILES)
def test_the_option_of_a_missing_file_is_named(name, tmp_path):
    path = tmp_path / "nofile"
    with pytest.raises(OptionError, match=f"{option_of(name)} .*nofile: there is no such file"):
        check({**TRAINING, name: str(path)})
    with pytest.raises(OptionError, match=f"{option_of(name)} .*: a folder; allowed: a "):
        check({**TRAINING, name: str(tmp_path)})
    path.write_text("here")
    for value in (str(path), "https://example.org/nofile", "???", None):
        check({**TRAINING, name: value})
    if name in FIRST_VALUES:
        check({name: str(tmp_path / "other")})  # no training


@pytest.mark.parametrize("name", ["save_dir", "tensorboard_logdir", "results_path"])
def test_a_folder_is_no_file(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    for path in ("file", "file/below", str(tmp_path / "file")):
        with pytest.raises(OptionError, match=rf"{option_of(name)} .*file.* is a file; allowed: a"):
            check({name: path})
    for path in ("new", "new/below", str(tmp_path), str(tmp_path / "new"), "s3://file"):
        check({name: path})
    check({"save_dir": "file", "no_save": True})


def test_a_log_has_a_folder(tmp_path):
    with pytest.raises(OptionError, match="--log-file .*: a folder; allowed: a file"):
        check({"log_file": str(tmp_path)})
    with pytest.raises(OptionError, match="--log-file .*/no/log: there is no folder .*/no;"):
        check({"log_file": str(tmp_path / "no" / "log")})
    check({"log_file": str(tmp_path / "log")})
    check({"log_file": "log"})


def test_commands_name_the_option(toy_corpus, tmp_path):
    kind = SYSTEMS["transformer"]
    words = ["--max-update", 1, "--max-tokens", 200, "--save-dir", tmp_path]
    with pytest.raises(OptionError, match="--encoder-embed-path nofile: there is no such file"):
        inprocess.train(*kind.words(toy_corpus.two, *words, "--encoder-embed-path", "nofile"))


@pytest.mark.parametrize("name, option", [("gpt2", "gpt2_encoder_json"),
                                          ("sentencepiece", "sentencepiece_model")])  # fmt: skip
@pytest.mark.parametrize("content", ["", "some words\n"])
def test_a_coder_names_the_file_that_it_cannot_read(name, option, content, tmp_path):
    pytest.importorskip({"gpt2": "regex"}.get(name, name))
    file = tmp_path / "model"
    file.write_text(content)
    cfg = {"_name": name, option: str(file), "gpt2_vocab_bpe": str(file),
           "sentencepiece_enable_sampling": False, "sentencepiece_alpha": None}  # fmt: skip
    with pytest.raises(UnreadableFile, match=f"{option_of(option)} .*model.*: cannot be read as"):
        encoders.build_bpe(OmegaConf.create(cfg))
