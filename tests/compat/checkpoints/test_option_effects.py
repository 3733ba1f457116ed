"""Options are known to change the function, known to leave it as it is, or neither."""

import pytest
from fairseq.models import MODEL_REGISTRY

from fairseq_ext.compat.checkpoints.option_effects import changes_function, may_change_function
from fairseq_ext.compat.command_line.chosen_classes import declared_options


@pytest.mark.parametrize(
    "option, changes, may_change",
    [
        ("decoder_attention_heads", True, True),
        ("encoder.normalize_before", True, True),
        ("activation", True, True),
        ("share_all_embeddings", True, True),
        ("no_share_discriminator", False, True),  # which makes other parameters
        ("encoder_layers", False, True),
        ("attention_dropout", False, False),
        ("decoder.embed_dim", False, False),
        ("max_target_positions", False, False),
        ("checkpoint_activations", False, False),
        ("data", False, False),
        ("data2vec", False, True),
    ],
)
def test_what_is_known_of_an_option(option, changes, may_change):
    assert (changes_function(option), may_change_function(option)) == (changes, may_change)


def test_no_option_is_in_both_lists():
    """A change that average refuses is one that a training warns of."""
    options = set().union(*map(declared_options, set(MODEL_REGISTRY.values())))
    assert len(options) > 300
    assert not {name for name in options if changes_function(name) > may_change_function(name)}
