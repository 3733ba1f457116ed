"""Very small models, and a server in a thread."""

import pytest
from inference.conftest import checkpoint_of, data  # noqa: F401
from inference.stock import ALL
from serving.support import running

import fairseq_ext
from fairseq_ext.tools.serving.limits import Limits
from fairseq_ext.tools.serving.served import ServedModel


@pytest.fixture(scope="session")
def loaded(data, checkpoint_of):  # noqa: F811
    """Function (name of a system, more options of its training) -> the loaded model."""
    models = {}

    def load(name, *more):
        if (name, more) not in models:
            folder = data[ALL[name].data]
            models[name, more] = fairseq_ext.load(checkpoint_of(name, *more), folder)
        return models[name, more]

    return load


@pytest.fixture(scope="session")
def several(loaded):
    """A client of a server with a model of each kind."""
    names = {
        "dual": "dual_transformer",
        "routed": "routed_gru",
        "labels": "duo_classifier",
        "language": "gru_lm",
        "both": "dual_lstm_classifier",
    }
    limits = Limits(max_body=20_000, max_sentences=8, max_characters=100, max_beam=6)
    models = {name: ServedModel(name, loaded(system), limits) for name, system in names.items()}
    models["sources"] = ServedModel(
        "sources", loaded("multiway_gru", "--lang-pairs", "xx-yy,zz-yy"), limits
    )
    with running(models, limits) as client:
        yield client
