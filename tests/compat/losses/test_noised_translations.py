"""R3F for translation: the encoder computes from the embeddings with noise."""

from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from common.words import numbered_words

from fairseq_ext.compat.losses.noised_embeddings import EmbeddedModel

INPUT = {
    "src_tokens": torch.tensor([[5, 6, 7, 2], [1, 8, 9, 2]]),
    "src_lengths": torch.tensor([4, 3]),
    "prev_output_tokens": torch.tensor([[2, 5, 6], [2, 7, 1]]),
}
TARGET = torch.tensor([[5, 6, 2], [7, 2, 1]])


@pytest.fixture
def model():
    """A small Transformer whose three embeddings are one, without dropout, for training."""
    from fairseq.models.transformer import TransformerModel, base_architecture

    words = numbered_words(12)
    args = Namespace(share_all_embeddings=True, max_source_positions=8, max_target_positions=8)
    for side in ("encoder", "decoder"):
        for name, size in (("layers", 1), ("embed_dim", 8), ("ffn_embed_dim", 8)):
            setattr(args, f"{side}_{name}", size)
        setattr(args, f"{side}_attention_heads", 2)
    args.dropout = args.attention_dropout = args.activation_dropout = 0.0
    base_architecture(args)
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    torch.manual_seed(3)
    return TransformerModel.build_model(args, task).train()


def test_embeddings_are_those_of_the_source(model):
    embedded = EmbeddedModel(model)
    expected = model(**INPUT)[0]
    embeddings = model.encoder.embed_tokens(INPUT["src_tokens"])
    torch.testing.assert_close(embedded(**INPUT, token_embeddings=embeddings)[0], expected)
    others = embedded(**INPUT, token_embeddings=embeddings + 1)[0]
    assert not torch.allclose(others, expected)
    torch.testing.assert_close(model(**INPUT)[0], expected)


def test_divergence_is_that_of_the_noise(model):
    import fairseq
    from fairseq import utils

    folder = Path(fairseq.__file__).parent / "examples" / "rxf" / "rxf_src"
    utils.import_user_module(Namespace(user_dir=str(folder)))
    from rxf_src.label_smoothed_cross_entropy_r3f import LabelSmoothedCrossEntropyR3FCriterion

    sample = {"net_input": INPUT, "target": TARGET, "ntokens": 5}
    task = SimpleNamespace(target_dictionary=numbered_words(12))
    criterion = LabelSmoothedCrossEntropyR3FCriterion(task, False, 0.1, 0.05, 1.0, "uniform")
    torch.manual_seed(5)
    logged = criterion(model, sample)[2]["symm_kl"]

    torch.manual_seed(5)
    embeddings = model.encoder.embed_tokens(INPUT["src_tokens"])
    noise = torch.distributions.Uniform(-0.05, 0.05).sample(embeddings.shape)
    p, q = (
        EmbeddedModel(model)(**INPUT, token_embeddings=x)[0].double().softmax(-1)
        for x in (embeddings, embeddings + noise)
    )
    # fairseq divides by the sentences, and multiplies with the words
    expected = ((p - q) * (p / q).log()).sum().item() / 2 * 5
    assert logged == pytest.approx(expected, rel=1e-3)
    assert logged > 1e-3
