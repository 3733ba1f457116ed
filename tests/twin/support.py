"""Models of small sizes, built through fairseq's own options, without training data."""

import torch
from common.inprocess import configuration
from fairseq import options, tasks

WORDS = {"xx": 13, "yy": 15}
LSTM = {
    "--encoder-embed-dim": 6,
    "--encoder-hidden-size": 7,
    "--decoder-embed-dim": 5,
    "--decoder-hidden-size": 8,
    "--decoder-out-embed-dim": 8,
}
TRANSFORMER = {
    "--encoder-embed-dim": 8,
    "--decoder-embed-dim": 8,
    "--encoder-ffn-embed-dim": 12,
    "--decoder-ffn-embed-dim": 12,
    "--encoder-layers": 2,
    "--decoder-layers": 2,
    "--encoder-attention-heads": 2,
    "--decoder-attention-heads": 2,
}
DECODER = {name: size for name, size in LSTM.items() if "decoder" in name}
SIZES = {"lstm": LSTM, "transformer": TRANSFORMER, "lstm_lm": DECODER}


def write_dictionaries(folder):
    """dict.LANG.txt for translation and dict.txt for language modelling."""
    for name, size in {**{f"dict.{lang}": n for lang, n in WORDS.items()}, "dict": 15}.items():
        lines = "".join(f"word{number} 1\n" for number in range(size - 4))
        (folder / f"{name}.txt").write_text(lines, encoding="utf-8")
    return folder


def configured(data, arch, *flags, criterion="label_smoothed_cross_entropy"):
    """The run's configuration; ``arch`` is stock or twin."""
    stock = arch.replace("twin_", "")
    words = [word for entry in SIZES[stock].items() for word in entry]
    named = ["--task", "language_modeling"] if stock.endswith("lm") else ["-s", "xx", "-t", "yy"]
    arguments = [data, "--arch", arch, *words, "--criterion", criterion, *named, *flags]
    return configuration(options.get_training_parser(), arguments)


def built(cfg):
    """(task, model)."""
    task = tasks.setup_task(cfg.task)
    return task, task.build_model(cfg.model)


@torch.no_grad()
def randomise(module, seed=0):
    """Weights far from their start; not the constants of positions."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        parameter.copy_(0.6 * torch.randn(parameter.shape, generator=generator))
    return module
