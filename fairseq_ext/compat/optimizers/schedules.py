"""Schedules of the learning rate: what they make of their options."""

from __future__ import annotations

import copy
import functools
import logging
import math
from typing import TYPE_CHECKING, Any

from ..module_overlay import overlay_names
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_after
from ..training.after_loading import CheckpointLoading, after_loading

if TYPE_CHECKING:
    from fairseq.optim import FairseqOptimizer
    from fairseq.optim.lr_scheduler.cosine_lr_scheduler import CosineLRSchedule
    from fairseq.optim.lr_scheduler.manual_lr_scheduler import ManualSchedule
    from fairseq.optim.lr_scheduler.polynomial_decay_schedule import PolynomialDecayLRSchedule
    from fairseq.optim.lr_scheduler.tri_stage_lr_scheduler import TriStageLRSchedule
    from fairseq.trainer import Trainer

logger = logging.getLogger(__name__)

FIRST_RATE = "first_rate"  # in the state of reduce_lr_on_plateau


@patch(
    "fairseq.optim.lr_scheduler.polynomial_decay_schedule",
    because="fairseq 0.12.2: of --lr A,B,C the first epoch has B: A is never used",
)
def rates_begin_with_the_first(module: PatchedModule) -> None:
    """Give epoch N the N-th rate of --lr, as --lr-scheduler fixed does."""
    schedule = module.PolynomialDecayLRSchedule
    stock = schedule.get_next_lr

    @functools.wraps(stock)
    def get_next_lr(self: PolynomialDecayLRSchedule, epoch: int) -> float:
        anneal = self.cfg.force_anneal
        if anneal is not None and epoch >= anneal:
            return float(stock(self, epoch))
        return float(self.cfg.lr[min(epoch, len(self.cfg.lr)) - 1])

    schedule.get_next_lr = get_next_lr


@patch(
    "fairseq.optim.lr_scheduler.polynomial_decay_schedule",
    because="fairseq 0.12.2: with polynomial_decay --force-anneal, a run that goes on has other "
    "rates than without the interruption: those of an epoch decay from the rate at its beginning, "
    "which no checkpoint holds",
)
def annealed_rates_are_resumed(module: PatchedModule) -> None:
    """Keep the rate that an annealed epoch has begun with in the checkpoint."""
    schedule = module.PolynomialDecayLRSchedule
    stock, save = schedule.get_next_lr, schedule.state_dict
    schedule.annealed = None  # (epoch, the rate at its beginning)

    @functools.wraps(stock)
    def get_next_lr(self: Any, epoch: int) -> float:
        anneal = self.cfg.force_anneal
        if anneal is None or epoch < anneal:
            return float(stock(self, epoch))
        if self.annealed is None or self.annealed[0] != epoch:
            self.annealed = epoch, float(stock(self, epoch))
        return float(self.annealed[1])

    @functools.wraps(save)
    def state_dict(self: Any) -> dict[str, Any]:
        annealed = {} if self.annealed is None else {"annealed": self.annealed}
        return {**save(self), **annealed}

    def restore(self: Any, state_dict: dict[str, Any]) -> None:
        if self.cfg.force_anneal is not None and "annealed" in state_dict:
            self.annealed = state_dict["annealed"]
            self.lr = self.annealed[1]  # the rate of the last update follows from it

    schedule.get_next_lr, schedule.state_dict = get_next_lr, state_dict
    call_after(schedule, "load_state_dict", restore)


@patch(
    "fairseq.dataclass.utils",
    because="fairseq 0.12.2: --lr-scheduler polynomial_decay without --total-num-update, whose "
    "default is --max-update, ends in 'Error merging override lr_scheduler.total_num_update=null'",
)
def decays_end_with_the_training(module: PatchedModule) -> None:
    """Leave the option a reference to --max-update where it is not given."""
    stock = module._override_attr

    @functools.wraps(stock)
    def _override_attr(sub_node: str, data_class: Any, args: Any) -> list[str]:
        overrides: list[str] = stock(sub_node, data_class, args)
        empty = "lr_scheduler.total_num_update=null"
        return [override for override in overrides if override != empty]

    module._override_attr = _override_attr


@patch(
    "fairseq.optim.lr_scheduler.tri_stage_lr_scheduler",
    because="fairseq 0.12.2: --phase-ratio '(0.7, 0.2, 0.1)' ends in 'phase ratios must add up to "
    "1', because their sum differs from 1 in its 16th digit",
)
def ratios_are_added_exactly(module: PatchedModule) -> None:
    """Add the ratios without rounding errors between them."""
    module.sum = math.fsum  # the module's only sum


@patch(
    "fairseq.optim.lr_scheduler.tri_stage_lr_scheduler",
    because="fairseq 0.12.2: tri_stage without a decay, as with --phase-ratio '(0.1, 0.9, 0)', "
    "ends in ZeroDivisionError",
)
def rates_need_no_decay(module: PatchedModule) -> None:
    """Keep the rate of --hold-steps where no --decay-steps follow."""
    schedule = module.TriStageLRSchedule
    build = schedule.__init__

    @functools.wraps(build)
    def __init__(self: TriStageLRSchedule, cfg: Any, optimizer: FairseqOptimizer) -> None:
        warmup, hold, decay = _steps_of_stages(cfg)
        if decay or not warmup + hold:
            build(self, cfg, optimizer)
            return
        cfg = copy.copy(cfg)
        cfg.phase_ratio = None
        cfg.warmup_steps, cfg.hold_steps, cfg.decay_steps = warmup, hold, 1
        build(self, cfg, optimizer)
        self.decay_steps, self.decay_factor, self.final_lr = 0, 0.0, self.peak_lr

    schedule.__init__ = __init__


def _steps_of_stages(cfg: Any) -> tuple[int, int, int]:
    """Return the updates of warm-up, holding and decay."""
    ratio = cfg.phase_ratio
    if ratio is None:
        return cfg.warmup_steps, cfg.hold_steps, cfg.decay_steps
    if math.fsum(ratio) != 1 or cfg.max_update <= 0:
        return 0, 0, 0  # fairseq refuses it
    warmup, hold, decay = (int(cfg.max_update * part) for part in ratio)
    return warmup, hold, decay


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: with --lr-scheduler reduce_lr_on_plateau, --reset-lr-scheduler goes "
    "on with the rate of the checkpoint, whatever --lr",
)
def plateaus_begin_anew_with_lr(module: PatchedModule) -> None:
    """Begin with --lr where --reset-lr-scheduler keeps the optimiser's state."""

    def begin_with_lr(trainer: Trainer, loading: CheckpointLoading) -> None:
        schedule = getattr(trainer.cfg.lr_scheduler, "_name", None)
        if loading.extra_state is None or not loading.reset_lr_scheduler:
            return
        if schedule == "reduce_lr_on_plateau":
            # the state of the optimiser has brought its rate; a warm-up sets its own
            trainer.optimizer.set_lr(trainer.cfg.optimization.lr[0])
            trainer.lr_step_update()

    after_loading(module.Trainer, begin_with_lr)


@patch(
    "fairseq.optim.lr_scheduler.reduce_lr_on_plateau",
    because="fairseq 0.12.2: a checkpoint of reduce_lr_on_plateau does not tell the --lr that it "
    "began with",
)
def plateaus_note_their_first_rate(module: PatchedModule) -> None:
    """Store --lr with the state of the schedule."""
    schedule = module.ReduceLROnPlateauLRSchedule
    save = schedule.state_dict

    @functools.wraps(save)
    def state_dict(self: Any) -> dict[str, Any]:
        return {**save(self), FIRST_RATE: float(self.cfg.lr[0])}

    schedule.state_dict = state_dict


@patch(
    "fairseq.trainer",
    because="fairseq 0.12.2: with reduce_lr_on_plateau, another --lr has no effect on a training "
    "that goes on, and nothing says so",
)
def rates_of_plateaus_are_named(module: PatchedModule) -> None:
    """Warn where the checkpoint began with another --lr than the one that is named."""

    def warn(trainer: Trainer, loading: CheckpointLoading) -> None:
        keeps = loading.extra_state is not None and not loading.reset_optimizer
        if not keeps or loading.reset_lr_scheduler or "lr" in loading.optimizer_overrides:
            return
        if not getattr(trainer.lr_scheduler, "warmup_end", False):
            return  # another schedule, or its warm-up, which rises to --lr
        rate = trainer.cfg.optimization.lr[0]
        # without this patch no first rate was stored
        first = trainer._optim_history[-1]["lr_scheduler_state"].get(FIRST_RATE, rate)
        if first != rate and trainer.is_data_parallel_master:
            logger.warning(
                f"the training goes on with the learning rate {trainer.get_lr():g} of "
                f"{loading.filename}, which began with {first:g}, not with --lr {rate:g}; to "
                "change it, add --reset-lr-scheduler"
            )

    after_loading(module.Trainer, warn)


@patch(
    "fairseq.optim.lr_scheduler.manual_lr_scheduler",
    because="fairseq 0.12.2: --epoch2lr '{1: 0.5}' ends in \"argument of type 'int' is not "
    'iterable"; only keys in quotes are read',
)
def rates_have_numbers_as_keys(module: PatchedModule) -> None:
    """Read {1: 0.5, "2-4": 0.1, "5,6": 0.05}; ValueError, with the option's name, for others."""
    schedule = module.ManualSchedule
    build, parse = schedule.__init__, schedule.parse_manuallr_args

    def parse_manuallr_args(self: ManualSchedule, lr_args_str: str) -> dict[int, float]:
        """Return {epoch or update: rate}."""
        rates = module.ast.literal_eval(lr_args_str.strip())
        # fairseq takes texts, without blanks, for keys
        keys = {str(key).replace(" ", ""): rate for key, rate in rates.items()}
        result: dict[int, float] = parse(self, repr(keys))
        return result

    @functools.wraps(build)
    def __init__(self: ManualSchedule, args: Any, optimizer: FairseqOptimizer) -> None:
        for name in ("epoch2lr", "update2lr"):
            text = getattr(args, name)
            try:
                self.parse_manuallr_args(text)
            except (AttributeError, IndexError, SyntaxError, TypeError, ValueError):
                raise ValueError(
                    f"--{name} {text}: allowed: a dictionary such as "
                    '{1: 0.5, "2-4": 0.1, "5,6": 0.05}'
                ) from None
        build(self, args, optimizer)

    schedule.parse_manuallr_args, schedule.__init__ = parse_manuallr_args, __init__


@patch(
    "fairseq.optim.lr_scheduler.manual_lr_scheduler",
    because="fairseq 0.12.2: --update2lr silently wins over --epoch2lr; without it, each update "
    "logs a warning of what is missing there",
)
def winning_rates_are_named(module: PatchedModule) -> None:
    """Warn where both options are given; leave the rate alone, without a word, if one is not."""
    schedule = module.ManualSchedule
    step = schedule.step_update

    def warn_of_both(self: ManualSchedule, args: Any, optimizer: FairseqOptimizer) -> None:
        if self.epoch2lr and self.update2lr:
            logger.warning(
                "--update2lr holds from update %s on, whatever --epoch2lr says",
                min(self.update2lr),
            )

    @functools.wraps(step)
    def step_update(self: ManualSchedule, num_updates: int) -> float:
        if self.update2lr:
            return float(step(self, num_updates))
        return float(self.optimizer.get_lr())

    call_after(schedule, "__init__", warn_of_both)
    schedule.step_update = step_update


@patch(
    "fairseq.optim.lr_scheduler.cosine_lr_scheduler",
    because="fairseq 0.12.2: --lr-scheduler cosine with --t-mult below 1 ends in 'math domain "
    "error' in the middle of a training",
)
def periods_reach_the_end(module: PatchedModule) -> None:
    """Refuse, before the training, periods that grow shorter and end before it does."""
    schedule = module.CosineLRSchedule

    def check_periods(
        self: CosineLRSchedule, cfg: Any, fairseq_optimizer: FairseqOptimizer
    ) -> None:
        if self.t_mult >= 1 or self.period <= 0:  # the warm-up takes all updates
            return
        # the sum of all periods: a geometric series
        last = math.inf if self.t_mult <= 0 else self.period / (1 - self.t_mult)
        updates = cfg.max_update - cfg.warmup_updates
        if self.t_mult <= 0 or cfg.max_update <= 0 or updates >= last:
            raise ValueError(
                f"--t-mult {self.t_mult} with --lr-period-updates {self.period:g}: allowed: 1 or "
                "more; between 0 and 1, a --max-update before the sum of all periods, "
                "PERIOD / (1 - T_MULT)"
            )

    call_after(schedule, "__init__", check_periods)


@patch(
    "fairseq.optim.lr_scheduler.cosine_lr_scheduler",
    because="fairseq 0.12.2: --lr-scheduler cosine with a warm-up of --max-update updates ends in "
    "a ZeroDivisionError behind the last of them, before the checkpoint is written",
)
def warmups_may_take_all_updates(module: PatchedModule) -> None:
    """Let the only period, which no update is in, have a length."""

    def lengthen(self: CosineLRSchedule, cfg: Any, fairseq_optimizer: FairseqOptimizer) -> None:
        if self.period == 0:
            self.period = 1

    call_after(module.CosineLRSchedule, "__init__", lengthen)


@patch(
    "fairseq.optim.lr_scheduler.cosine_lr_scheduler",
    because="fairseq 0.12.2: --lr-scheduler cosine with a --t-mult such as 3, 10 or 0.9 begins "
    "some of its periods one update late, by a rounding error: that update has the lowest rate",
)
def periods_begin_at_their_update(module: PatchedModule) -> None:
    """Count a period from its first update on."""
    # 5 periods are 4.999999999999999 by their logarithm; an update is 1e-9 of a period at least
    overlay_names(module, "math", floor=lambda periods: math.floor(periods + 1e-9))
