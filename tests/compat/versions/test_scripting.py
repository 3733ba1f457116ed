"""torch.jit.script of searches, language models and RoBERTa."""

from argparse import Namespace

import pytest
import torch
from common.words import dictionary_with

SIZES = {f"{side}_layers": 2 for side in ("encoder", "decoder")}
SIZES.update({f"{side}_attention_heads": 2 for side in ("encoder", "decoder")})
for side in ("encoder", "decoder"):
    SIZES.update({f"{side}_embed_dim": 16, f"{side}_ffn_embed_dim": 16})
TOKENS = torch.tensor([[0, 5, 6, 7, 2], [0, 8, 2, 1, 1]])


@pytest.fixture
def task():
    dictionary = dictionary_with(*map(str, range(9)))
    return Namespace(
        source_dictionary=dictionary,
        target_dictionary=dictionary,
        dictionary=dictionary,
        max_positions=lambda: 32,
    )


def test_language_models(task):
    from fairseq.models.transformer_lm import TransformerLanguageModel, base_lm_architecture

    args = Namespace(tokens_per_sample=32, **SIZES)
    base_lm_architecture(args)
    model = TransformerLanguageModel.build_model(args, task).eval()
    scripted = torch.jit.script(model)
    torch.testing.assert_close(scripted(TOKENS)[0], model(TOKENS)[0])
    torch.testing.assert_close(
        scripted(TOKENS, features_only=True)[0], model(TOKENS, features_only=True)[0]
    )


@pytest.fixture
def roberta(task):
    from fairseq.models.roberta.model import RobertaModel, base_architecture

    args = Namespace(tokens_per_sample=32, **SIZES)
    base_architecture(args)
    model = RobertaModel.build_model(args, task).eval()
    model.register_classification_head("labels", num_classes=3)
    model.register_classification_head("others", num_classes=4)
    return model.eval()


def test_roberta(roberta, tmp_path):
    torch.jit.script(roberta).save(str(tmp_path / "roberta.pt"))
    scripted = torch.jit.load(str(tmp_path / "roberta.pt"))
    logits, extra = scripted(TOKENS)
    expected, _ = roberta(TOKENS)
    assert logits.shape == (2, 5, 13) and extra == {}
    torch.testing.assert_close(logits, expected)
    features, _ = scripted(TOKENS, features_only=True)
    torch.testing.assert_close(features, roberta(TOKENS, features_only=True)[0])
    with pytest.raises(torch.jit.Error, match="no classification head"):
        scripted(TOKENS, classification_head_name="none")


@pytest.mark.parametrize("name, classes", [("labels", 3), ("others", 4)])
def test_heads_of_roberta(roberta, name, classes):
    scripted = torch.jit.script(roberta)
    scores, _ = scripted(TOKENS, classification_head_name=name)
    assert scores.shape == (2, classes)
    torch.testing.assert_close(scores, roberta(TOKENS, classification_head_name=name)[0])


def test_searches_are_those_of_stock(task):
    """tests/compat/test_matrix.py compiles one."""
    from fairseq import sequence_generator

    class Generator(sequence_generator.SequenceGenerator):
        def finalize_hypos(self, *words):
            return words

    dictionary = task.target_dictionary
    for kind in (sequence_generator.SequenceGenerator, Generator):
        generator = kind([torch.nn.Identity()], dictionary, beam_size=2)
        scriptable = generator.__prepare_scriptable__()
        assert isinstance(scriptable, kind) and scriptable.beam_size == 2
        for name in ("_generate", "is_finished", "finalize_hypos"):
            read = getattr(type(scriptable), name)
            expected = kind if name in vars(kind) else sequence_generator.SequenceGenerator
            assert read.__module__ == expected.__module__
            assert read.__globals__["__name__"] == expected.__module__
        assert scriptable.model is generator.model
