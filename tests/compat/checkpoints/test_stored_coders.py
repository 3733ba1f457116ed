"""Checkpoints whose task keeps the coder of its texts, as that of AV-HuBERT does."""

from argparse import Namespace

import pytest
import torch
from common.pieces import learn_pieces
from fairseq import checkpoint_utils
from fairseq.data.encoders.sentencepiece_bpe import SentencepieceBPE

from fairseq_ext.compat.checkpoints import data_only, pickle_rules

TEXT = "a dog and a cat"


@pytest.fixture
def coder(tmp_path):
    """A coder, as --bpe sentencepiece builds it."""
    (tmp_path / "text").write_text(f"{TEXT}\n" * 9, encoding="utf-8")
    model = str(learn_pieces(tmp_path / "text", tmp_path / "pieces"))
    return SentencepieceBPE(
        Namespace(
            sentencepiece_model=model, sentencepiece_enable_sampling=False, sentencepiece_alpha=None
        )
    )


def test_a_coder_of_sentencepiece_is_read(coder, tmp_path):
    path = tmp_path / "checkpoint.pt"
    torch.save({"task_state": {"s2s_tokenizer": coder}}, path)
    with open(path, "rb") as file:
        loaded = checkpoint_utils.torch.load(file)["task_state"]["s2s_tokenizer"]
    assert type(loaded) is SentencepieceBPE and loaded.encode(TEXT) == coder.encode(TEXT)
    assert loaded.decode(loaded.encode(TEXT)) == TEXT


def test_states_of_a_model(coder):
    content = coder.sp.serialized_model_proto()
    for state in (content, {"model_proto": content, "_alpha": 0.1, "_return_type": int}):
        assert pickle_rules.check_model_state(state) is None
    for state in (
        "path.model",
        {"_alpha": 0.1},
        {"model_proto": content, "_processor": torch},
        {"model_proto": content, "_return_type": torch.Size},
    ):
        assert "sentencepiece" in pickle_rules.check_model_state(state)


def test_a_coder_is_not_made_of_arguments(tmp_path):
    """Its constructor may fetch a file from anywhere."""

    class Fetched:
        def __reduce__(self):
            return SentencepieceBPE, (Namespace(sentencepiece_model="http://localhost/model"),)

    path = tmp_path / "checkpoint.pt"
    torch.save({"task_state": Fetched()}, path)
    with pytest.raises(data_only.RefusedCheckpoint, match="SentencepieceBPE with arguments"):
        data_only.load_restricted(torch, str(path), "cpu", {})
