"""--decoder-freeze-embed freezes the embeddings, whether they come from a file or not."""

import pytest
from options.systems import SYSTEMS, built

SIZES = "--decoder-embed-dim 6 --decoder-out-embed-dim 6"


@pytest.mark.parametrize("name", ["lstm", "twin_lstm"])
@pytest.mark.parametrize("shared", [False, True])
def test_random_embeddings_are_frozen(name, shared, toy_corpus):
    system = SYSTEMS["twin_lstm"]._replace(arch=name, training="--criterion cross_entropy")
    words = [*SIZES.split(), "--decoder-freeze-embed"]
    words += ["--share-decoder-input-output-embed"] if shared else []
    cfg, _, model = built(system, toy_corpus.two, *words)
    frozen = [key for key, value in model.named_parameters() if not value.requires_grad]
    assert frozen == ["decoder.embed_tokens.weight"]
    assert cfg.model.decoder_freeze_embed  # is stored with the checkpoint
