"""Checkpoints for the tests of `fairseq-ext export`, and the command itself."""

from common import inprocess

from fairseq_ext import __main__ as command

TASK = ("--task", "dual_translation")
SEARCH = ("--beam", "5", "--nbest", "5", "--max-tokens", "500", "--min-len", "0")
TINY = ("--arch", "dual_transformer_tiny", "--dropout", "0", "--lr", "3e-3", "--max-tokens", "200")
TRAIN = (*TASK, *TINY, "--criterion", "label_smoothed_cross_entropy", "--optimizer", "adam")
TRAIN += ("--label-smoothing", "0.1", "--disable-validation", "--no-epoch-checkpoints")


def trained(folder, data, *options):
    inprocess.train(data, *TRAIN, "--save-dir", folder, *options)
    return folder / "checkpoint_last.pt"


def export(checkpoint, source, target, to, output, *options):
    words = ["export", checkpoint, "-s", source, "-t", target, "--to", to, "--output", output]
    return command.main([str(word) for word in (*words, *options)])
