"""Batches of sources with targets that are given, for passes that search nothing.

Dimensions: B rows, S source tokens, T target tokens with the end symbol.
"""

from typing import Any, Dict, Iterator, List, Sequence, Tuple

import torch
from fairseq import utils
from fairseq.data.data_utils import collate_tokens
from torch import Tensor

from ..compat.checkpoints.configurations import options_of_task
from ..compat.generation.ensemble_attention import attention_of
from ..compat.generation.line_translator import Answer, EncodedLine, LineTranslator
from .search import set_beams


def forced_batches(
    translator: LineTranslator, sources: Sequence[EncodedLine], targets: Sequence[Tensor]
) -> Iterator[Tuple[Dict[str, Any], List[int]]]:
    """Yield batches, and for each of their rows the place in ``sources`` and ``targets``.

    Args:
        translator: of the direction.
        sources: encoded lines.
        targets: (T,) each, on the CPU.

    A batch has "net_input" with "src_tokens", "src_lengths" and "prev_output_tokens" (B, T),
    "target" (B, T), "ntokens" and "nsentences".
    """
    set_beams(translator.models, 1)
    dictionary = translator.target_dictionary
    task = translator.task
    options = options_of_task(task)
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


def aligns_whole_targets(translator: LineTranslator) -> bool:
    """True if a model was trained to align with all of the target in view (Garg et al. 2019)."""
    return any(getattr(model, "full_context_alignment", False) for model in translator.models)


def align_whole_targets(translator: LineTranslator, answers: Sequence[Answer]) -> None:
    """Give hypotheses the attention (S, T) that such models have with all of the target in view.

    Args:
        translator: of the answers.
        answers: of lines that were translated; changed in place.
    """
    rows = [(answer.source, entry) for answer in answers for entry in answer.hypotheses]
    sources = [source for source, _ in rows if source is not None]
    targets = [entry["tokens"].cpu() for _, entry in rows]
    for sample, places in forced_batches(translator, sources, targets) if rows else ():
        with torch.no_grad():
            outputs = [model(**sample["net_input"]) for model in translator.models]
        # a model that was trained to align is among them
        of_models = [weights for weights in map(attention_of, outputs) if weights is not None]
        mean = torch.stack([weights.float() for weights in of_models]).mean(dim=0)  # (B, T, S)
        real = sample["target"].ne(translator.target_dictionary.pad())  # (B, T)
        for row, place in enumerate(places):
            rows[place][1]["attention"] = mean[row][real[row]].t()
