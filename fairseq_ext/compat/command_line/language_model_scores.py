"""fairseq-eval-lm: words and their scores stay together, whatever the scores are."""

from __future__ import annotations

import logging
import math
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, NamedTuple, Sequence

from ..patch_registry import PatchedModule, patch
from ..user_errors import OptionError

if TYPE_CHECKING:
    import torch
    from fairseq.data import Dictionary
    from fairseq.models import BaseFairseqModel

logger = logging.getLogger("fairseq_cli.eval_lm")

CONTINUATION = "@@"  # what a piece of a word ends with, unless it is the last one


class ScoredWord(NamedTuple):
    """A word of a block.

    text: without the marks of its pieces. score: the sum of their ln P.
    has_pieces: it is of more than one. is_whole: the block does not end inside of it.
    """

    text: str
    score: float
    has_pieces: bool
    is_whole: bool


def scored_words(
    symbols: Sequence[str], scores: Sequence[float], joins_pieces: bool
) -> Iterator[ScoredWord]:
    """Yield the words of a block: its symbols, or what pieces of subword-nmt make together.

    symbols, scores: [tokens], the scores being ln P.
    """
    text, total, pieces = "", 0.0, 0
    for symbol, score in zip(symbols, scores):
        total += score
        pieces += 1
        if joins_pieces and symbol.endswith(CONTINUATION):
            text += symbol[: -len(CONTINUATION)]
            continue
        yield ScoredWord(text + symbol, total, pieces > 1, True)
        text, total, pieces = "", 0.0, 0
    if pieces:
        yield ScoredWord(text, total, pieces > 1, False)


class WordCounts:
    """What the words of all blocks come to. Words of infinite score do not count.

    Args:
        new_entry: makes the statistics of a word, of its text and of whether it has pieces.
    """

    def __init__(self, new_entry: Callable[[str, bool], Any]) -> None:
        self._new_entry = new_entry
        self._entries: dict[str, Any] = {}
        self._sum = 0.0
        self._count = 0

    def add(self, block: int, words: Sequence[ScoredWord]) -> None:
        """Count the words of a block; its number is for the warning."""
        infinite = [word.text for word in words if not math.isfinite(word.score)]
        if infinite:
            logger.warning(f"block {block}: words of infinite score do not count: {infinite}")
        for word, following in zip_longest(words, words[1:]):
            if not math.isfinite(word.score):
                continue
            self._sum += word.score
            self._count += 1
            if word.is_whole:
                if word.text not in self._entries:
                    self._entries[word.text] = self._new_entry(word.text, word.has_pieces)
                next_counts = following is not None and math.isfinite(following.score)
                self._entries[word.text].add(word.score, following.score if next_counts else None)

    def add_other_workers(self, distributed_utils: Any, device: Any) -> None:
        """Add the sums of the other workers, for ``mean``; the statistics stay this worker's.

        Args:
            distributed_utils: fairseq's module of this name.
            device: of the tensor that the workers exchange.
        """
        import torch

        if distributed_utils.get_data_parallel_world_size() > 1:
            sums = torch.tensor([self._sum, self._count], dtype=torch.float64, device=device)
            distributed_utils.all_reduce(sums, distributed_utils.get_data_parallel_group())
            self._sum, self._count = sums[0].item(), int(sums[1].item())

    def by_frequency(self) -> list[Any]:
        """Return the statistics of the words, the most frequent first."""
        return sorted(self._entries.values(), key=lambda entry: -entry.count)

    def mean(self) -> dict[str, float]:
        """Return the mean -log2 P of a word as "loss", and 2 to its power as "perplexity"."""
        if not self._count:
            logger.warning("no word has a finite score: there is no perplexity")
            return {"loss": math.nan, "perplexity": math.nan}
        loss = -self._sum / self._count / math.log(2)
        return {"loss": loss, "perplexity": 2.0**loss}


@patch(
    "fairseq_cli.eval_lm",
    because="fairseq 0.12.2: words after an infinite score get the scores of others, a block with "
    "--add-bos-token that ends inside a word is an IndexError, --post-process subword_nmt joins "
    "nothing, data without a token has the perplexity 1, and with several workers it is that of "
    "the first one's batches",
)
def words_have_their_scores(module: PatchedModule) -> None:
    """Score word by word."""
    from fairseq import utils

    def eval_lm(
        models: list[BaseFairseqModel],
        source_dictionary: Dictionary,
        batch_iterator: Iterable[dict[str, Any]],
        post_process: str | None = None,
        output_word_probs: bool = False,
        output_word_stats: bool = False,
        target_dictionary: Dictionary | None = None,
        softmax_batch: int = 0,
        remove_bos_token: bool = False,
        device: torch.device | None = None,
    ) -> dict[str, float]:
        """Return what `WordCounts.mean` does of all batches; the arguments are fairseq's."""
        if post_process not in (None, "subword_nmt", f"{CONTINUATION} "):
            raise OptionError(
                f"--post-process {post_process!r} is not allowed; allowed: subword_nmt, '@@ '"
            )
        scorer = module.SequenceScorer(target_dictionary or source_dictionary, softmax_batch)
        device = device or next(models[0].parameters()).device
        timer = module.StopwatchMeter()
        counts = WordCounts(module.WordStat)
        start = 1 if remove_bos_token else 0
        for sample in batch_iterator:
            if "net_input" not in sample:
                continue
            sample = utils.move_to_cuda(sample, device=device)
            timer.start()
            hypotheses = scorer.generate(models, sample)
            timer.stop(sample["ntokens"])
            for block, (hypothesis, *_) in zip(sample["id"].tolist(), hypotheses):
                tokens = hypothesis["tokens"].tolist()
                if remove_bos_token and tokens[0] != source_dictionary.bos():
                    raise ValueError(f"block {block} does not begin with <s> (--add-bos-token)")
                symbols = [source_dictionary[token] for token in tokens[start:]]
                scores = hypothesis["positional_scores"][start:].tolist()
                words = list(scored_words(symbols, scores, post_process is not None))
                counts.add(block, words)
                if output_word_probs:
                    whole = (word for word in words if word.is_whole)
                    shown = "\t".join(f"{word.text} [{word.score:2f}]" for word in whole)
                    logger.info(f"{block} {shown}")
        speed = 1.0 / timer.avg if timer.avg > 0 else 0
        logger.info(f"Evaluated {timer.n:,} tokens in {timer.sum:.1f}s ({speed:.2f} tokens/s)")
        for entry in counts.by_frequency() if output_word_stats else ():
            logger.info(entry)
        counts.add_other_workers(module.distributed_utils, device)
        return counts.mean()

    module.eval_lm = eval_lm
