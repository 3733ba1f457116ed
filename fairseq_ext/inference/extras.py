"""What systems add to a hypothesis: dual inference's terms, router weights, the twin's distance."""

import math
from typing import Any, Dict, List, Sequence

from ..compat.line_translator import Answer, LineTranslator


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


def pass_extras(
    model: Any, translator: LineTranslator, answers: Sequence[Answer]
) -> Dict[int, List[Dict[str, Any]]]:
    return {}
