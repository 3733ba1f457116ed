"""RoBERTa of which heads and units were taken away is loaded as it was trained."""

import pytest
import torch
from common import inprocess
from fairseq import options, tasks

SIZES = ("--encoder-layers", 2, "--encoder-embed-dim", 16, "--encoder-ffn-embed-dim", 12)
SIZES += ("--encoder-attention-heads", 4, "--max-tokens", 60, "--tokens-per-sample", 32)


@pytest.fixture
def build(toy_corpus, tmp_path):
    """Function (options...) -> a model of masked_lm."""
    (tmp_path / "dict.txt").write_bytes(toy_corpus.dictionary.read_bytes())
    words = [tmp_path, "--task", "masked_lm", "--arch", "roberta_base", *SIZES]

    def build(*more):
        cfg = inprocess.configuration(options.get_training_parser(), [*words, *more])
        return tasks.setup_task(cfg.task).build_model(cfg.model).eval()

    return build


@pytest.mark.parametrize("heads, units", [(2, 5), (2, -1), (-1, 5)])
def test_a_pruned_model_is_loaded(heads, units, build):
    more = ("--mha-heads-to-keep", heads, "--ffn-blocks-to-remove", units)
    trained = build(*more)
    for layer in trained.encoder.sentence_encoder.layers:
        attention = layer.self_attn
        if heads > 0:
            attention._adaptive_prune_heads(attention._get_reserve_head_index(heads))
            attention._set_skip_embed_dim_check()
        if units > 0:
            layer._prune_fc_layer(layer._get_fc_rank(units))
    loaded = build(*more)
    for _ in range(2):  # a model that is pruned already stays as it is
        loaded.load_state_dict(trained.state_dict(), strict=True)
        words = torch.tensor([[0, 5, 6, 2]])
        torch.testing.assert_close(loaded(words)[0], trained(words)[0])


def test_another_model_is_not_pruned(build):
    with pytest.raises(RuntimeError, match="size mismatch"):
        pruned = build()
        pruned.encoder.sentence_encoder.layers[0]._prune_fc_layer([1])
        build().load_state_dict(pruned.state_dict(), strict=True)
