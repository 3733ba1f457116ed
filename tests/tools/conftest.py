"""Trained models that are exported."""

import pytest
from tools.exporting import trained


@pytest.fixture(scope="session")
def two(toy_corpus, tmp_path_factory):
    """(checkpoint, data): post-norm, one embedding, trained with a moving average."""
    options = ("-s", "xx", "-t", "yy", "--share-all-embeddings", "--max-epoch", "8")
    options += ("--store-ema", "--ema-decay", "0.9")
    folder = tmp_path_factory.mktemp("two")
    return trained(folder, toy_corpus.two, *options), toy_corpus.two


@pytest.fixture(scope="session")
def three(toy_corpus, tmp_path_factory):
    """(checkpoint, data): pre-norm, one embedding for each of three languages, padded right."""
    options = ("--lang-pairs", "xx-yy,xx-zz", "--normalize-before", "--max-epoch", "10")
    folder = tmp_path_factory.mktemp("three")
    options += ("--left-pad-source",)
    return trained(folder, toy_corpus.three, *options), toy_corpus.three


@pytest.fixture(scope="session")
def separate(toy_corpus, tmp_path_factory):
    """(checkpoint, data): a stock transformer for each direction, the output embedding shared."""
    words = "-s xx -t yy --max-epoch 8 --arch dual_supervised_transformer --encoder-embed-dim 32 "
    words += (
        "--encoder-ffn-embed-dim 48 --encoder-layers 1 --decoder-layers 2 --activation-fn gelu "
    )
    words += "--share-decoder-input-output-embed --encoder-normalize-before "
    options = f"{words} --decoder-normalize-before".split()
    folder = tmp_path_factory.mktemp("separate")
    return trained(folder, toy_corpus.two, *options), toy_corpus.two


@pytest.fixture(scope="session")
def tagged(toy_corpus, tmp_path_factory):
    """(checkpoint, data): one stock transformer of both directions."""
    words = "-s xx -t yy --max-epoch 8 --arch tagged_transformer --share-all-embeddings "
    words += "--encoder-embed-dim 32 --encoder-ffn-embed-dim 48 --encoder-layers 1 "
    words += "--decoder-layers 2"
    folder = tmp_path_factory.mktemp("tagged")
    return trained(folder, toy_corpus.two, *words.split()), toy_corpus.two
