"""Every option of an architecture changes its model, is refused, or is warned of."""

import argparse

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from options.systems import SYSTEMS, built, first_batch

from fairseq_ext.compat.command_line import unread_options

# {option: why no value of it can change these models}
ELSEWHERE = {
    **dict.fromkeys(
        "--encoder-embed-path --decoder-embed-path --embed-path-s --embed-path-p "
        "--target-embed-path-s --target-embed-path-p --freeze-embeddings".split(),
        "needs a file of vectors: tests/duo, tests/compat/data/test_word_vectors.py",
    ),
    "--adaptive-softmax-cutoff": "needs another criterion: tests/twin/test_models.py",
    "--encoder-xformers-att-config": "needs xformers",
    "--decoder-xformers-att-config": "needs xformers",
    "--export": "TorchScript alone reads it",
}
# {option: (values, options that it needs)}
EXAMPLES = {
    "--adaptive-softmax-dropout": (["0.3"], []),
    "--decoder-attention": (["False", "True"], []),
    "--decoder-layers-to-keep": (["0"], []),
    "--decoder-output-dim": (["10"], []),
    "--encoder-layers-to-keep": (["0"], []),
    "--encoder-type": (["xx=sum"], []),
    "--residuals": ([None], ["--decoder-layers", "2"]),
}


def examples_of(action, value):
    """Other values of an option than ``value``; None stands for an option without a value."""
    if action.nargs == 0:
        return [None]
    if action.choices:
        return [str(choice) for choice in action.choices if choice != value]
    if action.type is int:
        return [str(2 * (value or 1)), str((value or 1) + 1)]
    if action.type is float:
        return ["0.37"]
    return ["no_such_value"]


def declared(system, words):
    """{option of the architecture: (values to try, options that it needs)}."""
    parser = argparse.ArgumentParser(add_help=False, conflict_handler="resolve")
    ARCH_MODEL_REGISTRY[system.arch].add_args(parser)
    namespace, _ = parser.parse_known_args([str(word) for word in words])
    for name in [name for name, value in vars(namespace).items() if value is None]:
        delattr(namespace, name)
    ARCH_CONFIG_REGISTRY[system.arch](namespace)  # the values of what is not given
    tried = {}
    for action in parser._actions:
        option = [name for name in action.option_strings if name.startswith("--")][-1]
        value = getattr(namespace, action.dest, None)
        tried[option] = EXAMPLES.get(option, (examples_of(action, value), []))
    return tried


def behaviour(system, data, *more):
    """Parameters, losses and gradients of a batch: in training and out of it, early and late."""
    torch.manual_seed(1)
    cfg, task, model = built(system, data, *more)
    criterion, batch = task.build_criterion(cfg.criterion), first_batch(task)
    parameters = [
        (name, tuple(p.shape), p.requires_grad, float(p.detach().double().sum()))
        for name, p in model.named_parameters()
    ]
    numbers = []
    for training in (True, False):
        model.train(training), criterion.train(training)
        for update in (0, 50):
            model.set_num_updates(update)
            model.zero_grad()
            torch.manual_seed(2)
            loss, *_ = criterion(model, batch)
            loss.backward()
            gradients = (p.grad for p in model.parameters() if p.grad is not None)
            numbers += [float(loss), sum(float(grad.double().abs().sum()) for grad in gradients)]
    return parameters, numbers, str(model.max_positions())


def sides(limits):
    """Limits of source and target; a language model has that of its texts alone."""
    return limits if isinstance(limits, tuple) else (None, limits)


@pytest.mark.parametrize("name", SYSTEMS)
def test_models_have_the_limits_of_their_task(data, name):
    """Each side its own, of a direction as well."""
    folder = data[SYSTEMS[name].data]
    asked = [("--max-source-positions", 19), ("--max-target-positions", 17)]
    default = sides(built(SYSTEMS[name], folder)[2].max_positions())
    words = [word for words, limit in zip(asked, default) if limit for word in words]
    _, task, model = built(SYSTEMS[name], folder, *words)
    expected = tuple(limit and number for limit, (_, number) in zip(default, asked))
    assert sides(model.max_positions()) == expected
    for pair in task.pairs if hasattr(model, "direction") else ():
        direction = model.direction(pair)
        assert (direction.encoder.max_positions(), direction.max_decoder_positions()) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_no_option_of_an_architecture_is_ignored(data, name, monkeypatch, caplog, capsys):
    warnings = []
    monkeypatch.setattr(unread_options, "_warn", warnings.append)
    system = SYSTEMS[name]
    folder = data[system.data]
    words = system.words(folder)
    ignored = []
    for option, (values, needed) in declared(system, words).items():
        if option in ELSEWHERE:
            continue
        before = behaviour(system, folder, *needed)
        for value in values:
            warnings.clear(), caplog.clear()
            try:
                words = needed + [option] + ([] if value is None else [value])
                if behaviour(system, folder, *words) != before:
                    break
            except (SystemExit, Exception) as error:
                printed = capsys.readouterr().err
                if option in f"{error} {printed}":
                    break
                raise AssertionError(f"{option} {value}: {error!r} {printed}") from error
            if any(option in text for text in [*warnings, *caplog.messages]):
                break
        else:
            ignored.append((option, values))
    assert not ignored
