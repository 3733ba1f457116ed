"""Data for every task."""

import pytest
from options.systems import Data


@pytest.fixture(scope="session")
def data(toy_corpus, tmp_path_factory):
    """{kind of data: folder}."""
    return Data(toy_corpus, tmp_path_factory.mktemp)
