"""The share of synthetic updates is a function of the update's number alone."""

import itertools

import numpy as np
import pytest

from fairseq_ext.streams.synthetic_share import parse_share


def expected(points, begin, start, others):
    """A loop over the run from its first update."""
    flags, total, real = [], 0.0, 0
    for update in itertools.count():
        share = 0.0
        if update >= start:
            share = float(np.interp(update - start, *zip(*points)))
        is_synthetic = int(round(total + share, 6)) > int(round(total, 6))
        total += share
        if update < begin:
            continue
        flags.append(is_synthetic)
        real += not is_synthetic
        if real == others:
            return flags


@pytest.mark.parametrize("text", ["0.5", "0.1", "0.9", "0", "0=0.1,50=0.5", "10=0.8,20=0,40=0.3"])
@pytest.mark.parametrize("begin, start", [(0, 0), (0, 7), (13, 7), (30, 0), (0, 100)])
def test_chosen_updates(text, begin, start):
    share = parse_share(text)
    chosen = share.chosen(begin, start, 40).tolist()
    assert chosen == expected(share.points, begin, start, 40)
    assert chosen.count(False) == 40 and not chosen[-1]


def test_epochs_follow_each_other():
    """The updates of two epochs are those of one epoch as long as both."""
    share = parse_share("0=0.2,30=0.7")
    first = share.chosen(0, 3, 25)
    second = share.chosen(len(first), 3, 25)
    assert [*first, *second] == share.chosen(0, 3, 50).tolist()
    assert share.count(len(first) - 3) == first.sum()


def test_half_is_every_second_update():
    assert parse_share("0.5").chosen(0, 0, 3).tolist() == [False, True, False, True, False]
    assert not parse_share("0.5").chosen(0, np.inf, 3).any()


@pytest.mark.parametrize(
    "text, message",
    [
        ("1", "'1' must be a number from 0 to 0.99"),
        ("-0.1", "must be a number"),
        ("nan", "must be a number"),
        ("half", "must be a number"),
        ("", "must be a share"),
        ("5=0.1,5=0.2", "updates that grow"),
        ("9=0.1,5=0.2", "updates that grow"),
        ("0.1,0.2", "'0.1' is not of the form UPDATE=SHARE"),
        ("x=0.1", "'x=0.1' is not of the form UPDATE=SHARE"),
        ("=0.1", "'=0.1' is not of the form UPDATE=SHARE"),
    ],
)
def test_other_shares_are_refused(text, message):
    with pytest.raises(ValueError, match=f"--synthetic-share.*{message}"):
        parse_share(text)


STREAMS = ["de-en@bt", "en-de@mono"]


def test_shares_of_streams_add_up():
    share = parse_share("de-en@bt=0.3, en-de@mono=0.2", STREAMS)
    assert share.of_streams == {"de-en@bt": 0.3, "en-de@mono": 0.2}
    assert share.chosen(0, 0, 500).mean() == pytest.approx(0.5, abs=0.01)
    assert not parse_share("0.5", STREAMS).of_streams


@pytest.mark.parametrize(
    "text, message",
    [
        ("de-en@bt=0.3", "share above 0 for each of de-en@bt, en-de@mono"),
        ("de-en@bt=0.3,en-de@mono=0", "share above 0 for each"),
        ("de-en@bt=0.5,en-de@mono=0.5", "together at most 0.99"),
        ("de-en@bt=0.3,fr-de@mono=0.2", "'fr-de@mono' is none of de-en@bt, en-de@mono"),
        ("de-en@bt=0.3,de-en@bt=0.2", "'de-en@bt' is named twice"),
        ("de-en@bt,en-de@mono=0.2", "'' must be a number"),
    ],
)
def test_other_shares_of_streams_are_refused(text, message):
    with pytest.raises(ValueError, match=f"--synthetic-share.*{message}"):
        parse_share(text, STREAMS)
