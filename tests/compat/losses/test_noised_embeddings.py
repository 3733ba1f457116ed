"""R3F: RoBERTa and X-MOD compute from the embeddings that they are given."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from common.words import numbered_words

TOKENS = torch.tensor([[0, 5, 6, 7, 2], [0, 8, 2, 1, 1]])
HEAD = "sentence_classification_head"


@pytest.fixture(params=["roberta", "xmod"])
def model(request):
    """A small model with a head, without dropout, for training."""
    from fairseq.models.roberta.model import RobertaModel
    from fairseq.models.xmod.model import XMODModel
    from fairseq.models.xmod.model import roberta_base_architecture as xmod_architecture

    words = numbered_words(12)
    task = SimpleNamespace(source_dictionary=words, dictionary=words, max_positions=lambda: 16)
    args = SimpleNamespace(tokens_per_sample=16, languages=["en_XX", "de_DE"], bottleneck=2)
    for name, size in (("layers", 1), ("embed_dim", 8), ("ffn_embed_dim", 8)):
        setattr(args, f"encoder_{name}", size)
    args.encoder_attention_heads = 2
    args.dropout = args.attention_dropout = args.activation_dropout = args.pooler_dropout = 0.0
    torch.manual_seed(2)
    if request.param == "xmod":
        xmod_architecture(args)
    built = {"roberta": RobertaModel, "xmod": XMODModel}[request.param].build_model(args, task)
    built.register_classification_head(HEAD, num_classes=2)
    return built.train()


@pytest.fixture
def batch(model):
    """TOKENS, and the languages of X-MOD."""
    inputs = {"src_tokens": TOKENS}
    if "XMOD" in type(model).__name__:
        inputs["lang_id"] = ["en_XX", "en_XX"]
    return inputs


@pytest.mark.parametrize("features_only", [True, False])
def test_embeddings_are_used(features_only, model, batch):
    def out(**options):
        return model(**batch, features_only=features_only, **options)[0]

    embed = model.encoder.sentence_encoder.embed_tokens
    torch.testing.assert_close(out(token_embeddings=embed(TOKENS)), out())
    assert not torch.allclose(out(token_embeddings=embed(TOKENS.roll(1, 1))), out())


def test_noise_of_r3f_counts(model, batch, monkeypatch):
    """The divergence that is logged is that of the labels with and without the noise."""
    import fairseq

    monkeypatch.syspath_prepend(str(Path(fairseq.__file__).parent / "examples" / "rxf"))
    from rxf_src.sentence_prediction_r3f import SentencePredictionR3F

    monkeypatch.setattr(model, "get_targets", lambda sample, output: sample["target"])
    sample = {"net_input": batch, "target": torch.tensor([0, 1]), "ntokens": 8}
    task = SimpleNamespace(target_dictionary=numbered_words(12))
    criterion = SentencePredictionR3F(task, 0.05, 1.0, "uniform", HEAD, False)
    torch.manual_seed(5)
    logged = criterion(model, sample)[2]["symm_kl"]

    torch.manual_seed(5)
    embeddings = model.encoder.sentence_encoder.embed_tokens(TOKENS)
    noise = torch.distributions.Uniform(-0.05, 0.05).sample(embeddings.shape)
    p, q = (
        model(**batch, classification_head_name=HEAD, token_embeddings=x)[0].double().softmax(-1)
        for x in (embeddings, embeddings + noise)
    )
    assert logged == pytest.approx(((p - q) * (p / q).log()).sum().item(), rel=1e-3)
    assert logged > 1e-3
