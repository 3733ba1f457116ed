"""`fairseq-ext add-language`: new languages or pairs for a trained multi-way checkpoint.

Encoders and decoders that the checkpoint has stay as they are, to the last bit; those that the new
pairs need and the checkpoint lacks are added with fresh parameters. So are the decoders of a
backward network, where the criterion was `twin`. Training goes on with

    fairseq-train DATA --lang-pairs OLD,NEW --finetune-from-model OUTPUT ...

and, to leave all that was there alone, --train-only encoder.NEW,decoder.NEW.
"""

import argparse
from typing import TYPE_CHECKING, Any, Collection, Dict, List, NamedTuple, Optional, Tuple

from ...compat.checkpoints.dictionary_digests import ENTRY, digests
from ...streams.language_pair import languages, sides
from ...tools import UsageError, check_apart, check_new, save_atomically
from ...tools.checkpoint.reading import read

if TYPE_CHECKING:
    from torch import Tensor

    from ..model import MultiwayModel

Parameters = Dict[str, "Tensor"]
MODEL = "multiway_gru"
# where the criterion ``twin`` has its backward network
BACKWARD = "network."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `fairseq-ext add-language`."""
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help=f"checkpoint of a {MODEL}")
    parser.add_argument(
        "data",
        metavar="DATA",
        help="folder of fairseq-preprocess with the dictionaries of all languages",
    )
    parser.add_argument(
        "--pair",
        required=True,
        action="append",
        metavar="SOURCE-TARGET",
        help="pair to add; repeat the option for several pairs",
    )
    parser.add_argument(
        "--encoder-hidden-size",
        metavar="SIZES",
        help="number of GRU units of new encoders, one number or LANG=NUMBER,... (default: the "
        "decoder's)",
    )
    parser.add_argument(
        "--encoder-type",
        metavar="TYPES",
        help="type of new encoders: gru (default), lstm or convolution, or LANG=TYPE,...",
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="random seed of the new parameters (default: 1)"
    )
    parser.add_argument("--output", required=True, metavar="FILE", help="checkpoint to write")
    parser.add_argument("--force", action="store_true", help="replace --output if it exists")


def merged_encoders(
    old: Dict[str, Any], args: argparse.Namespace, pairs: List[str], trained_langs: Collection[str]
) -> Dict[str, str]:
    """Return --encoder-hidden-size and --encoder-type for all encoders.

    Those of new encoders come from args; UsageError where args name one that is trained already.
    """
    from ..config import encoder_sizes, encoder_types

    sources, _ = sides(pairs)
    trained = [source for source in sources if source in trained_langs]
    added = [source for source in sources if source not in trained_langs]
    merged: Dict[str, str] = {}
    parsers: List[Tuple[str, Any, Any]] = [
        ("encoder_hidden_size", encoder_sizes, old["hidden_size"]),
        ("encoder_type", encoder_types, "gru"),
    ]
    for name, parse, default in parsers:
        try:
            # checkpoints of versions that had gru alone lack the type
            values = parse(old.get(name), trained, default)
            values.update(parse(getattr(args, name), added, default))
        except ValueError as error:
            raise UsageError(str(error)) from error
        merged[name] = ",".join(f"{source}={value}" for source, value in values.items())
    return merged


def copy_parameters(
    state: Dict[str, Any], model: "MultiwayModel", path: str
) -> Tuple[Dict[str, Any], List[str]]:
    """Return the new model's parameters, the checkpoint's wherever it has them; and what is new."""
    new = model.state_dict()
    for name, tensor in state["model"].items():
        if name not in new:
            raise UsageError(
                f"CHECKPOINT {path}: {name} is no parameter of this version's {MODEL}; allowed: a "
                "checkpoint that fairseq-generate reads"
            )
        if new[name].shape != tensor.shape:
            part, lang = name.split(".")[:2]
            raise UsageError(
                f"DATA: dict.{lang}.txt is not the dictionary that {path} was trained with: "
                f"{part}.{lang} has {tensor.shape[0]} rows there, {new[name].shape[0]} here"
            )
    fresh = sorted({".".join(name.split(".")[:2]) for name in new if name not in state["model"]})
    return {**new, **state["model"]}, fresh


def criterion_parameters(
    stored: Optional[Parameters], backward: Optional[Parameters]
) -> Tuple[Optional[Parameters], List[str]]:
    """Return the criterion's parameters, the checkpoint's wherever it has them; and what is new.

    stored: of the checkpoint, None where its criterion has none. backward: those of a fresh
    backward network for all pairs; None where the checkpoint has no such network.
    """
    if stored is None or backward is None:
        return stored, []
    new = {BACKWARD + name: tensor for name, tensor in backward.items()}
    fresh = {".".join(name.split(".")[:3]) for name in new if name not in stored}
    return {**new, **stored}, sorted(fresh)


class Larger(NamedTuple):
    """The model with the added pairs.

    backward: parameters of a fresh backward network of the criterion ``twin``, None where the
    checkpoint has none. cfg: the configuration of its run. digests: {lang: digest} of the
    dictionaries.
    """

    model: "MultiwayModel"
    backward: Optional[Parameters]
    cfg: Dict[str, Any]
    digests: Dict[str, str]


def build(args: argparse.Namespace, state: Dict[str, Any]) -> Larger:
    """Return the larger model; UsageError for what does not fit."""
    import torch
    from fairseq import tasks
    from omegaconf import OmegaConf

    from ...common.stored import check_symbols, stored_of
    from ...streams.lang_pairs import parse_lang_pairs
    from ...streams.stored_pairs import stored_pairs

    cfg: Any = OmegaConf.to_container(OmegaConf.create(state["cfg"]), enum_to_str=True)
    try:
        old_pairs = stored_pairs(cfg["model"])
        added = parse_lang_pairs(",".join(args.pair))
    except ValueError as error:
        raise UsageError(f"--pair: {error}") from error
    repeated = [pair for pair in added if pair in old_pairs]
    if repeated:
        raise UsageError(f"--pair {repeated[0]}: {args.checkpoint} has it already: {old_pairs}")
    pairs = old_pairs + added
    trained, _ = sides(old_pairs)
    cfg["model"].update(merged_encoders(cfg["model"], args, pairs, trained))
    cfg["model"]["lang_pairs"] = cfg["task"]["lang_pairs"] = ",".join(pairs)
    langs = languages(old_pairs)
    cfg["task"].update(data=args.data, source_lang=None, target_lang=None, eval_bleu=False)
    torch.manual_seed(args.seed)
    try:
        task = tasks.setup_task(argparse.Namespace(**cfg["task"], task=cfg["task"]["_name"]))
        options = OmegaConf.create(cfg["model"])
        model = task.build_model(options, from_checkpoint=True)
        # the next training loads the network strictly, with the decoders of the added pairs
        has_backward = any(name.startswith(BACKWARD) for name in state.get("criterion") or {})
        backward = model.build_backward(options, task).state_dict() if has_backward else None
        stored = stored_of("CHECKPOINT", args.checkpoint, state)
        for lang in sorted(langs):
            check_symbols(stored, f"dict.{lang}.txt", lang, task.dictionaries[lang])
    except ValueError as error:
        raise UsageError(f"DATA: {error}") from error
    # as a training will write them; what an old checkpoint does not record stays unknown
    fresh = {lang: text for lang, text in digests(task).items() if lang not in langs}
    return Larger(model, backward, cfg, {**stored.digests, **fresh})


def extend_checkpoint(args: argparse.Namespace) -> int:
    """Add and write; print what is new."""
    check_apart(args.output, [args.checkpoint])
    check_new(args.output, args.force)
    state = read(args.checkpoint, MODEL)
    larger = build(args, state)
    parameters, fresh = copy_parameters(state, larger.model, args.checkpoint)
    criterion, fresh_backward = criterion_parameters(state.get("criterion"), larger.backward)
    state.update(model=parameters, criterion=criterion, cfg=larger.cfg)
    # where the old run stood means nothing for the new one
    state.pop("last_optimizer_state", None)
    state["extra_state"] = {"epoch": 0, ENTRY: larger.digests}
    state.pop("task_state", None)
    save_atomically(state, args.output)
    new = ", ".join([*fresh, *fresh_backward]) or "nothing"
    print(f"{args.output}: {larger.cfg['model']['lang_pairs']}; new: {new}")
    if fresh:
        groups = ",".join(name.replace("coders.", "coder.") for name in fresh)
        print(f"to leave all that was there alone: --train-only {groups}")
    return 0
