"""torch.jit.script of language models and RoBERTa, whose forward takes arguments of any name.

`torch.jit.script` asks a module for `__prepare_scriptable__` and compiles what that returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from typing import Dict, List, Optional, Tuple

    from torch import Tensor, nn


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
