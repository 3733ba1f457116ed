"""Command lines of fairseq-train are parsed with fairseq's own parser and their models built.

Models are built without storage (torch's meta device), so that the large ones take no memory; those
that start from checkpoints are only parsed, and criterions that read some are not built.
"""

from argparse import Namespace

import torch
from common.composition import converted
from experiments.definition import FOLDER
from fairseq import options, tasks, utils

FROM_CHECKPOINTS = "--translation-model"
SIZES = ("layers", "embed_dim", "ffn_embed_dim", "attention_heads")


def build(words):
    """What comes out of the words of a command that runs in the folder of a clone."""
    words, place = list(words), words.index("--user-dir") + 1
    words[place] = str(FOLDER.parent / words[place])
    utils.import_user_module(Namespace(user_dir=words[place]))
    args = options.parse_args_and_arch(options.get_training_parser(), words[1:])
    cfg = converted(args)
    task = tasks.setup_task(cfg.task)
    model = None
    if FROM_CHECKPOINTS not in words:
        with torch.device("meta"):
            model = task.build_model(cfg.model)
    if getattr(cfg.criterion, "language_models", None) is None:
        task.build_criterion(cfg.criterion)
    return {
        "task": type(task).__name__,
        "model": type(model).__name__,
        "parameters": model and sum(parameter.numel() for parameter in model.parameters()),
        "sizes": [getattr(cfg.model, name, None) for name in SIZES]
        if args.task == "dual_translation"
        else None,
        "dropout": getattr(cfg.model, "dropout", None),
        "max_tokens": cfg.dataset.max_tokens,
        "max_update": cfg.optimization.max_update,
        "clip_norm": cfg.optimization.clip_norm,
        "lr": list(cfg.optimization.lr),
        "betas": str(getattr(cfg.optimizer, "adam_betas", None)),
        "criterion": cfg.criterion._name,
        "smoothing": getattr(cfg.criterion, "label_smoothing", None),
    }
