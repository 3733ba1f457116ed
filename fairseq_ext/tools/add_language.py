"""`fairseq-ext add-language`: new languages or pairs for a trained multi-way checkpoint.

Encoders and decoders that the checkpoint has stay as they are, to the last bit; those that the new
pairs need and the checkpoint lacks are added with fresh parameters. Training goes on with

    fairseq-train DATA --lang-pairs OLD,NEW --finetune-from-model OUTPUT ...

and, to leave all that was there alone, --train-only encoder.NEW,decoder.NEW.
"""

import argparse
from types import SimpleNamespace

from . import UsageError, atomic_path
from .checkpoint import read

MODEL = "multiway_gru"


def add_arguments(parser):
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help=f"of a {MODEL}")
    parser.add_argument(
        "data", metavar="DATA", help="folder of fairseq-preprocess with all languages' dictionaries"
    )
    parser.add_argument(
        "--pair",
        required=True,
        action="append",
        metavar="SOURCE-TARGET",
        help="a pair to add; may be given several times",
    )
    parser.add_argument(
        "--encoder-hidden-size",
        metavar="SIZES",
        help="GRU units of new encoders, one number or LANG=NUMBER,... (default: the decoder's)",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the new parameters (default: 1)")
    parser.add_argument("--output", required=True, metavar="FILE", help="where to write")


def merged_sizes(old, pairs, new, known):
    """--encoder-hidden-size for all encoders; UsageError for one that is trained already."""
    from ..multiway.config import encoder_sizes

    sources = list(dict.fromkeys(pair.split("-")[0] for pair in pairs))
    trained = [source for source in sources if source in known]
    added = [source for source in sources if source not in known]
    default = old["hidden_size"]
    try:
        sizes = encoder_sizes(old.get("encoder_hidden_size"), trained, default)
        sizes.update(encoder_sizes(new, added, default))
    except ValueError as error:
        raise UsageError(str(error)) from error
    return ",".join(f"{source}={size}" for source, size in sizes.items())


def copy_parameters(state, model, path):
    """The new model's parameters, the checkpoint's wherever it has them; also what is new."""
    new = model.state_dict()
    for name, tensor in state["model"].items():
        if new[name].shape != tensor.shape:
            part, lang = name.split(".")[:2]
            raise UsageError(
                f"DATA: dict.{lang}.txt is not the dictionary that {path} was trained with: "
                f"{part}.{lang} has {tensor.shape[0]} rows there, {new[name].shape[0]} here"
            )
    fresh = sorted({".".join(name.split(".")[:2]) for name in new if name not in state["model"]})
    return {**new, **state["model"]}, fresh


def build(args, state):
    """(the larger model, its config with the added pairs)."""
    import torch
    from fairseq import tasks
    from omegaconf import OmegaConf

    from ..common.stored import Stored, check_symbols
    from ..streams.schedule import parse_lang_pairs

    cfg = OmegaConf.to_container(OmegaConf.create(state["cfg"]), enum_to_str=True)
    try:
        known = parse_lang_pairs(cfg["model"]["lang_pairs"])
        added = parse_lang_pairs(",".join(args.pair))
    except ValueError as error:
        raise UsageError(f"--pair: {error}") from error
    repeated = [pair for pair in added if pair in known]
    if repeated:
        raise UsageError(f"--pair {repeated[0]}: {args.checkpoint} has it already: {known}")
    pairs = known + added
    cfg["model"]["encoder_hidden_size"] = merged_sizes(
        cfg["model"], pairs, args.encoder_hidden_size, {pair.split("-")[0] for pair in known}
    )
    cfg["model"]["lang_pairs"] = cfg["task"]["lang_pairs"] = ",".join(pairs)
    before = SimpleNamespace(data=cfg["task"]["data"])
    cfg["task"].update(data=args.data, source_lang=None, target_lang=None, eval_bleu=False)
    torch.manual_seed(args.seed)
    try:
        task = tasks.setup_task(argparse.Namespace(**cfg["task"], task=cfg["task"]["_name"]))
        model = task.build_model(OmegaConf.create(cfg["model"]), from_checkpoint=True)
        stored = Stored("CHECKPOINT", args.checkpoint, None, before, {})
        for lang in sorted({lang for pair in known for lang in pair.split("-")}):
            check_symbols(stored, f"dict.{lang}.txt", lang, task.dictionaries[lang])
    except ValueError as error:
        raise UsageError(f"DATA: {error}") from error
    return model, cfg


def run(args):
    """Add and write; prints what is new."""
    import torch

    state = read(args.checkpoint, MODEL)
    model, cfg = build(args, state)
    parameters, fresh = copy_parameters(state, model, args.checkpoint)
    state["model"], state["cfg"] = parameters, cfg
    # where the old run stood means nothing for the new one
    state.pop("last_optimizer_state", None)
    state["extra_state"] = {"epoch": 0}
    state.pop("task_state", None)
    with atomic_path(args.output) as temporary:
        torch.save(state, temporary)
    print(f"{args.output}: {cfg['model']['lang_pairs']}; new: {', '.join(fresh) or 'nothing'}")
    return 0
