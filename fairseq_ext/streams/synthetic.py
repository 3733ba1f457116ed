"""The synthetic streams of a run: their options, their data, and when they begin."""

import filecmp
import logging
import math
import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from fairseq.logging.meters import MetersDict

from ..common.named_values import named_values
from ..compat.user_errors import option_of
from .config import StreamsConfig, is_given
from .language_pair import MONO, label_of, languages, pair_of, reverse_of
from .state import RunState
from .synthetic_share import SyntheticShare, parse_share

logger = logging.getLogger(__name__)

# options that are read for --monolingual alone, and their values when they are not given
ONLINE: Dict[str, Any] = {
    "monolingual_max_len": 0,
    "synthetic_after_loss": None,
    "synthetic_sources": "greedy",
    "synthetic_beam": None,
    "synthetic_ema": False,
}
ANY: Dict[str, Any] = {"synthetic_share": "0.5", "synthetic_tag": False}


def check_synthetic(cfg: StreamsConfig, streams: Sequence[str]) -> SyntheticShare:
    """Return the share of the streams.

    ValueError, naming the option, for what does nothing or does not go together.
    """
    share = parse_share(cfg.synthetic_share, streams)
    online = any(label_of(stream) == MONO for stream in streams)
    useless = {**({} if online else ONLINE), **({} if streams else ANY)}
    for name, value in useless.items():
        if is_given(getattr(cfg, name), value):
            needs = "--monolingual" if name in ONLINE else "--monolingual or a pair with a label"
            raise ValueError(f"{option_of(name, getattr(cfg, name))} does nothing without {needs}")
    if cfg.monolingual_max_len < 0:
        raise ValueError(f"{option_of('monolingual_max_len', cfg.monolingual_max_len)}: at least 0")
    if streams:
        if not any(value for _, value in share.points):
            raise ValueError(
                f"{option_of('synthetic_share', cfg.synthetic_share)}: no update would train on "
                f"{', '.join(streams)}; leave these out"
            )
        _check_together(cfg, online)
    if cfg.synthetic_after_loss is not None:
        _check_after_loss(cfg, streams)
    return share


def _check_together(cfg: StreamsConfig, online: bool) -> None:
    """Raise ValueError for options that do not go together with synthetic streams."""
    what = f"--monolingual {cfg.monolingual}" if online else "a pair with a label in --lang-pairs"
    for name in ("pair_parallel", "num_batch_buckets"):
        if getattr(cfg, name):
            raise ValueError(
                f"{option_of(name, getattr(cfg, name))} does not go together with {what}"
            )
    if cfg.synthetic_tag and cfg.truncate_source:
        raise ValueError(
            "--synthetic-tag does not go together with --truncate-source, which leaves no room "
            "for the tag"
        )
    beam = cfg.synthetic_beam
    if beam is not None and str(cfg.synthetic_sources) != "noised_beam":
        raise ValueError(
            f"--synthetic-beam {beam} does nothing with --synthetic-sources "
            f"{cfg.synthetic_sources}; allowed: noised_beam"
        )
    if beam is not None and beam < 1:
        raise ValueError(f"--synthetic-beam {beam}: must be at least 1")
    if cfg.synthetic_ema and not cfg.store_ema:
        raise ValueError("--synthetic-ema: needs the average that --store-ema keeps")
    shortest = min(cfg.max_source_positions - 1, cfg.max_target_positions)
    if online and shortest < 3:
        raise ValueError(
            f"--monolingual {cfg.monolingual}: --max-source-positions {cfg.max_source_positions} "
            f"and --max-target-positions {cfg.max_target_positions} leave no room for words"
        )


def _check_after_loss(cfg: StreamsConfig, streams: Sequence[str]) -> None:
    """Raise ValueError where --synthetic-after-loss cannot work."""
    place = option_of("synthetic_after_loss", cfg.synthetic_after_loss)
    if not math.isfinite(cfg.synthetic_after_loss or 0.0):
        raise ValueError(f"{place}: must be finite")
    if cfg.disable_validation:
        raise ValueError(f"{place}: needs what --disable-validation leaves out")
    if any(label_of(stream) != MONO for stream in streams):
        raise ValueError(f"{place}: with a pair with a label in --lang-pairs; allowed: --join-at")
    if {entry.name for entry in named_values(cfg.join_at)}.intersection(streams):
        raise ValueError(f"{place} does not go together with --join-at {cfg.join_at}")


def trained_streams(streams: Sequence[str], frozen: Callable[[List[str]], List[str]]) -> List[str]:
    """Return the streams whose direction is trained (--train-only).

    frozen: returns those of some directions of which nothing is trained.
    """
    frozen_pairs = frozen(list(dict.fromkeys(map(pair_of, streams))))
    for stream in streams:
        if pair_of(stream) in frozen_pairs:
            logger.info(f"{stream}: none of its parameters is trained: it takes no part")
    return [stream for stream in streams if pair_of(stream) not in frozen_pairs]


def check_directions(streams: Sequence[str], pairs: Sequence[str], can: Mapping[str, bool]) -> None:
    """Raise ValueError for a stream of a direction that the model does not have.

    Args:
        streams: of the run.
        pairs: those with real data.
        can: {direction: True if the model of ``pairs`` translates it}.
    """
    for stream in streams:
        unknown = [lang for lang in languages([pair_of(stream)]) if lang not in languages(pairs)]
        if unknown or not can[pair_of(stream)]:
            raise ValueError(
                f"--lang-pairs: {stream}: a model of {', '.join(pairs)} does not translate "
                f"{pair_of(stream)}; allowed: a direction of --lang-pairs, or one whose languages "
                "other pairs read and write"
            )


def folder_of(path: str, stream: str, dictionaries: Sequence[str]) -> str:
    """Return the data folder of a stream: that of its label in the data folder ``path``.

    ValueError where its dictionaries are not those of ``path``, which number the words otherwise.
    """
    folder = os.path.join(path, label_of(stream))
    if not os.path.isdir(folder):
        raise ValueError(
            f"--lang-pairs: {stream}: there is no folder {folder}; allowed: the label of a pair is "
            f"the name of a folder in {path} with its data"
        )
    for lang in dictionaries:
        name = f"dict.{lang}.txt"
        ours, theirs = os.path.join(path, name), os.path.join(folder, name)
        if os.path.exists(theirs) and not filecmp.cmp(ours, theirs, shallow=False):
            raise ValueError(
                f"{theirs}: must be {ours}, word by word; binarise with --srcdict and --tgtdict"
            )
    return folder


class LossThreshold:
    """Lets the streams of --monolingual join by validation loss (--synthetic-after-loss).

    A stream joins at the beginning of the epoch after the validation: the batches of the present
    epoch are planned.

    Args:
        threshold: None: nothing is judged.
        streams: those of --monolingual.
        state: what is noted in; checkpoints hold it.
    """

    def __init__(self, threshold: Optional[float], streams: Sequence[str], state: RunState):
        self.threshold, self.streams, self.state = threshold, list(streams), state

    @property
    def is_used(self) -> bool:
        """True if streams wait for it."""
        return self.threshold is not None

    def judge(self, epoch: int, agg: MetersDict) -> None:
        """Let the streams join whose translating direction is good enough.

        Args:
            epoch: of the validation.
            agg: {name: meter} of the validation, summed over all workers.
        """
        if self.threshold is None:
            return
        joined = self.state.joins_in
        for stream in self.streams:
            name = f"{reverse_of(pair_of(stream))}_loss"
            loss = agg.get_smoothed_value(name) if name in agg else None
            # --max-valid-steps may have left none of its batches
            if stream in joined or loss is None or not float(loss) <= self.threshold:
                continue
            joined[stream] = epoch + 1
            logger.info(
                f"{stream}: {name} {float(loss):.3f} (--synthetic-after-loss {self.threshold}): "
                f"it takes part from epoch {epoch + 1} on"
            )
