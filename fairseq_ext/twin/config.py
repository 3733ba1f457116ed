"""Options of the criterion ``twin``."""

from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II

from ..common.sizes import check_rate
from .modules import DISTANCES, MAPS, TARGETS


@dataclass
class TwinConfig(FairseqDataclass):
    """Options of the criterion ``twin``.

    ``check`` raises ValueError for those that do not go together.
    """

    twin_weight: float = field(
        default=1.5,
        metadata={
            "help": "alpha, weight of L_t (paper: 1.5 for speech); with 0 only the two likelihoods "
            "remain"
        },
    )
    twin_map: Optional[ChoiceEnum(MAPS)] = field(
        default=None,
        metadata={
            "help": "g, the map of the forward state: affine (learnt, with a bias) or identity "
            "(default: affine with --twin-target backward, identity with the others)"
        },
    )
    twin_distance: ChoiceEnum(DISTANCES) = field(
        default="mse",
        metadata={
            "help": "form of L_t: mse, the mean over dimensions of the squared difference (the "
            "authors' code), or euclidean, the norm of the difference (the paper's text)"
        },
    )
    twin_target: ChoiceEnum(TARGETS) = field(
        default="backward",
        metadata={
            "help": "what h^b_t is: the state of a backward network, zeros (the paper's AR), or "
            "noise (Gaussian, standard deviation 1)"
        },
    )
    twin_stabilise: bool = field(
        default=False,
        metadata={
            "help": "use L_t = (||h_t|| - ||h_(t-1)||)^2 instead (the paper's stabilising norm), "
            "without a backward network"
        },
    )
    label_smoothing: float = field(
        default=0.0,
        metadata={"help": "epsilon of the label smoothing of both networks' likelihoods"},
    )
    twin_stored: bool = field(
        default=False,
        metadata={
            "help": "a run writes this into its checkpoints: models built from them evaluate the "
            "forward network alone; do not set it",
            "written_by": "a run, into its checkpoints,",
        },
    )
    sentence_avg: bool = II("optimization.sentence_avg")


def check(cfg: TwinConfig) -> None:
    """Raise ValueError, naming the option, for values that do not go together."""
    if not 0.0 <= cfg.twin_weight < float("inf"):
        raise ValueError(f"--twin-weight {cfg.twin_weight}: must be at least 0 and finite")
    check_rate("--label-smoothing", cfg.label_smoothing)
    # a default that was given cannot be told from one that was not
    options = {
        "--twin-target": cfg.twin_target if cfg.twin_target != "backward" else None,
        "--twin-map": cfg.twin_map,
        "--twin-distance": cfg.twin_distance if cfg.twin_distance != "mse" else None,
    }
    # options of a distance, for which the stabilising norm has no use
    unused = [f"{option} {value}" for option, value in options.items() if value is not None]
    if cfg.twin_stabilise and unused:
        raise ValueError(
            f"--twin-stabilise looks at the norms of the forward states alone: leave out "
            f"{', '.join(unused)}"
        )
    if cfg.twin_map == "affine" and cfg.twin_target != "backward":
        raise ValueError(
            f"--twin-map affine: with --twin-target {cfg.twin_target} a learnt map becomes zero "
            "and L_t says nothing of the states; allowed: identity"
        )
