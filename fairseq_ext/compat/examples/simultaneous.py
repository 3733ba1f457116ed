"""The example simultaneous_translation: what the archive on PyPI lacks of it, and its attention.

Dimensions: B sentences, H heads, N = B H, T target and S source positions, C channels.
"""

from __future__ import annotations

import functools
import importlib.machinery
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..imported_examples import modules_of_examples
from ..patch_registry import PatchedModule, patch
from ..user_errors import OptionError
from ..versions.missing_files import MISSING_PACKAGE, REMEDY

if TYPE_CHECKING:
    from torch import Tensor

EXAMPLE = "simultaneous_translation"
ALIGNMENT = modules_of_examples(f"{EXAMPLE}.utils.monotonic_attention")
ATTENTION = modules_of_examples(f"{EXAMPLE}.modules.monotonic_multihead_attention")
MODELS = modules_of_examples(f"{EXAMPLE}.models.transformer_monotonic_attention")
WHOLE = "whole"  # marks notes of a sentence that is there as a whole


def stand_in_for_streaming() -> None:
    """Let the example be imported where the archive lacks the encoders that stream speech.

    Two of its architectures need them: they end in an error when they are built.
    """
    parent = sys.modules[MISSING_PACKAGE.rpartition(".")[0]]
    is_there = importlib.machinery.PathFinder.find_spec(MISSING_PACKAGE, parent.__path__)
    if MISSING_PACKAGE in sys.modules or is_there:
        return
    sys.modules[MISSING_PACKAGE] = ModuleType(MISSING_PACKAGE)
    for name, members in STREAMING.items():
        full_name = f"{MISSING_PACKAGE}.{name}"
        sys.modules[full_name] = ModuleType(full_name)
        vars(sys.modules[full_name]).update(members)


def unavailable(*args: Any, **options: Any) -> Any:
    """Raise ModuleNotFoundError with the remedy."""
    raise ModuleNotFoundError(REMEDY, name=MISSING_PACKAGE)


def unchanged(model: type) -> type:
    """Return a class, in place of the decorator that adds options to it."""
    return model


# {module of MISSING_PACKAGE: what the example imports from it}
STREAMING: dict[str, dict[str, Any]] = {
    "augmented_memory_attention": {
        "augmented_memory": unchanged,
        "SequenceEncoder": unavailable,
        "AugmentedMemoryConvTransformerEncoder": unavailable,
    },
    "emformer": {"NoSegAugmentedMemoryTransformerEncoderLayer": unavailable},
}


@patch(
    *ALIGNMENT,
    *ATTENTION,
    because="fairseq 0.12.2: expected alignments need an extension in C++ that the archive on PyPI "
    "does not build, and that passes no gradient: when to read is not trained",
)
def alignments_have_gradients(module: PatchedModule) -> None:
    """Compute expected alignments with torch."""
    if hasattr(module, "expected_alignment_from_p_choose"):
        module.expected_alignment_from_p_choose = expected_alignment_from_p_choose


def expected_alignment_from_p_choose(
    p_choose: Tensor, padding_mask: Tensor | None = None, eps: float = 1e-6
) -> Tensor:
    """Return the probability that a target position is aligned to a source position.

    Raffel et al., ICML 2017, "Online and Linear-Time Attention by Enforcing Monotonic Alignments":
    alpha_i = p_i cumprod(1 - p_i) cumsum(alpha_{i-1} / cumprod(1 - p_i)), where the product
    is that of the positions before.

    Args:
        p_choose: (N, T, S), the probabilities to stop at a source position.
        padding_mask: (N, S), True at padding, which is never chosen.
        eps: the least divisor.

    Returns:
        (N, T, S), with the type of p_choose.
    """
    import torch

    chosen = p_choose.float()
    if padding_mask is not None:
        chosen = chosen.masked_fill(padding_mask.unsqueeze(1), 0.0)
    ones = torch.ones_like(chosen[:, :, :1])
    passed = torch.cat([ones, (1 - chosen)[:, :, :-1]], dim=2).cumprod(dim=2)
    divisor = passed.clamp(eps, 1.0)
    weight = chosen * passed
    alpha = torch.zeros_like(chosen[:, 0])
    alpha[:, 0] = 1.0  # before the first target position
    rows = []
    for step in range(chosen.size(1)):
        scanned = (alpha / divisor[:, step]).cumsum(dim=1)
        alpha = (weight[:, step] * scanned).clamp(0.0, 1.0)
        rows.append(alpha)
    return torch.stack(rows, dim=1).type_as(p_choose)


@patch(
    *ATTENTION,
    because="fairseq 0.12.2: --fixed-pre-decision-ratio has no effect on the training, which "
    "decides at every position; translation attends to nothing while a head is at the first "
    "position, and ends in an AttributeError but for --simul-type waitk_fixed_pre_decision",
)
def decisions_are_those_of_the_attention(module: PatchedModule) -> None:
    """Ask the attention's own p_choose when to read, in the training too."""
    attention = module.MonotonicAttention
    if not hasattr(attention, "p_choose_from_qk"):
        return  # a copy of an earlier version
    stock = attention.p_choose_from_qk
    stock_infer = attention.monotonic_attention_process_infer

    def p_choose_from_qk(
        self: Any,
        query: Tensor,
        key: Tensor,
        key_padding_mask: Tensor | None,
        incremental_states: Any = None,
        incremental_state: Any = None,  # as attention with a fixed ratio calls it
    ) -> Any:
        return stock(self, query, key, key_padding_mask)

    def p_choose(
        self: Any,
        query: Tensor,
        key: Tensor,
        key_padding_mask: Tensor | None,
        incremental_states: Any = None,
    ) -> Any:
        return self.p_choose_from_qk(query, key, key_padding_mask, incremental_states)

    def monotonic_attention_process_train(
        self: Any, query: Tensor, key: Tensor, key_padding_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        chosen = self.p_choose(query, key, key_padding_mask)
        alpha = module.expected_alignment_from_p_choose(chosen, key_padding_mask, eps=self.eps)
        if self.mass_preservation:
            alpha = module.mass_preservation(alpha, key_padding_mask)
        if not self.soft_attention:
            return chosen, alpha, alpha, alpha
        energy = self.energy_from_qk(query, key, "soft", key_padding_mask=None)
        beta = module.expected_soft_attention(
            alpha, energy, padding_mask=key_padding_mask, chunk_size=self.chunk_size, eps=self.eps
        )
        return chosen, alpha, beta, energy

    def monotonic_attention_process_infer(
        self: Any, query: Tensor, key: Tensor, incremental_state: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        chosen, alpha, beta = stock_infer(self, query, key, incremental_state)
        beta = beta.view(alpha.shape)  # (H, S), with a target position for soft attention alone
        attends = beta.sum(dim=1, keepdim=True).gt(0)
        return chosen, alpha, alpha.where(~attends, beta).unsqueeze(1)

    attention.monotonic_attention_process_infer = monotonic_attention_process_infer
    attention.p_choose_from_qk = p_choose_from_qk
    attention.p_choose = p_choose
    attention.monotonic_attention_process_train = monotonic_attention_process_train


@patch(
    *ATTENTION,
    because="fairseq 0.12.2: --simul-type chunkwise ends in an AttributeError: its options are "
    "looked for in a class of no object",
)
def chunks_have_options(module: PatchedModule) -> None:
    """Declare the options of the attention that it is derived from, and its own."""

    def add_args(parser: Any) -> None:
        module.MonotonicAttention.add_args(parser)
        parser.add_argument(
            "--mocha-chunk-size", type=int, required=True, help="positions that are attended to"
        )

    if hasattr(module, "ChunkwiseAttention"):  # not in a copy of an earlier version
        module.ChunkwiseAttention.add_args = staticmethod(add_args)


@patch(
    *MODELS,
    because="fairseq 0.12.2: transformer_monotonic_vaswani_wmt_en_fr_big calls itself without end",
)
def large_models_for_french_are_built(module: PatchedModule) -> None:
    """Give it the sizes of the Transformer of that name."""
    from fairseq.models import ARCH_CONFIG_REGISTRY

    name = "transformer_monotonic_vaswani_wmt_en_fr_big"
    sizes = ARCH_CONFIG_REGISTRY[name.replace("_monotonic", "")]
    if ARCH_CONFIG_REGISTRY.get(name) is getattr(module, name, None):
        ARCH_CONFIG_REGISTRY[name] = sizes
        setattr(module, name, sizes)


@patch(
    *MODELS,
    because="fairseq 0.12.2: fairseq-generate and fairseq-interactive end in a KeyError with "
    "transformer_monotonic, and its training, without --simul-type or with padding at the left of "
    "sources, in an assertion that names no option",
)
def monotonic_models_translate_sentences(module: PatchedModule) -> None:
    """Translate a sentence that is there as a whole, by the decisions of reading it."""
    if not hasattr(module, "TransformerMonotonicDecoderOut"):
        return  # a copy of an earlier version, whose decoder gives the search something else
    model, decoder = module.TransformerModelSimulTrans, module.TransformerMonotonicDecoder
    stock_build, stock_decoder = model.build_model.__func__, decoder.__init__
    stock_features = decoder.extract_features

    def build_model(cls: Any, args: Any, task: Any) -> Any:
        check_padding(args, task)
        return stock_build(cls, args, task)

    @functools.wraps(stock_decoder)
    def __init__(self: Any, args: Any, *parts: Any, **more: Any) -> None:
        check_kind(args)
        stock_decoder(self, args, *parts, **more)

    @functools.wraps(stock_features)
    def extract_features(
        self: Any,
        prev_output_tokens: Tensor,
        encoder_out: Any,
        incremental_state: Any = None,
        **more: Any,
    ) -> Any:
        is_whole = incremental_state is not None and note_steps(
            prev_output_tokens, encoder_out, incremental_state
        )
        x, extra = stock_features(self, prev_output_tokens, encoder_out, incremental_state, **more)
        if is_whole:  # what the search reads, with the attention of all heads of the last layer
            extra = {"attn": [extra.attn_list[-1]["beta"].mean(dim=1)]}  # (B, 1, S)
        return x, extra

    model.build_model = classmethod(build_model)
    decoder.__init__ = __init__
    decoder.extract_features = extract_features


def check_kind(args: Any) -> None:
    """Raise OptionError without a kind of attention."""
    if getattr(args, "simul_type", None) is None:
        from fairseq.registry import REGISTRIES

        names = ", ".join(sorted(REGISTRIES["simul_type"]["registry"]))
        raise OptionError(f"--arch {args.arch} needs --simul-type; allowed: {names}")


def check_padding(args: Any, task: Any) -> None:
    """Raise OptionError where sources have padding at the end at which the model begins to read."""
    if getattr(getattr(task, "cfg", None), "left_pad_source", False):
        raise OptionError(
            f"--arch {args.arch} begins to read at the left, where --left-pad-source True has "
            "padding; allowed: --left-pad-source False"
        )


def note_steps(tokens: Tensor, encoder_out: Any, incremental_state: Any) -> bool:
    """Note what a program that reads word by word does: the positions, and that all is read.

    Returns False where there is such a program, whose notes stay as they are.

    Args:
        tokens: (B, T), what is translated so far; B is 1.
        encoder_out: of the encoder, with states (S, B, C).
        incremental_state: of the decoder.

    Raises:
        OptionError: for several sentences or hypotheses, which the attention does not take.
    """
    notes = incremental_state.setdefault(
        "online", {"only": tokens.new_zeros(1).bool(), WHOLE: None}
    )
    if WHOLE not in notes:
        return False
    if len(tokens) > 1:
        raise OptionError(
            "monotonic attention translates one sentence at a time, with one hypothesis; "
            "allowed: --batch-size 1 --beam 1, or, with --eval-bleu, --batch-size-valid 1 and "
            """--eval-bleu-args '{"beam": 1}'"""
        )
    read = encoder_out["encoder_out"][0].size(0)
    incremental_state["steps"] = {"src": read, "tgt": tokens.size(1)}
    return True
