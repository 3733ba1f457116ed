"""Models built through fairseq's own options, on dictionaries without data."""

import pytest
from common.inprocess import configuration
from fairseq import options, tasks
from streams.directions import write_dictionaries

SMALL = ["--embed-dim", 12, "--ffn-embed-dim", 20, "--attention-heads", 3, "--layers", 2]


@pytest.fixture(scope="session")
def dictionaries(tmp_path_factory):
    """Folder with dict.xx.txt, dict.yy.txt, dict.zz.txt."""
    return write_dictionaries(tmp_path_factory.mktemp("dictionaries"))


@pytest.fixture(scope="session")
def build(dictionaries):
    """Function (arch, options...) -> (configuration, task, model); -s xx -t yy by default."""

    def make(arch, *flags, task="translation", languages=("-s", "xx", "-t", "yy"), data=None):
        words = [data or dictionaries, "--task", task, *languages, "--arch", arch, *flags]
        cfg = configuration(options.get_training_parser(), words)
        task = tasks.setup_task(cfg.task)
        return cfg, task, task.build_model(cfg.model)

    return make


@pytest.fixture(scope="session")
def duo(build):
    """Function (options...) -> (configuration, task, model) of a small duo_transformer."""
    return lambda *flags, **more: build("duo_transformer", *SMALL, *flags, **more)
