"""Attention of plugins for fairseq 0.8, which scales its queries in place."""

from argparse import Namespace

import pytest
import torch

import fairseq_ext
from fairseq_ext.compat.versions import dataclass_defaults, scaled_parts

ATTENTION = '''
import torch
import torch.nn.functional as F
from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerModel, base_architecture

class ScaledAttention(torch.nn.Module):
    """Queries, keys and values by a single product, cut into three."""

    def __init__(self, width):
        super().__init__()
        self.in_proj = torch.nn.Linear(width, 3 * width)

    def in_proj_qkv(self, query):
        return self.in_proj(query).chunk(3, dim=-1)

    def forward(self, query):
        q, k, v = self.in_proj_qkv(query)
        q *= 0.5
        return torch.softmax(q @ k.transpose(1, 2), dim=-1) @ v
'''
MODEL = """
@register_model("scaling_transformer")
class ScalingTransformer(TransformerModel):
    @classmethod
    def build_encoder(cls, args, src_dict, embed_tokens):
        encoder = super().build_encoder(args, src_dict, embed_tokens)
        encoder.scaled = ScaledAttention(embed_tokens.embedding_dim)
        return encoder

    def forward(self, src_tokens, src_lengths, prev_output_tokens, **more):
        scaled = self.encoder.scaled(self.encoder.embed_tokens(src_tokens))
        logits, extra = super().forward(src_tokens, src_lengths, prev_output_tokens, **more)
        return logits + scaled.sum(), extra

register_model_architecture("scaling_transformer", "scaling_transformer")(base_architecture)
"""


class OlderTensor(torch.Tensor):
    """Stands in for torch.Tensor, which a plugin changes for its process."""


@pytest.fixture
def cutting_class():
    scaled_parts.cut_into_copies(OlderTensor, torch.is_grad_enabled)
    scaled_parts.cut_into_copies(OlderTensor, torch.is_grad_enabled)
    yield OlderTensor
    del OlderTensor.chunk


def scaled_first(tensor):
    first, second = tensor.chunk(2, dim=-1)
    first *= 3
    return first, second


def test_parts_are_scaled_and_have_gradients(cutting_class):
    whole = torch.tensor([1.0, 2.0], requires_grad=True)
    first, second = scaled_first((whole + 0).as_subclass(cutting_class))
    (first * second).sum().backward()
    # 3 a b, whose derivatives are 3 b and 3 a
    assert whole.grad.tolist() == [6.0, 3.0]
    assert isinstance((whole + 0).as_subclass(cutting_class).chunk(chunks=2), tuple)


def test_torch_refuses_it():
    with pytest.raises(RuntimeError, match="being modified inplace"):
        scaled_first(torch.ones(2, requires_grad=True) + 0)


def test_what_was_saved_for_gradients_remains(cutting_class):
    """Exponentials are their own derivative: the parts must not be views of them."""
    whole = torch.zeros(2, requires_grad=True)
    first, second = scaled_first(whole.exp().as_subclass(cutting_class))
    (first + second).sum().backward()
    assert whole.grad.tolist() == [3.0, 1.0]


def test_parts_without_gradients_are_views(cutting_class):
    whole = torch.ones(2).as_subclass(cutting_class)
    whole.chunk(2)[0].fill_(5.0)
    assert whole.tolist() == [5.0, 1.0]
    weights = torch.ones(2, requires_grad=True).as_subclass(cutting_class)
    with torch.no_grad():
        weights.chunk(2)[1].fill_(7.0)
    assert weights.tolist() == [1.0, 7.0]


def test_parts_of_parameters_are_initialised(cutting_class):
    weights = torch.zeros(4).as_subclass(cutting_class).requires_grad_()
    for part in weights.chunk(2):
        torch.nn.init.ones_(part)
    assert weights.tolist() == [1.0] * 4
    # and gradients arrive there
    first, second = weights.chunk(2)
    (first * second).sum().backward()
    assert weights.grad.tolist() == [1.0] * 4


@pytest.mark.parametrize("is_divided", [False, True])
def test_compiled(is_divided, monkeypatch):
    """Under torch.compile, also where the whole comes from another part of the graph."""
    monkeypatch.setattr(torch.Tensor, "chunk", torch.Tensor.chunk)
    scaled_parts.cut_into_copies(torch.Tensor, torch.is_grad_enabled)

    def scaled(whole):
        whole = whole.exp()
        if is_divided:
            torch._dynamo.graph_break()
        first, second = scaled_first(whole)
        return first * second

    try:
        compiled = torch.compile(scaled, backend="aot_eager")
        compiled(torch.zeros(2))
    except (AttributeError, RuntimeError) as error:
        pytest.skip(f"this torch compiles nothing with this Python: {error}")
    whole = torch.zeros(2, requires_grad=True)
    compiled(whole).sum().backward()
    assert whole.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    ("line", "expected"), [("def in_proj_qkv(self, x):", True), ("x.chunk(3)", False)]
)
def test_sources_with_such_an_attention(tmp_path, line, expected):
    (tmp_path / "layer.py").write_text(line)
    assert scaled_parts.cuts_queries(str(tmp_path)) == expected
    assert scaled_parts.cuts_queries(str(tmp_path / "layer.py")) == expected
    assert not scaled_parts.cuts_queries(str(tmp_path / "gone"))


def test_this_package_leaves_torch_as_it_is(monkeypatch):
    from fairseq.utils import import_user_module

    monkeypatch.setenv(dataclass_defaults.USER_DIRS_VARIABLE, "")
    monkeypatch.setattr(scaled_parts, "cut_into_copies", lambda *places: pytest.fail("was called"))
    import_user_module(Namespace(user_dir=fairseq_ext.__path__[0]))


def test_a_plugin_is_trained(tiny_training, tmp_path, run):
    folder = tmp_path / "scaling_plugin"
    folder.mkdir()
    (folder / "__init__.py").write_text(ATTENTION + MODEL)
    words = ["scaling_transformer" if word == "transformer" else word for word in tiny_training]
    words += ["--user-dir", folder, "--cpu", "--max-update", 2, "--no-save"]
    assert "done training" in run("fairseq-train", *words, "--disable-validation")
