"""The picture and the table of how the compared systems learn."""

import pytest
from recipe_tools import RecipeError

EPOCH = "epoch {0:03d} | valid on 'valid' subset | {1} | num_updates {2}"


def write_logs(folder, seed, dual_metric="de-en_nll_loss {0} | en-de_nll_loss {1}"):
    """Two epochs; the dual model is behind by `seed` bits in the first and by none afterwards."""
    for name, losses in (
        (f"stock.de-en.{seed}", ["nll_loss 6.0", "nll_loss 3.0"]),
        (f"stock.en-de.{seed}", ["nll_loss 7.0", "nll_loss 4.0"]),
        (f"dual.{seed}", [dual_metric.format(6 + seed, 7 + seed), dual_metric.format(3, 4)]),
    ):
        lines = [EPOCH.format(n, loss, 10 * n) for n, loss in enumerate(losses, start=1)]
        (folder / f"{name}.log").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_table_and_picture(script, tmp_path, capsys):
    for seed in (1, 2):
        write_logs(tmp_path, seed)
    page = tmp_path / "page.md"
    page.write_text("<!-- begin curves multi30k -->\n<!-- end curves multi30k -->\n")
    picture = tmp_path / "curves.png"
    script("curves").main([str(tmp_path), "1", "2", "--output", str(picture), "--into", str(page)])
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert rows[2:] == [
        "| 1 | 6.000 | 7.500 | +1.500 | 7.000 | 8.500 | +1.500 |",
        "| 2 | 3.000 | 3.000 | +0.000 | 4.000 | 4.000 | +0.000 |",
    ]
    assert rows[-1] in page.read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_log_without_the_direction_is_named(script, tmp_path):
    write_logs(tmp_path, 1, dual_metric="nll_loss {0}")
    with pytest.raises(RecipeError, match=r"dual\.1\.log has no validation with de-en_nll_loss"):
        script("curves").main([str(tmp_path), "1", "--output", str(tmp_path / "c.png")])
