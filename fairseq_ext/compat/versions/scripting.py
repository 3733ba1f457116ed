"""torch.jit.script of searches, and of models whose forward takes arguments of any name.

`torch.jit.script` asks a module for `__prepare_scriptable__` and compiles what that returns.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from typing import Callable, Dict, List, Optional, Tuple

    from torch import Tensor, nn


@patch(
    "fairseq.sequence_generator",
    because="the patches of SequenceGenerator for fairseq 0.12.2: torch.jit.script reads the code "
    "of stock behind them, and ends in 'undefined value torch'",
)
def searches_are_scriptable(module: PatchedModule) -> None:
    """Compile the search of stock, without the patches of its methods."""
    patches = __name__.rsplit(".", 2)[0] + "."  # the package of all of them

    def prepared_by(searching: Any) -> Callable[[Any], Any]:
        """Return the method with which a class, or one that derives from it, is compiled."""

        def __prepare_scriptable__(self: Any) -> Any:
            compiled = type(self)
            methods = {
                name: inspect.unwrap(method)
                for name, method in vars(searching).items()
                if inspect.isfunction(method)
                # stock has wrappers of its own, such as no_grad, which torch knows
                and method.__globals__["__name__"].startswith(patches)
                and getattr(compiled, name) is method  # a class that derives has its own
            }
            stock: Any = type(compiled.__name__, (compiled,), methods)
            scriptable = stock.__new__(stock)
            scriptable.__dict__.update(self.__dict__)
            # torch puts what it compiles into this dictionary
            scriptable.__dict__["_modules"] = dict(self._modules)
            return scriptable

        return __prepare_scriptable__

    for searching in (module.SequenceGenerator, module.EnsembleModel):
        searching.__prepare_scriptable__ = prepared_by(searching)


@patch(
    "fairseq.models.transformer_lm",
    because="fairseq 0.12.2 with any torch: torch.jit.script of a language model ends in 'Compiled "
    "functions can't take variable number of arguments'",
)
def language_models_are_scriptable(module: PatchedModule) -> None:
    """Compile a transformer language model as its decoder, which takes the same arguments."""

    def __prepare_scriptable__(self: Any) -> Any:
        return self.decoder

    module.TransformerLanguageModel.__prepare_scriptable__ = __prepare_scriptable__


def scriptable_heads() -> tuple[type[nn.Module], type[nn.Module]]:
    """Return the classes of the heads that predict words, and labels."""
    from torch import nn

    functional = nn.functional

    class ScriptableHead(nn.Module):
        """Predicts words: RobertaLMHead without other arguments."""

        def __init__(self, head: Any) -> None:
            super().__init__()
            self.dense, self.layer_norm = head.dense, head.layer_norm
            self.weight, self.bias = head.weight, head.bias
            self.activation_fn = head.activation_fn

        def forward(self, features: Tensor) -> Tensor:
            x = self.layer_norm(self.activation_fn(self.dense(features)))
            return functional.linear(x, self.weight) + self.bias

    class ScriptableClassifier(nn.Module):
        """Predicts labels: RobertaClassificationHead without other arguments."""

        def __init__(self, head: Any) -> None:
            super().__init__()
            self.dense, self.dropout, self.out_proj = head.dense, head.dropout, head.out_proj
            self.activation_fn = head.activation_fn

        def forward(self, features: Tensor) -> Tensor:
            x = self.activation_fn(self.dense(self.dropout(features[:, 0, :])))
            return self.out_proj(self.dropout(x))

    return ScriptableHead, ScriptableClassifier


@patch(
    "fairseq.models.roberta.model",
    because="fairseq 0.12.2 with any torch: torch.jit.script of RoBERTa ends in 'Compiled "
    "functions can't take variable number of arguments'",
)
def roberta_is_scriptable(module: PatchedModule) -> None:
    """Compile RoBERTa with the arguments that it reads, and its heads."""
    from torch import nn

    ScriptableHead, ScriptableClassifier = scriptable_heads()  # noqa: N806  (classes)

    class ScriptableRoberta(nn.Module):
        """RoBERTa with the arguments that it reads."""

        def __init__(self, model: Any) -> None:
            super().__init__()
            self.sentence_encoder = model.encoder.sentence_encoder
            self.lm_head = ScriptableHead(model.encoder.lm_head)
            heads = model.classification_heads.items()
            self.classification_heads = nn.ModuleDict(
                {name: ScriptableClassifier(head) for name, head in heads}
            )

        def forward(
            self,
            src_tokens: Tensor,
            features_only: bool = False,
            classification_head_name: Optional[str] = None,
        ) -> Tuple[Tensor, Dict[str, List[Tensor]]]:
            out = self.sentence_encoder(src_tokens)
            x = out["encoder_out"][0].transpose(0, 1)  # (B, T, D)
            if classification_head_name is not None:
                features, has_head = x, False
                for name, head in self.classification_heads.items():
                    if name == classification_head_name:
                        x, has_head = head(features), True
                assert has_head, "no classification head of this name"
            elif not features_only:
                x = self.lm_head(x)
            # compiled encoders give no hidden states
            extra: Dict[str, List[Tensor]] = {}
            return x, extra

    def __prepare_scriptable__(self: Any) -> nn.Module:
        return ScriptableRoberta(self).train(self.training)

    module.RobertaModel.__prepare_scriptable__ = __prepare_scriptable__
