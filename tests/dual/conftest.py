"""Dual models on the toy corpus, built through fairseq's own options; made-up reviews."""

import random

import pytest
from common.inprocess import configuration
from dual.reviews import binarise, write_reviews
from fairseq import options, tasks

SMALL = {"--embed-dim": 12, "--ffn-embed-dim": 20, "--attention-heads": 3, "--layers": 2}


@pytest.fixture(scope="session")
def dual_task(toy_corpus):
    """Function (options...) -> (task, model) of the arch dual_transformer, small, on xx-yy."""

    def build(*flags, data=None, languages=("-s", "xx", "-t", "yy"), sizes=SMALL):
        words = [word for entry in sizes.items() for word in entry]
        arguments = [data or toy_corpus.two, "--task", "dual_translation", *languages]
        arguments += ["--arch", "dual_transformer", *words, *flags]
        cfg = configuration(options.get_training_parser(), arguments)
        task = tasks.setup_task(cfg.task)
        return task, task.build_model(cfg.model)

    return build


@pytest.fixture(scope="session")
def stock_task(toy_corpus):
    """Function (shape, options...) -> (task, model) of the stock arch transformer on xx-yy."""

    def build(shape, *flags, data=None):
        arguments = [data or toy_corpus.two, "--task", "translation", "-s", "xx", "-t", "yy"]
        arguments += ["--arch", "transformer", "--dropout", 0]
        for side in ("encoder", "decoder"):
            arguments += [f"--{side}-embed-dim", shape.embed_dim]
            arguments += [f"--{side}-ffn-embed-dim", shape.ffn_dim]
            arguments += [f"--{side}-attention-heads", shape.heads]
            arguments += [f"--{side}-layers", shape.layers]
            if shape.normalize_before:
                arguments.append(f"--{side}-normalize-before")
        cfg = configuration(options.get_training_parser(), [*arguments, *flags])
        task = tasks.setup_task(cfg.task)
        return task, task.build_model(cfg.model)

    return build


@pytest.fixture(scope="session")
def reviews(tmp_path_factory):
    """Folder with texts and labels and, in bin, what fairseq-preprocess makes of them."""
    folder = tmp_path_factory.mktemp("reviews")
    write_reviews(folder, random.Random(3))
    binarise(folder)
    return folder
