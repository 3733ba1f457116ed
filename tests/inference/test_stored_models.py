"""Files of models: an ensemble is of one task and direction, and what is no checkpoint is named."""

import pytest
import torch

import fairseq_ext
from fairseq_ext.inference.stored_models import read_checkpoint


def test_an_ensemble_is_of_one_direction(data, checkpoint_of, tmp_path):
    state = torch.load(checkpoint_of("transformer"), weights_only=True)
    state["cfg"]["task"].update(source_lang="yy", target_lang="xx")
    torch.save(state, tmp_path / "other.pt")
    with pytest.raises(ValueError, match="other.pt: trained for yy-xx, .* for xx-yy; allowed: an"):
        fairseq_ext.load([checkpoint_of("transformer"), tmp_path / "other.pt"], data["two"])


def test_an_ensemble_of_other_tasks_is_refused(data, checkpoint_of):
    paths = [checkpoint_of("transformer"), checkpoint_of("gru_lm")]
    with pytest.raises((ValueError, RuntimeError)) as info:
        fairseq_ext.load(paths, data["two"])
    assert "checkpoint_last.pt" in str(info.value)


def test_files_that_are_no_checkpoints_are_named(tmp_path, data):
    (tmp_path / "text.pt").write_text("no checkpoint")
    (tmp_path / "empty.pt").touch()
    for name in ("text.pt", "empty.pt"):
        with pytest.raises(Exception, match=name):
            fairseq_ext.load(tmp_path / name, data["two"])
    with pytest.raises(FileNotFoundError, match=r"a checkpoint file \(empty.pt, text.pt\)"):
        read_checkpoint(tmp_path)
