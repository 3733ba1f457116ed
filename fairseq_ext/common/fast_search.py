"""The choice of ``beam_search.py`` in a task's ``build_generator``."""

from typing import Any, Dict, Mapping

from ..compat.command_line.option_checks import check_search
from .beam_search import BeamSearchGenerator, BeamSearchWithAlignment
from .search_options import STEPS, check_language_model, refuse_options


def fast_search(args: Any, options: Dict[str, Any]) -> Dict[str, Any]:
    """Return the options of ``build_generator`` by which fairseq builds these generators.

    Args:
        args: the generation options.
        options: what ``build_generator`` was called with; a ``seq_gen_cls`` in it wins.

    Raises ValueError for values that fairseq-generate refuses, with the same message.
    """
    if options.get("seq_gen_cls") is not None:
        return options
    check_search(args if isinstance(args, Mapping) else vars(args))
    refuse_options(args, STEPS, "there are no steps of iterative refinement to show")
    check_language_model(options)
    generator_options = dict(options.get("extra_gen_cls_kwargs") or {})
    replaces = getattr(args, "replace_unk", None) is not None
    alignment = getattr(args, "print_alignment", None) or ("hard" if replaces else None)
    if alignment:
        generator_options["print_alignment"] = alignment
    generator = BeamSearchWithAlignment if alignment else BeamSearchGenerator
    return {**options, "seq_gen_cls": generator, "extra_gen_cls_kwargs": generator_options}
