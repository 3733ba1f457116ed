"""A model of the criterion `twin` without what only its training needed.

The backward network and g belong to the criterion, whose parameters stand apart in a checkpoint;
what is left are the parameters of a plain model. Of the models that are fairseq's own with a twin,
the result is a stock checkpoint, for fairseq without this package.
"""

import argparse

# models whose parameters and options are those of a stock model
STOCK = {"twin_lstm": "lstm", "twin_transformer": "transformer", "twin_lstm_lm": "lstm_lm"}
# tasks that are a stock one with another search
STOCK_TASKS = {"fast_translation": "translation"}
PLAIN = "label_smoothed_cross_entropy"


def twin_models():
    """The registered models that can be trained with the criterion `twin`, sorted."""
    from fairseq.models import MODEL_REGISTRY

    from ..twin.criterion import offers_twin

    return sorted(name for name, model in MODEL_REGISTRY.items() if offers_twin(model))


def plain_checkpoint(state, parameters, model, origin):
    """A checkpoint without backward network and optimiser state.

    state: the checkpoint; parameters: its model's state dict, or its moving average's; model: the
    registered model it is of; origin: the checkpoint's name, kept in `extra_state`.
    """
    config, stock = dict(state["cfg"]), STOCK.get(model)
    config["criterion"] = _plain_criterion(config["criterion"])
    if stock is not None:
        config["common"] = dict(config["common"], user_dir=None)
        config["model"] = _stock_options(config["model"], stock)
        config["task"] = _stock_task(config["task"])
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
        "extra_state": {"exported_from": {"file": origin, "model": stock or model}},
        "last_optimizer_state": None,
    }


def _plain_criterion(trained):
    """The configuration of a stock criterion with the smoothing of the one trained with."""
    return {
        "_name": PLAIN,
        "label_smoothing": trained.get("label_smoothing", 0.0),
        "report_accuracy": False,
        "ignore_prefix_size": 0,
        "sentence_avg": trained.get("sentence_avg", False),
    }


def _stock_options(namespace, stock):
    """The Namespace of a legacy model's options, for the stock model."""
    left_out = ("user_dir", "twin_")
    kept = {k: v for k, v in vars(namespace).items() if not k.startswith(left_out)}
    if "task" in kept:
        kept["task"] = STOCK_TASKS.get(kept["task"], kept["task"])
    return argparse.Namespace(**{**kept, "_name": stock, "arch": stock, "criterion": PLAIN})


def _stock_task(task):
    """The task's options, with the name that fairseq itself knows."""
    name = task.get("_name") if isinstance(task, dict) else None
    return dict(task, _name=STOCK_TASKS[name]) if name in STOCK_TASKS else task


def use(stock, output):
    """The command that uses the exported file, in words of a shell."""
    model, task = stock["extra_state"]["exported_from"]["model"], stock["cfg"]["task"]
    name = task["_name"] if isinstance(task, dict) else task.task
    if name == "language_modeling":
        return f"fairseq-eval-lm DATA --path {output}"
    more = "" if name == "translation" else f" --task {name}"
    if model not in STOCK.values():
        more += ' --user-dir "$(fairseq-ext user-dir)"'
    return f"fairseq-generate DATA{more} --path {output}"
