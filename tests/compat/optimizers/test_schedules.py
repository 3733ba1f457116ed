"""What the schedules of the learning rate make of --lr and --phase-ratio."""

import math
import shutil
from fractions import Fraction
from types import SimpleNamespace

import pytest
from common import inprocess
from fairseq import options
from fairseq.optim.lr_scheduler.cosine_lr_scheduler import CosineLRSchedule
from fairseq.optim.lr_scheduler.fixed_schedule import FixedLRSchedule
from fairseq.optim.lr_scheduler.inverse_square_root_schedule import InverseSquareRootSchedule
from fairseq.optim.lr_scheduler.manual_lr_scheduler import ManualSchedule
from fairseq.optim.lr_scheduler.polynomial_decay_schedule import PolynomialDecayLRSchedule
from fairseq.optim.lr_scheduler.step_lr_scheduler import StepLRSchedule
from fairseq.optim.lr_scheduler.tri_stage_lr_scheduler import TriStageLRSchedule
from fairseq.optim.lr_scheduler.triangular_lr_scheduler import TriangularLRSchedule


class Optimizer:
    """Keeps the rate it is given."""

    def set_lr(self, rate):
        self.rate = rate

    def get_lr(self):
        return self.rate


@pytest.fixture(autouse=True)
def any_optimizer(monkeypatch):
    """Schedules that take the optimiser above."""
    name = "fairseq.optim.lr_scheduler.fairseq_lr_scheduler.FairseqOptimizer"
    monkeypatch.setattr(name, Optimizer)


def polynomial(rates, **settings):
    """A schedule without decay."""
    defaults = {"warmup_updates": 0, "force_anneal": None, "end_learning_rate": 0.0, "power": 1.0}
    cfg = SimpleNamespace(lr=rates, total_num_update=100.0, **{**defaults, **settings})
    return PolynomialDecayLRSchedule(cfg, Optimizer())


def test_each_epoch_has_its_rate():
    schedule = polynomial([4.0, 2.0, 1.0])
    assert [schedule.step_begin_epoch(epoch) for epoch in (1, 2, 3, 4)] == [4, 2, 1, 1]


def test_annealing_keeps_the_rate_there_is():
    schedule = polynomial([4.0, 2.0], force_anneal=2)
    assert schedule.step_begin_epoch(1) == 4
    schedule.optimizer.set_lr(3.0)
    assert schedule.step_begin_epoch(2) == 3


def annealed_rates(schedule, updates):
    """The rate behind each update; 5 of them are an epoch, the second is the first annealed one."""
    rates = []
    for update in updates:
        if update % 5 == 0 or not rates:
            schedule.step_begin_epoch(1 + update // 5)
            schedule.step_update(update)
        rates.append(schedule.step_update(update + 1))
    return rates


@pytest.mark.parametrize("stop", [5, 8, 10, 13])
def test_annealed_rates_go_on(stop):
    """At the beginning of an epoch and in its middle."""
    rates = annealed_rates(polynomial([4.0], force_anneal=2), range(20))
    assert rates[5] < 0.96 * rates[4]  # from the rate at the end of the epoch before
    before = polynomial([4.0], force_anneal=2)
    annealed_rates(before, range(stop))
    after = polynomial([4.0], force_anneal=2)
    after.load_state_dict(before.state_dict())
    after.optimizer.set_lr(before.optimizer.get_lr())
    after.step_update(stop)
    assert annealed_rates(after, range(stop, 20)) == rates[stop:]


def tri_stage(ratios):
    cfg = SimpleNamespace(
        lr=[1.0], init_lr_scale=0.1, final_lr_scale=0.1, phase_ratio=ratios, max_update=100
    )
    return TriStageLRSchedule(cfg, Optimizer())


@pytest.mark.parametrize("ratios", [(0.7, 0.2, 0.1), (0.2, 0.7, 0.1), (0.1, 0.4, 0.5)])
def test_ratios_add_up(ratios):
    schedule = tri_stage(ratios)
    assert (schedule.warmup_steps, schedule.hold_steps) == tuple(int(100 * r) for r in ratios[:2])


@pytest.mark.parametrize(
    "settings, warmup",
    [
        ({"phase_ratio": (0.1, 0.9, 0.0), "max_update": 100}, 10),
        ({"phase_ratio": (0.5, 0.46, 0.04), "max_update": 20}, 10),  # less than one update of decay
        ({"phase_ratio": None, "warmup_steps": 10, "hold_steps": 5, "decay_steps": 0}, 10),
        ({"phase_ratio": None, "warmup_steps": 10, "hold_steps": 0, "decay_steps": 0}, 10),
    ],
)
def test_rates_remain_where_there_is_no_decay(settings, warmup):
    cfg = SimpleNamespace(lr=[2.0], init_lr_scale=0.1, final_lr_scale=0.1, **settings)
    schedule = TriStageLRSchedule(cfg, Optimizer())
    rates = [schedule.step_update(update) for update in range(200)]
    ascent = [0.2 + 1.8 * update / warmup for update in range(warmup)]
    assert rates == pytest.approx(ascent + [2.0] * (200 - warmup))
    assert cfg.phase_ratio == settings["phase_ratio"]


def test_rates_decay_as_before():
    """Exponentially, to a tenth after 50 updates."""
    cfg = SimpleNamespace(
        lr=[2.0], init_lr_scale=0.1, final_lr_scale=0.1, phase_ratio=(0, 0.5, 0.5), max_update=100
    )
    schedule = TriStageLRSchedule(cfg, Optimizer())
    rates = [schedule.step_update(update) for update in range(200)]
    decay = [2.0 * 0.1 ** (update / 50) for update in range(51)]
    assert rates == pytest.approx([2.0] * 50 + decay + [0.2] * 99)


def test_a_schedule_without_stages_is_refused():
    cfg = SimpleNamespace(lr=[2.0], init_lr_scale=0.1, final_lr_scale=0.1, phase_ratio=None)
    cfg.warmup_steps = cfg.hold_steps = cfg.decay_steps = 0
    with pytest.raises(AssertionError, match="please specify steps or phase_ratio"):
        TriStageLRSchedule(cfg, Optimizer())


def test_ratios_that_do_not():
    with pytest.raises(AssertionError, match="add up to 1"):
        tri_stage((0.7, 0.2, 0.2))


PLATEAU = ("--lr-scheduler", "reduce_lr_on_plateau", "--max-tokens", 4000)


def test_a_plateau_begins_anew(tiny_training, tmp_path, monkeypatch):
    """With its rate, or with a warm-up, which counts the updates before."""
    monkeypatch.undo()
    warnings = []

    def rates(*flags):
        with inprocess.logged_lines() as lines:
            records = inprocess.train(*tiny_training, *PLATEAU, "--save-dir", tmp_path, *flags)
        warnings[:] = [line for line in lines if "goes on with the learning rate" in line]
        return [record["train_lr"] for record in records if "train_lr" in record]

    assert rates("--lr", 0.002, "--max-epoch", 1) == [0.002]
    shutil.copy(tmp_path / "checkpoint1.pt", tmp_path / "begin.pt")
    again = ("--restore-file", tmp_path / "begin.pt", "--max-epoch", 2, "--lr", 0.0005)
    assert rates(*again) == [0.002]  # as the checkpoint says
    assert len(warnings) == 1 and "rate 0.002 of" in warnings[0]
    assert "not with --lr 0.0005; to change it, add --reset-lr-scheduler" in warnings[0]
    assert rates(*again[:4], "--lr", 0.002) == [0.002] and not warnings
    assert rates(*again, "--optimizer-overrides", "{'lr': 0.0005}") == [0.0005] and not warnings
    assert rates(*again, "--reset-lr-scheduler") == [0.0005] and not warnings
    assert rates(*again, "--reset-lr-scheduler", "--warmup-updates", 1) == [0.0005]


def manual(epochs="{}", updates="{}"):
    return ManualSchedule(
        SimpleNamespace(epoch2lr=epochs, update2lr=updates, lr=[9.0]), Optimizer()
    )


@pytest.mark.parametrize("text", ['{1: 4, "2-3": 2, 5: 1}', "{'1': 4, '2, 3': 2, '5': 1}"])
def test_rates_have_numbers_or_ranges_as_keys(text):
    schedule = manual(text)
    assert [schedule.step_begin_epoch(epoch) for epoch in range(1, 6)] == [4, 2, 2, 2, 1]
    assert manual(updates=text).step_update(3) == 2


@pytest.mark.parametrize("text", ["[1]", "{1: 'a'}", "{'x': 1}", "{", "{'1-': 2}"])
def test_rates_that_cannot_be_read_are_named(text):
    with pytest.raises(ValueError, match="--update2lr .*: allowed: a dictionary"):
        manual(updates=text)


def test_the_rates_that_win_are_named(caplog):
    """Those of the updates, from the first one that has a rate."""
    schedule = manual("{1: 4, 2: 2}", "{3: 0.5}")
    assert "--update2lr holds from update 3 on, whatever --epoch2lr says" in caplog.text
    assert [schedule.step_begin_epoch(1), schedule.step_update(2)] == [4, 4]
    assert [schedule.step_update(3), schedule.step_begin_epoch(2)] == [0.5, 2]
    assert schedule.step_update(4) == 0.5


def test_epochs_alone_have_rates(caplog):
    schedule = manual("{1: 4, 2: 2}")
    assert [schedule.step_begin_epoch(2), schedule.step_update(7)] == [2, 2]
    assert "WARNING" not in caplog.text


def cosine(factor, updates):
    cfg = SimpleNamespace(
        lr=[1.0], min_lr=0.0, t_mult=factor, lr_period_updates=10.0, max_update=updates
    )
    return CosineLRSchedule(
        SimpleNamespace(**vars(cfg), warmup_updates=2, warmup_init_lr=-1.0, lr_shrink=1.0),
        Optimizer(),
    )


@pytest.mark.parametrize("factor, updates", [(0.5, 21), (0.9, 101), (1, 1000), (2, 1000)])
def test_periods_that_reach_the_end(factor, updates):
    schedule = cosine(factor, updates)
    rates = [schedule.step_update(update) for update in range(updates + 1)]
    assert rates[2] == 1 and 0 <= min(rates) and max(rates) == 1


@pytest.mark.parametrize("factor, updates", [(0.5, 22), (0.5, 0), (0, 5), (-1, 5)])
def test_periods_that_end_before_the_training_are_refused(factor, updates):
    with pytest.raises(ValueError, match=rf"--t-mult {factor} with --lr-period-updates 10: allow"):
        cosine(factor, updates)


def test_a_warmup_may_take_all_updates():
    """Stock divides by the period behind the last update."""
    for factor in (1, 2, 0.5):
        cfg = {"lr": [1.0], "min_lr": 0.0, "t_mult": factor, "lr_period_updates": -1.0}
        cfg.update(max_update=4, warmup_updates=4, warmup_init_lr=-1.0, lr_shrink=1.0)
        schedule = CosineLRSchedule(SimpleNamespace(**cfg), Optimizer())
        assert [schedule.step_update(n) for n in range(5)] == [0, 0.25, 0.5, 0.75, 1]


@pytest.mark.parametrize("factor", ["1", "2", "3", "10", "1.5", "0.9"])
@pytest.mark.parametrize("period", ["1", "7", "100", "2.5"])
def test_rates_of_all_periods(factor, period):
    """Against exact sums of the periods; stock begins some of them one update late."""
    growth, length, last = Fraction(factor), Fraction(period), 2500
    if growth < 1:
        last = int(length / (1 - growth)) - 1
    cfg = {
        "lr": [2.0],
        "min_lr": 0.1,
        "t_mult": float(growth),
        "max_update": last,
        "lr_shrink": 0.5,
    }
    cfg.update(lr_period_updates=float(length), warmup_updates=3, warmup_init_lr=0.5)
    schedule = CosineLRSchedule(SimpleNamespace(**cfg), Optimizer())
    expected, begin, shrink = [0.5, 1.0, 1.5], Fraction(0), 1.0
    for update in range(last - 2):
        while update - begin >= length:
            begin, length, shrink = begin + length, length * growth, shrink / 2
        wave = 1 + math.cos(math.pi * float((update - begin) / length))
        expected.append(shrink * (0.1 + 0.5 * (2.0 - 0.1) * wave))
    rates = [schedule.step_update(update) for update in range(len(expected))]
    assert rates == pytest.approx(expected, rel=1e-9)


def test_rates_of_cycles():
    cfg = SimpleNamespace(
        lr=[0.5], max_lr=2.5, lr_period_updates=8.0, lr_shrink=0.5, shrink_min=True
    )
    schedule = TriangularLRSchedule(cfg, Optimizer())
    first = [0.5, 1.0, 1.5, 2.0, 2.5, 2.0, 1.5, 1.0]
    expected = first + [rate / 2 for rate in first]
    assert [schedule.step_update(update) for update in range(16)] == pytest.approx(expected)
    cfg.shrink_min = False
    schedule = TriangularLRSchedule(cfg, Optimizer())
    second = [0.5 + (rate - 0.5) * (1.25 - 0.5) / 2.0 for rate in first]
    assert [schedule.step_update(update) for update in range(16)] == pytest.approx(first + second)


def test_rates_of_steps():
    cfg = {"lr": [2.0], "min_lr": 0.3, "lr_deacy_period": 3, "lr_decay": 0.5}
    cfg.update(warmup_updates=2, warmup_init_lr=1.0)
    schedule = StepLRSchedule(SimpleNamespace(**cfg), Optimizer())
    expected = [1.0, 1.5] + [2.0] * 3 + [1.0] * 3 + [0.5] * 3 + [0.3] * 4
    assert [schedule.step_update(update) for update in range(15)] == expected


def test_rates_of_polynomials():
    schedule = polynomial([2.0], warmup_updates=4, end_learning_rate=0.5, power=2.0)
    schedule.step_begin_epoch(1)
    expected = [2.0 * update / 4 for update in range(5)]
    expected += [1.5 * (1 - (update - 4) / 96) ** 2 + 0.5 for update in range(5, 100)] + [0.5] * 9
    assert [schedule.step_update(update) for update in range(109)] == pytest.approx(expected)


def test_rates_of_inverse_square_roots():
    cfg = SimpleNamespace(lr=[2.0], warmup_updates=4, warmup_init_lr=1.0)
    schedule = InverseSquareRootSchedule(cfg, Optimizer())
    expected = [1.0, 1.25, 1.5, 1.75] + [2.0 * (4 / update) ** 0.5 for update in range(4, 40)]
    assert [schedule.step_update(update) for update in range(40)] == pytest.approx(expected)


def test_fixed_rates_and_their_annealing():
    cfg = SimpleNamespace(lr=[4.0, 2.0], force_anneal=4, lr_shrink=0.5, warmup_updates=2)
    schedule = FixedLRSchedule(cfg, Optimizer())
    assert [schedule.step_update(update) for update in range(3)] == [2, 4, 4]
    rates = [schedule.step_begin_epoch(epoch) for epoch in range(1, 7)]
    assert rates == [4, 2, 2, 1, 0.5, 0.25]


def test_the_decay_ends_with_the_training(tiny_training):
    words = [*tiny_training, "--lr-scheduler", "polynomial_decay", "--max-update", 40]
    parser = options.get_training_parser
    cfg = inprocess.configuration(parser(), words)
    assert cfg.lr_scheduler.total_num_update == 40
    cfg = inprocess.configuration(parser(), [*words, "--total-num-update", 30])
    assert cfg.lr_scheduler.total_num_update == 30
