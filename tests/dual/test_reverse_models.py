"""The models of the reverse direction: of the same checkpoint, or of another."""

from argparse import Namespace

import pytest
from omegaconf import OmegaConf
from torch import nn

from fairseq_ext.dual import reverse_models


class TwoDirections(nn.Module):
    """Has xx-yy and yy-xx, as ``HasDirections`` asks for them."""

    def direction(self, pair, need_attention=False):
        if pair not in ("xx-yy", "yy-xx"):
            raise ValueError(f"direction {pair!r}: not here")
        return pair


def test_a_model_of_one_direction_is_that_direction():
    plain = nn.Linear(1, 1)
    assert reverse_models.model_of_direction(plain, "xx-yy") is plain
    assert reverse_models.model_of_direction(TwoDirections(), "yy-xx") == "yy-xx"


def test_models_of_path_give_their_reverse():
    assert reverse_models.reversed_models([TwoDirections()] * 2, "yy-xx") == ["yy-xx"] * 2


@pytest.mark.parametrize(
    "model, message",
    [
        (nn.Linear(1, 1), "a checkpoint of --path translates zz-xx only; name one that translates"),
        (
            TwoDirections(),
            "a checkpoint of --path gives no log P.*'xx-zz': not here; allowed: a mo",
        ),
    ],
)
def test_models_without_the_reverse_are_refused(model, message):
    with pytest.raises(ValueError, match=f"^--dual-alpha: {message}"):
        reverse_models.reversed_models([model], "xx-zz")


def test_options_of_the_task_are_changed_in_a_copy():
    cfg = OmegaConf.create({"task": {"data": "old", "eval_bleu": True}, "model": {"size": 4}})
    state = {"cfg": cfg, "args": "of an old fairseq", "model": {}}
    changed = reverse_models.with_task_options(state, data="new", source_lang="xx", eval_bleu=False)
    assert changed["cfg"].task == {"data": "new", "eval_bleu": False, "source_lang": "xx"}
    assert changed["cfg"].model == cfg.model and changed["args"] is None
    assert cfg.task == {"data": "old", "eval_bleu": True} and state["args"] is not None


def test_a_task_without_a_dataclass_has_other_options_too():
    task = Namespace(data="old")
    cfg = OmegaConf.create({"task": task}, flags={"allow_objects": True})
    changed = reverse_models.with_task_options({"cfg": cfg}, data="new", source_lang="xx")
    assert changed["cfg"].task == Namespace(data="new", source_lang="xx") and task.data == "old"


def test_a_file_that_is_no_checkpoint_is_named(tmp_path):
    (tmp_path / "model.pt").write_bytes(b"not a checkpoint")
    for name in ("model.pt", "missing.pt"):
        with pytest.raises(ValueError, match=f"^--dual-path .*{name}: "):
            reverse_models.load_models(str(tmp_path / name), "xx-yy", "data")
