"""Histograms of L_t of rare and of frequent words."""

import numpy as np
import pytest

from fairseq_ext.twin.commands.twin_histogram import BINS, Histogram, draw, histogram


def test_histogram_of_rare_and_frequent_words():
    """Every occurrence in its group; shares and bins are numpy's."""
    rng = np.random.default_rng(1)
    names = [f"w{number}" for number in range(7)]
    values = {name: rng.random(9 - number).tolist() for number, name in enumerate(names)}
    bars = histogram(values, names, rare=2)
    assert bars.rare == values["w5"] + values["w6"]
    assert sorted(bars.rare + bars.frequent) == sorted(sum(values.values(), []))
    shares = np.array(bars.shares())
    for column, group in ((2, bars.rare), (3, bars.frequent)):
        counts, edges = np.histogram(group, bins=BINS, range=(bars.edges[0], bars.edges[-1]))
        np.testing.assert_allclose(shares[:, column], counts / len(group))
        np.testing.assert_allclose(shares[:, 0], edges[:-1])
        np.testing.assert_allclose(shares[:, 1], edges[1:])
    numbers = dict(bars.summary())
    assert numbers["mean L_t of rare words"] == pytest.approx(np.mean(bars.rare))
    deviation = numbers["standard deviation of L_t of frequent words"]
    assert deviation == pytest.approx(np.std(bars.frequent))
    assert histogram(values, names, rare=1500).rare == sum((values[n] for n in names[4:]), [])
    same = histogram({"a": [1.0], "b": [1.0]}, ["a", "b"], 1)
    assert same.shares()[0][2:] == (1.0, 1.0)


def test_the_legend_covers_no_bar(tmp_path):
    figure = draw(Histogram([0.0, 1.0, 2.0], [0.5], [0.5, 1.5]))
    figure.savefig(tmp_path / "picture.png")
    (panel,) = figure.axes
    assert not panel.get_legend().get_window_extent().overlaps(panel.bbox)
