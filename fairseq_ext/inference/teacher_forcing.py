"""Batches of sources with targets that are given, for passes that search nothing.

Dimensions: B rows, T target tokens with the end symbol.
"""

from typing import Any, Dict, Iterator, List, Sequence, Tuple

from fairseq import utils
from fairseq.data.data_utils import collate_tokens
from torch import Tensor

from ..compat.line_translator import LineTranslator, Source
from .places import options_of


def forced_batches(
    translator: LineTranslator, sources: Sequence[Source], targets: Sequence[Tensor]
) -> Iterator[Tuple[Dict[str, Any], List[int]]]:
    """Yield batches, and for each of their rows the place in ``sources`` and ``targets``.

    Args:
        translator: of the direction.
        sources: encoded lines.
        targets: (T,) each, on the CPU.

    A batch has "net_input" with "src_tokens", "src_lengths" and "prev_output_tokens" (B, T),
    "target" (B, T), "ntokens" and "nsentences".
    """
    dictionary = translator.target_dictionary
    task = translator.task
    options = options_of(getattr(task, "cfg", None) or task.args)
    left = bool(options.get("left_pad_target", False))
    for batch in translator.batches(translator.dataset(sources)):
        places = batch["id"].tolist()
        rows = [targets[place] for place in places]
        pad, eos = dictionary.pad(), dictionary.eos()
        inputs = {name: batch["net_input"][name] for name in ("src_tokens", "src_lengths")}
        previous = collate_tokens(rows, pad, eos, left, move_eos_to_beginning=True)
        sample = {
            "net_input": {**inputs, "prev_output_tokens": previous},
            "target": collate_tokens(rows, pad, eos, left),
            "ntokens": sum(len(row) for row in rows),
            "nsentences": len(rows),
        }
        if translator.device.type != "cpu":
            sample = utils.move_to_cuda(sample, translator.device)
        yield sample, places
