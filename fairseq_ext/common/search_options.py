"""Options of fairseq's search that mean nothing for some outputs or inputs: refused by name."""

from typing import Any, Dict

from fairseq.models import FairseqLanguageModel

from ..compat.user_errors import option_of

# {option: the value with which it does nothing}
STEPS = {"print_step": False, "retain_iter_history": False}
SOURCE_WORDS = {"match_source_len": False, "replace_unk": None, "print_alignment": None}
# a label is one word, and all labels are scored
LABELS: Dict[str, Any] = {
    **STEPS,
    "sampling": False,
    "sampling_topk": -1,
    "sampling_topp": -1.0,
    "diverse_beam_groups": -1,
    "diversity_rate": -1.0,
    "prefix_size": 0,
    "no_repeat_ngram_size": 0,
    "constraints": None,
    "match_source_len": False,
    "replace_unk": None,
    "lm_path": None,
}


def check_language_model(options: Dict[str, Any]) -> None:
    """Raise ValueError if --lm-path names another model; ``options`` of ``build_generator``."""
    model = (options.get("extra_gen_cls_kwargs") or {}).get("lm_model")
    if model is not None and not isinstance(model, FairseqLanguageModel):
        raise ValueError(
            f"--lm-path: the checkpoint holds a {type(model).__name__}; allowed: a language model"
        )


def refuse_options(args: Any, neutral: Dict[str, Any], reason: str) -> None:
    """Raise ValueError for the first option whose value is not the neutral one.

    Args:
        args: the generation options.
        neutral: {option: value}; None and False are neutral too.
        reason: of the refusal.
    """
    for name, value in neutral.items():
        actual = getattr(args, name, value)
        if actual is not None and actual is not False and actual != value:
            raise ValueError(f"{option_of(name, actual)}: {reason}; allowed: leave it out")


def refuse_search(args: Any) -> None:
    """Raise ValueError for the first option of a search; for models whose outputs are labels."""
    refuse_options(args, LABELS, "all labels of a text are scored, there is no search")
