"""A model of the criterion `twin` without what only its training needed.

The backward network and g belong to the criterion, whose parameters stand apart in a checkpoint;
what is left are the parameters of a plain model. Of the models that are fairseq's own with a twin,
the result is a stock checkpoint, for fairseq without this package.
"""

import argparse
import shlex
from typing import Any, Dict, List

from ...compat.checkpoints.configurations import chosen_name
from ...compat.checkpoints.dictionary_digests import ENTRY, stored_digests
from ...tools.export.protocol import Checkpoint, Exporters, Group, Parameters, namespace_of

# models whose parameters and options are those of a stock model
STOCK = {"twin_lstm": "lstm", "twin_transformer": "transformer", "twin_lstm_lm": "lstm_lm"}
# tasks that are a stock one with another search
STOCK_TASKS = {"fast_translation": "translation"}
PLAIN = "label_smoothed_cross_entropy"


def twin_models() -> List[str]:
    """Return the registered models that can be trained with the criterion `twin`, sorted."""
    from fairseq.models import MODEL_REGISTRY

    from ..criterion import is_twin_model

    return sorted(name for name, model in MODEL_REGISTRY.items() if is_twin_model(model))


def plain_checkpoint(
    state: Checkpoint, parameters: Parameters, model: str, origin: str
) -> Checkpoint:
    """Return a checkpoint without backward network and optimiser state.

    state: the checkpoint; parameters: its model's state dict, or its moving average's; model: the
    registered model it is of; origin: the checkpoint's name, stored in `extra_state` beside the
    digests of the dictionaries.
    """
    config, stock = dict(state["cfg"]), STOCK.get(model)
    config["criterion"] = _plain_criterion(config["criterion"])
    if stock is not None:
        config["common"] = dict(config["common"], user_dir=None)
        config["model"] = _stock_options(config["model"], stock)
        config["task"] = _stock_task(config["task"])
    # fairseq looks at the last entry when it loads: criterion and schedule must be known to it
    history = dict(
        state["optimizer_history"][-1],
        criterion_name="LabelSmoothedCrossEntropyCriterion",
        lr_scheduler_state={},
    )
    return {
        "args": None,
        "cfg": config,
        "model": parameters,
        "criterion": None,
        "optimizer_history": [history],
        "task_state": state.get("task_state", {}),
        "extra_state": {
            "exported_from": {"file": origin, "model": stock or model},
            ENTRY: stored_digests(state),
        },
        "last_optimizer_state": None,
    }


def _plain_criterion(trained: Dict[str, Any]) -> Dict[str, Any]:
    """Return the configuration of a stock criterion with the smoothing of the one trained with."""
    return {
        "_name": PLAIN,
        "label_smoothing": trained.get("label_smoothing", 0.0),
        "report_accuracy": False,
        "ignore_prefix_size": 0,
        "sentence_avg": trained.get("sentence_avg", False),
    }


def _stock_options(trained: Group, stock: str) -> argparse.Namespace:
    """Return the options of a legacy model as a Namespace, for the stock model."""
    # options of the criterion twin and of this package stand in the same Namespace
    left_out = ("user_dir", "twin_")
    options = {k: v for k, v in vars(namespace_of(trained)).items() if not k.startswith(left_out)}
    # of the layers that are left, fairseq would leave out some once more
    options = {k: v for k, v in options.items() if not k.endswith("_layers_to_keep")}
    if "task" in options:
        options["task"] = STOCK_TASKS.get(options["task"], options["task"])
    return argparse.Namespace(**{**options, "_name": stock, "arch": stock, "criterion": PLAIN})


def _stock_task(task: Group) -> Group:
    """Return the task's options, with the name that fairseq itself knows."""
    if isinstance(task, dict) and task.get("_name") in STOCK_TASKS:
        return dict(task, _name=STOCK_TASKS[task["_name"]])
    return task


def usage(stock: Checkpoint, output: str) -> str:
    """Return the command that uses the exported file, in words of a shell."""
    model, task = stock["extra_state"]["exported_from"]["model"], stock["cfg"]["task"]
    name, path = chosen_name(task, "task"), shlex.quote(output)
    if name == "language_modeling":
        return f"fairseq-eval-lm DATA --path {path}"
    # the task of the checkpoint, unless it is fairseq-generate's default
    more = "" if name == "translation" else f" --task {name}"
    if model not in STOCK.values():
        more += ' --user-dir "$(fairseq-ext user-dir)"'
    return f"fairseq-generate DATA{more} --path {path}"


class ForwardNetwork:
    """The exporter of a model that was trained with a twin."""

    plain_checkpoint = staticmethod(plain_checkpoint)
    usage = staticmethod(usage)


def exporters() -> Exporters:
    """Return the exporters for `fairseq-ext export`."""
    return Exporters(directions={}, whole={name: ForwardNetwork() for name in twin_models()})
