"""Text to speech: a text has the same speech alone and in a batch, as far as models decide it.

Dimensions: B texts, S symbols, T steps of frames, C units.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ContextManager

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_within
from .zeros_for_padding import behind, convolutions_in, zeros_in_all

if TYPE_CHECKING:
    from torch import Tensor

BECAUSE = (
    "fairseq 0.12.2: convolutions read what earlier layers make of the padding, so that the end "
    "of a text's speech depends on the longer texts of its batch"
)


@patch(
    "fairseq.models.text_to_speech.tts_transformer",
    "fairseq.models.text_to_speech.tacotron2",
    because=BECAUSE,
)
def speech_leaves_padding_out(module: PatchedModule) -> None:
    """Give the convolutions over symbols and frames zeros in the place of the padding."""
    is_recurrent = hasattr(module, "Tacotron2Encoder")
    encoder = module.Tacotron2Encoder if is_recurrent else module.TTSTransformerEncoder
    decoder = module.Tacotron2Decoder if is_recurrent else module.TTSTransformerDecoder
    convolutions = "convolutions" if is_recurrent else "prenet"
    encoder.forward = _without_symbols_behind(encoder.forward, convolutions)
    decoder.forward = _without_frames_behind(decoder.forward)


@patch("fairseq.models.text_to_speech.fastspeech2", because=BECAUSE)
def fastspeech_leaves_padding_out(module: PatchedModule) -> None:
    """Give all convolutions zeros in the place of the padding."""
    layer, adaptor, encoder = (
        module.FFTLayer,
        module.VarianceAdaptor,
        module.FastSpeech2Encoder,
    )
    run = encoder.forward

    def zeros_of_layer(
        self: Any, x: Tensor, padding_mask: Tensor | None = None
    ) -> ContextManager[None]:
        return zeros_in_all(convolutions_in(self.ffn.ffn), padding_mask)

    def zeros_of_adaptor(
        self: Any, x: Tensor, padding_mask: Tensor, *more: Any, **kw: Any
    ) -> ContextManager[None]:
        return zeros_in_all(convolutions_in(self), padding_mask)

    def forward(self: Any, *args: Any, **kw: Any) -> Any:
        postnet, self.postnet = self.postnet, None  # which needs the lengths that come out
        try:
            frames, _, lengths, *others = run(self, *args, **kw)
        finally:
            self.postnet = postnet
        smooth = None
        if postnet is not None:
            with zeros_in_all(convolutions_in(postnet), behind(lengths, frames.size(1))):
                smooth = frames + postnet(frames)
        return (frames, smooth, lengths, *others)

    call_within(layer, "forward", zeros_of_layer)
    call_within(adaptor, "forward", zeros_of_adaptor)
    encoder.forward = forward


@patch("fairseq.speech_generator", because=BECAUSE)
def speech_ends_with_its_text(module: PatchedModule) -> None:
    """Smooth the frames of each text without those that were generated behind its end."""
    generator = module.AutoRegressiveSpeechGenerator
    stock = generator.generate

    @functools.wraps(stock)
    def generate(self: Any, model: Any, *args: Any, **kw: Any) -> Any:
        decoder, postnet = model.decoder, model.decoder.postnet
        lengths: Any = None

        def step(*more: Any, **options: Any) -> Any:
            nonlocal lengths
            lengths = options.get("target_lengths")  # of the last step: of all texts
            return type(decoder).forward(decoder, *more, **options)

        def smooth(frames: Tensor) -> Tensor:
            assert lengths is not None  # after at least one step
            with zeros_in_all(convolutions_in(postnet), behind(lengths, frames.size(1))):
                return type(postnet).forward(postnet, frames)

        decoder.forward, postnet.forward = step, smooth
        try:
            return stock(self, model, *args, **kw)
        finally:
            del decoder.forward, postnet.forward

    generator.generate = generate


@patch(
    "fairseq.models.text_to_speech.tacotron2",
    because="fairseq 0.12.2: where tacotron_2 generates, each step begins with the context of the "
    "first, and not with that of the step before as in training",
)
def contexts_are_of_the_step_before(module: PatchedModule) -> None:
    """Begin a step with what the step before has attended to."""
    decoder = module.Tacotron2Decoder
    stock = decoder.forward

    @functools.wraps(stock)
    def forward(
        self: Any,
        prev_output_tokens: Tensor,
        encoder_out: Any = None,
        incremental_state: Any = None,
        *args: Any,
        **kw: Any,
    ) -> Any:
        inputs = (prev_output_tokens, encoder_out, incremental_state, *args)
        weights = self.get_incremental_state(incremental_state, "attn_w")  # (B, S)
        if weights is None:
            return stock(self, *inputs, **kw)
        context = weights.unsqueeze(1).bmm(encoder_out["encoder_out"][0]).squeeze(1)  # (B, C)
        self._get_init_attn_c = lambda _states, _is_padding: context
        try:
            return stock(self, *inputs, **kw)
        finally:
            del self._get_init_attn_c

    decoder.forward = forward


def _without_symbols_behind(stock: Any, name: str) -> Any:
    """Return a forward of an encoder whose convolutions, in ``name``, read no padding."""

    @functools.wraps(stock)
    def forward(self: Any, src_tokens: Tensor, *args: Any, **kw: Any) -> Any:
        with zeros_in_all(convolutions_in(getattr(self, name)), src_tokens.eq(self.padding_idx)):
            return stock(self, src_tokens, *args, **kw)

    return forward


def _without_frames_behind(stock: Any) -> Any:
    """Return a forward of a decoder whose postnet reads no padding; one step has none."""

    @functools.wraps(stock)
    def forward(
        self: Any,
        prev_output_tokens: Tensor,
        encoder_out: Any = None,
        incremental_state: Any = None,
        target_lengths: Tensor | None = None,
        *args: Any,
        **kw: Any,
    ) -> Any:
        is_padding = None
        if incremental_state is None and target_lengths is not None:
            is_padding = behind(target_lengths, prev_output_tokens.size(1))
        with zeros_in_all(convolutions_in(self.postnet), is_padding):
            return stock(
                self,
                prev_output_tokens,
                encoder_out,
                incremental_state,
                target_lengths,
                *args,
                **kw,
            )

    return forward
