"""The example fast_noisy_channel: the limits of the length of a hypothesis."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Iterable

from ..imported_examples import modules_of_examples
from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from torch import Tensor


class DirectModels(list):  # type: ignore[type-arg]
    """The direct models of a generator, with the generator and the length of the source."""

    def __init__(self, models: Iterable[Any], generator: Any, source_length: int) -> None:
        super().__init__(models)
        self.generator, self.source_length = generator, source_length


@patch(
    *modules_of_examples("fast_noisy_channel.noisy_channel_sequence_generator"),
    because="fairseq 0.12.2: the limits of the length act after the candidates of a word were "
    "chosen; a hypothesis that is cut has the score -1e17 instead of that of its end",
)
def limits_act_on_the_candidates(module: PatchedModule) -> None:
    """Apply --min-len and --max-len-a/b to the direct model, before --k2 chooses candidates."""
    generator = module.NoisyChannelSequenceGenerator
    stock_generate, ensemble = generator.generate, module.EnsembleModel

    @functools.wraps(stock_generate)
    def generate(self: Any, models: Any, sample: Any, *more: Any, **kwargs: Any) -> Any:
        source = sample["net_input"]["src_tokens"]  # (B, S)
        if self.match_source_len:
            length = int((source.ne(self.eos) & source.ne(self.pad)).sum(dim=1).max())
        else:
            length = source.size(1)
        return stock_generate(self, DirectModels(models, self, length), sample, *more, **kwargs)

    class LimitedEnsemble(ensemble):  # type: ignore[misc, valid-type]
        """An ensemble whose probabilities of the end are 0 or 1 at the limits of the length."""

        def __init__(self, models: Any) -> None:
            super().__init__(list(models))
            self.limits = None
            if isinstance(models, DirectModels):
                self.limits = models.generator, longest(self, models)

        def forward_decoder(self, tokens: Tensor, *more: Any, **kwargs: Any) -> tuple[Tensor, Any]:
            lprobs, attention = super().forward_decoder(tokens, *more, **kwargs)
            if self.limits is not None:
                limit_length(lprobs, tokens.size(1) - 1, *self.limits)
            return lprobs, attention

    generator.generate, module.EnsembleModel = generate, LimitedEnsemble


def longest(ensemble: Any, models: DirectModels) -> int:
    """Return the number of words, without the end, after which stock cuts a hypothesis."""
    generator = models.generator
    if generator.match_source_len:
        return models.source_length
    length = int(generator.max_len_a * models.source_length + generator.max_len_b)
    return min(length, int(ensemble.max_decoder_positions()) - 1)


def limit_length(lprobs: Tensor, step: int, generator: Any, longest: int) -> None:
    """Forbid in `lprobs` (B, V) the end before --min-len words, and words at the longest length."""
    if step >= longest:
        lprobs[:, : generator.eos] = -math.inf
        lprobs[:, generator.eos + 1 :] = -math.inf
    elif step < generator.min_len:
        lprobs[:, generator.eos] = -math.inf
