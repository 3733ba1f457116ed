"""Updates, time and likelihoods that fairseq's logs tell."""

import math

import pytest
from experiments import UsageError
from experiments.logs import epochs_of, likelihoods, timed, updates_per_epoch


def epoch(number, wall, updates):
    return (
        f"2026-01-01 | INFO | train | epoch {number:03d} | loss 1 | num_updates {updates} "
        f"| train_wall {wall} | wall 9\n"
    )


@pytest.fixture
def log(tmp_path):
    """Function (lines) -> a log with them."""

    def write(*lines):
        path = tmp_path / "train.log"
        path.write_text("".join(lines), encoding="utf-8")
        return path

    return write


def test_times_are_of_whole_epochs(log):
    path = log(
        epoch(1, 20, 100),
        "2026 | INFO | Loaded checkpoint x (epoch 2 @ 150 updates)\n",
        epoch(2, 5, 200),
        epoch(3, 22, 300),
    )
    assert epochs_of(path) == ([(20.0, 100), (22.0, 100)], 300)
    values = timed([path])
    assert values["updates"] == 300 and values["seconds per epoch"] == 21.0
    assert values["ms per update"] == pytest.approx(210.0)


def test_a_log_that_is_not_there(tmp_path):
    for read in (epochs_of, lambda path: likelihoods(path, 1)):
        with pytest.raises(UsageError, match=r"cannot read .*none\.log: No such file"):
            read(tmp_path / "none.log")


def test_short_epochs_are_not_timed(log):
    assert timed([log(epoch(1, 2, 10))]) == {"updates": 10}


def test_the_rest_of_an_epoch_alone_is_not_timed(log):
    """With many pairs, the last updates of a recipe are fewer than a pass over them."""
    path = log(
        "2026 | INFO | Loaded checkpoint x (epoch 2 @ 7000 updates)\n",
        epoch(2, 20, 8400),
    )
    assert epochs_of(path) == ([], 8400)
    assert timed([path]) == {"updates": 8400}
    with pytest.raises(UsageError, match="its only epoch ended early"):
        updates_per_epoch(path)


def test_several_logs_are_added(log, tmp_path):
    path = log(epoch(1, 20, 100))
    assert timed([path, path])["updates"] == 200
    assert timed([path, path])["seconds per epoch"] == 40.0


def test_a_log_of_two_stages_is_of_both(log):
    begin = "2026 | INFO | fairseq_cli.train | {{'checkpoint': {{'save_dir': '{}'}}}}\n"
    path = log(
        begin.format("first"),
        epoch(1, 20, 100),
        epoch(2, 30, 200),
        begin.format("second"),
        "2026 | INFO | Loaded checkpoint x (epoch 2 @ 0 updates)\n",
        epoch(1, 40, 100),
        begin.format("second"),
        "2026 | INFO | Loaded checkpoint x (epoch 2 @ 120 updates)\n",
        epoch(2, 10, 160),
    )
    assert epochs_of(path) == ([(20.0, 100), (30.0, 100), (40.0, 100)], 360)
    assert timed([path])["ms per update"] == pytest.approx(300.0)


def test_a_log_without_an_epoch(log):
    with pytest.raises(UsageError, match=r"train\.log: it has no finished training epoch"):
        timed([log("nothing\n")])


def test_likelihoods_of_a_language_model(log):
    begin = "2026-01-01 | INFO | fairseq_cli.eval_lm |"
    path = log(
        f"{begin} 1 a [-1.500000]\t</s> [-0.250000]\n",
        f"{begin} 0 [1] [-2.000000]\n",
        f"{begin} Loss (base 2): 1.2, Perplexity: 2.3\n",
    )
    assert likelihoods(path, 2) == ["2.0 1", "1.75 2"]
    with pytest.raises(UsageError, match=r"train\.log: likelihoods of 2 lines of 3"):
        likelihoods(path, 3)


def test_likelihoods_are_in_nats_and_in_order(log):
    path = log("P-1\t-1.0 -2.0\n", "P-0\t-0.5\n")
    (first, second) = (line.split() for line in likelihoods(path, 2))
    assert float(first[0]) == pytest.approx(0.5 * math.log(2)) and first[1] == "1"
    assert float(second[0]) == pytest.approx(3 * math.log(2)) and second[1] == "2"


def test_an_epoch_that_is_trained_again_from_its_middle_is_not_timed(log):
    """The checkpoint may be older than the last epoch that ended, as with --save-interval 2."""
    path = log(
        epoch(1, 20, 100),
        epoch(2, 20, 200),
        "2026 | INFO | Loaded checkpoint x (epoch 2 @ 150 updates)\n",
        epoch(2, 10, 200),
        epoch(3, 22, 300),
    )
    assert epochs_of(path) == ([(20.0, 100), (22.0, 100)], 300)


@pytest.mark.parametrize("end", ["| num_upd", "| train_wall 2"])
def test_an_epoch_whose_line_was_cut_off_is_not_timed(log, end):
    """The updates of the epoch behind it would be those of both."""
    whole = epoch(2, 20, 200)
    path = log(
        epoch(1, 20, 100),
        whole[: whole.index(end) + len(end)] + "2026-01-01 00:00:00 | INFO | {'_name': None}\n",
        "2026 | INFO | Loaded checkpoint x (epoch 3 @ 200 updates)\n",
        epoch(3, 22, 300),
        epoch(4, 24, 400),
    )
    assert epochs_of(path) == ([(20.0, 100), (24.0, 100)], 400)
    path = log(epoch(1, 20, 100), "epoch 002 | lo\n", epoch(3, 22, 300), epoch(4, 24, 400))
    assert epochs_of(path) == ([(20.0, 100), (24.0, 100)], 400)


def test_how_long_an_epoch_is(log):
    inner = "2026-01-01 | INFO | train_inner | epoch 001:     50 / 125 loss=1, num_updates=50\n"
    stopped = "2026 | INFO | fairseq_cli.train | Stopping training due to num_updates: 70 >= "
    stopped += "max_update: 70\n"
    assert updates_per_epoch(log(inner, stopped, epoch(1, 20, 70))) == 125
    assert updates_per_epoch(log(epoch(1, 20, 100), stopped, epoch(2, 20, 170))) == 100
    assert updates_per_epoch(log(epoch(1, 20, 100))) == 100
    with pytest.raises(UsageError, match="only epoch ended early.*; allowed: --by updates"):
        updates_per_epoch(log(stopped, epoch(1, 20, 70)))
