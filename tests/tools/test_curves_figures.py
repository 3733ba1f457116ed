"""Pictures of the commands that draw, and the tables beside them."""

import sys

import pytest

from fairseq_ext.tools import UsageError
from fairseq_ext.tools.curves import figures


@pytest.mark.parametrize(
    "panels, columns, rows", [(1, 1, 1), (1, 3, 1), (3, 3, 1), (4, 3, 2), (7, 3, 3)]
)
def test_panels_stand_in_as_few_rows_as_possible(panels, columns, rows):
    figure, axes = figures.new_figure(panels, columns, inches=(2, 1))
    assert len(axes) == panels
    assert tuple(figure.get_size_inches()) == (2 * min(panels, columns), rows)


@pytest.mark.parametrize("suffix", figures.SUFFIXES)
def test_a_picture_is_written_whole(tmp_path, suffix):
    figure, (axes,) = figures.new_figure(1, 1, inches=(1, 1))
    axes.plot([0, 1], [1, 0])
    figures.save(figure, tmp_path / f"picture{suffix}")
    assert [path.name for path in tmp_path.iterdir()] == [f"picture{suffix}"]
    assert (tmp_path / f"picture{suffix}").stat().st_size > 0


def test_the_table_has_the_name_of_the_picture(tmp_path):
    figures.write_table(["x\ty", "1\t2"], tmp_path / "curve.png")
    assert (tmp_path / "curve.tsv").read_text(encoding="utf-8") == "x\ty\n1\t2\n"


def test_a_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match="matplotlib is missing; install it"):
        figures.new_figure(1, 1)


@pytest.mark.parametrize(
    "values, label",
    [([400, 900], "600"), ([3, 2000], "1,000"), ([5.1, 5.9], "5.6"), ([0.2, 5], "1")],
)
def test_logarithmic_axes_have_plain_numbers(values, label):
    figure, (axes,) = figures.new_figure(1, 1)
    axes.plot([0, 1], values)
    figures.logarithmic(axes)
    figure.canvas.draw()
    labels = axes.yaxis.get_ticklabels(which="both")
    shown = [text.get_text() for text in labels if text.get_text()]
    assert label in shown
    assert all(float(text.replace(",", "")) > 0 for text in shown)
