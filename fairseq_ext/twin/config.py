"""Options of the criterion ``twin``."""

from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II

from ..common.sizes import check_rate
from .modules import DISTANCES, MAPS, TARGETS


@dataclass
class TwinConfig(FairseqDataclass):
    twin_weight: float = field(
        default=1.5,
        metadata={
            "help": "alpha, weight of L_t (paper: 1.5 for speech); 0 leaves both likelihoods"
        },
    )
    twin_map: Optional[ChoiceEnum(MAPS)] = field(
        default=None,
        metadata={
            "help": "g, on the forward state: affine (learnt, with a bias) or identity; default: "
            "affine for --twin-target backward, identity for the others"
        },
    )
    twin_distance: ChoiceEnum(DISTANCES) = field(
        default="mse",
        metadata={
            "help": "L_t: mse, the mean over dimensions of the squared difference (the authors' "
            "code), or euclidean, its norm (the paper's text)"
        },
    )
    twin_target: ChoiceEnum(TARGETS) = field(
        default="backward",
        metadata={
            "help": "h^b_t: the state of a backward network, zeros (the paper's AR), or noise "
            "(Gaussian, deviation 1)"
        },
    )
    twin_stabilise: bool = field(
        default=False,
        metadata={
            "help": "L_t = (||h_t|| - ||h_(t-1)||)^2 instead (the paper's stabilising norm), "
            "without a backward network"
        },
    )
    label_smoothing: float = field(
        default=0.0, metadata={"help": "epsilon of the smoothing of both networks' likelihoods"}
    )
    twin_stored: bool = field(
        default=False,
        metadata={
            "help": "a run writes it into its checkpoints: what is built from them evaluates the "
            "forward network alone; not to be given"
        },
    )
    sentence_avg: bool = II("optimization.sentence_avg")


def check(cfg) -> None:
    """Raise ValueError, naming the option, for values that do not go together."""
    if not 0.0 <= cfg.twin_weight < float("inf"):
        raise ValueError(f"--twin-weight {cfg.twin_weight}: must be at least 0 and finite")
    check_rate("--label-smoothing", cfg.label_smoothing)
    given = {
        "--twin-target": cfg.twin_target if cfg.twin_target != "backward" else None,
        "--twin-map": cfg.twin_map,
        "--twin-distance": cfg.twin_distance if cfg.twin_distance != "mse" else None,
    }
    given = [f"{option} {value}" for option, value in given.items() if value is not None]
    if cfg.twin_stabilise and given:
        raise ValueError(
            f"--twin-stabilise looks at the norms of the forward states alone: leave out "
            f"{', '.join(given)}"
        )
    if cfg.twin_map == "affine" and cfg.twin_target != "backward":
        raise ValueError(
            f"--twin-map affine: with --twin-target {cfg.twin_target} a learnt map becomes zero "
            "and L_t says nothing of the states; allowed: identity"
        )
