"""attention_head_selection (fairseq_ext/compat/examples/head_selection.py)."""

from argparse import Namespace

import pytest
import torch
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


@pytest.mark.parametrize(
    "strategy, heads", [("subset", [{1, 3}, {0, 2}]), ("group", [{3, 0}, {0, 1}])]
)
def test_evaluation_selects_the_best_heads(example, strategy, heads):
    module = example("attention_head_selection/src", "modules.attn_head_selector")
    selector = module.AttnHeadSelector(2, 1, 4, 2, strategy)
    # groups of two: heads 0 and 2, heads 1 and 3
    selector.head_logits.data = torch.tensor([[[-1.0, 0.1, -2.0, 0.2]], [[0.5, -1.0, 0.3, -2.0]]])
    selector.eval()
    for _ in range(20):
        selector.head_select(torch.tensor([0, 1]))
        subset, weights = selector(0)
        assert [set(row.tolist()) for row in subset] == heads
        torch.testing.assert_close(weights, torch.ones(2, 2))
    selector.train()
    torch.manual_seed(1)
    drawn = set()
    for _ in range(20):
        selector.head_select(torch.tensor([0]))
        drawn.add(tuple(selector(0)[0][0].tolist()))
    assert len(drawn) > 1


@pytest.mark.parametrize("task_type", ["lang", "domain"])
def test_several_tasks_in_a_batch_are_refused(build, task_type):
    task = build()
    task.task_type = task_type
    sample = {f"{side}_ids": torch.tensor([1, 1]) for side in ("src_lang", "tgt_lang", "domain")}

    class Generator:
        @staticmethod
        def generate(models, sample, prefix_tokens=None, constraints=None):
            return "hypotheses"

    assert task.inference_step(Generator(), [], sample) == "hypotheses"
    sample["tgt_lang_ids" if task_type == "lang" else "domain_ids"] = torch.tensor([0, 1])
    with pytest.raises(OptionError, match="--gen-subset with splits of several"):
        task.inference_step(Generator(), [], sample)
