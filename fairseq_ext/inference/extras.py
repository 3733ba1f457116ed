"""What systems add to a hypothesis: dual inference's terms, router weights, the twin's distance."""

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Sequence

import numpy as np
import torch

from ..compat.generation.line_translator import Answer, LineTranslator
from ..routed.model import RoutedModel
from ..routed.modules import Router
from ..streams.task import StreamsTask
from ..twin.criterion import TwinCriterion
from .teacher_forcing import forced_batches

if TYPE_CHECKING:  # model.py imports this file
    from .model import Model


def dual_terms(hypothesis: Dict[str, Any]) -> Dict[str, Any]:
    """Return both terms of dual inference (Eq. 7), in base 2; nothing without a ranking.

    ``rank`` is the place in the list of the beam search, from 0.
    """
    terms = hypothesis.get("terms")
    if terms is None:
        return {}
    return {
        "dual": {
            "target_given_source": terms.log_y_x / math.log(2),
            "target_tokens": int(terms.y_tokens),
            "source_given_target": terms.log_x_y / math.log(2),
            "source_tokens": int(terms.x_tokens),
            "rank": hypothesis["rank"],
        }
    }


def teacher_forced_extras(
    model: "Model", translator: LineTranslator, answers: Sequence[Answer]
) -> Dict[int, List[Dict[str, Any]]]:
    """Return {number of the line: extras of each hypothesis} that take a teacher-forced pass.

    ``router``: {layer: tau (S, n) or (T, n)} of a routed model, the mean over an ensemble.
    ``twin_distance``: L_t (T,) of a single model that kept its backward network, NaN at tokens
    without one, which are the last.

    Args:
        model: of the direction.
        translator: of the answers.
        answers: of lines that were translated.
    """
    routed = routed_members(model.loaded.models)
    twin = model.loaded.twin if len(model.loaded.models) == 1 else None
    of_rows: Callable[[Dict[str, Any]], Iterator[Dict[str, Any]]]
    if routed:
        of_rows = partial(_router, model, routed)
    elif twin is not None:
        of_rows = partial(_twin, model, twin)
    else:
        return {}
    rows = [(answer, rank) for answer in answers for rank in range(len(answer.hypotheses))]
    sources = [answer.source for answer, _ in rows if answer.source is not None]
    targets = [answer.hypotheses[rank]["tokens"].cpu() for answer, rank in rows]
    extras: Dict[int, List[Dict[str, Any]]] = {
        answer.line.number: [{} for _ in answer.hypotheses] for answer in answers
    }
    for sample, places in forced_batches(translator, sources, targets) if rows else ():
        for place, entry in zip(places, of_rows(sample)):
            answer, rank = rows[place]
            extras[answer.line.number][rank] = entry
    return extras


def routed_members(models: Sequence[Any]) -> List[RoutedModel]:
    """Return the models of an ensemble that choose among blocks."""
    members = [member for member in models if isinstance(member, RoutedModel)]
    return members if members and has_router(members[0]) else []


def has_router(model: RoutedModel) -> bool:
    """True unless the model is a baseline that shares whole layers."""
    return any(isinstance(module, Router) for module in model.modules())


def _router(
    model: "Model", members: Sequence[RoutedModel], sample: Dict[str, Any]
) -> Iterator[Dict[str, Any]]:
    """Yield the router weights of each row of a batch."""
    inputs, dictionary = sample["net_input"], model.target_dictionary
    tokens, previous = inputs["src_tokens"], inputs["prev_output_tokens"]
    with torch.no_grad():
        of_members = [
            member.router_weights(tokens, previous, model.direction) for member in members
        ]
    mean = {
        layer: torch.stack([weights[layer].float() for weights in of_members]).mean(dim=0)
        for layer in of_members[0]
    }
    for row in range(len(tokens)):
        read = tokens[row].ne(dictionary.pad())  # (S',)
        written = sample["target"][row].ne(dictionary.pad())  # (T',)
        yield {
            "router": {
                layer: tau[row][read if layer.startswith("encoder") else written].cpu().numpy()
                for layer, tau in mean.items()
            }
        }


def _twin(
    model: "Model", criterion: TwinCriterion, sample: Dict[str, Any]
) -> Iterator[Dict[str, Any]]:
    """Yield the distance of both networks at each token of each row of a batch."""
    if isinstance(model.task, StreamsTask):
        sample["net_input"]["pair"] = model.direction
    for distance in twin_distances(model, criterion, sample):
        yield {"twin_distance": distance}


def twin_distances(
    model: "Model", criterion: TwinCriterion, sample: Dict[str, Any]
) -> Iterator[np.ndarray]:
    """Yield L_t (T,) of each row of a batch, NaN at tokens without one."""
    _, penalty, is_matched = criterion.token_distances(model.loaded.models[0], sample)
    distance = penalty.float().masked_fill(~is_matched, math.nan).cpu()  # (B, T)
    padding = sample["target"].eq(model.target_dictionary.pad())  # (B, T)
    for row, is_padding in enumerate(padding.cpu()):
        yield distance[row][~is_padding].numpy()
