"""attention_head_selection (fairseq_ext/compat/examples/head_selection.py)."""

from argparse import Namespace

import pytest
from common.words import numbered_words

from fairseq_ext.compat.user_errors import OptionError


@pytest.fixture
def build(example, tmp_path):
    """Function: the task, with options of the model."""
    module = example("attention_head_selection/src", "speech_to_text_head_selection")
    (tmp_path / "config.yaml").write_text("vocab_filename: dict.txt\n", encoding="utf-8")

    def build(**options):
        args = Namespace(
            data=str(tmp_path),
            config_yaml="config.yaml",
            task_type="lang",
            train_subset="train_aa_aa_x,train_bb_aa_x",
            kl_weight=0.5,
            **options,
        )
        return module.SpeechToTextHeadSelectionTask(args, numbered_words(4))

    return build


def test_priors_are_those_of_the_side(build):
    task = build(
        encoder_attention_heads=2,
        total_encoder_attention_heads=8,
        decoder_attention_heads=3,
        total_decoder_attention_heads=4,
    )
    assert (task.encoder_head_prior, task.decoder_head_prior) == (0.25, 0.75)
    assert (task.encoder_tasks, task.decoder_tasks) == (2, 1)


def test_generation_names_no_heads(build):
    task = build()
    assert not hasattr(task.args, "encoder_attention_heads")


def test_selection_of_both_sides_is_refused(build):
    with pytest.raises(OptionError, match="--dec-enc-attn-head-select is not allowed"):
        build().build_model(Namespace(dec_enc_attn_head_select=True), from_checkpoint=True)
