"""The optimiser ``fused_adam``: fairseq's ``adam`` with all parameters in one kernel.

Without NVIDIA's apex, fairseq's own takes ten small operations for every parameter of a model. The
rules are those of Loshchilov and Hutter (2019), *Decoupled Weight Decay Regularization*, as there.
Epsilon is added to the square root of the mean before its correction, as fairseq does; torch adds
it after (Kingma and Ba, 2015, Algorithm 1). In the first updates steps from minute gradients are
much larger then, and recurrent models learn otherwise.
"""

import ast
from dataclasses import dataclass, field
from typing import Any, Dict, List, Tuple

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from omegaconf import II


@dataclass
class FusedAdamConfig(FairseqDataclass):
    adam_betas: str = field(
        default="(0.9, 0.999)", metadata={"help": "decay of both running averages"}
    )
    adam_eps: float = field(default=1e-8, metadata={"help": "epsilon"})
    weight_decay: float = field(default=0.0, metadata={"help": "weight decay"})
    lr: List[float] = II("optimization.lr")


def betas_of(given: str) -> Tuple[float, float]:
    """ "(0.9, 0.98)" -> both; ValueError, naming the option, unless each is in [0, 1)."""
    try:
        first, second = ast.literal_eval(str(given))
        if 0 <= first < 1 and 0 <= second < 1:
            return float(first), float(second)
    except (ValueError, TypeError, SyntaxError):
        pass
    raise ValueError(f"--adam-betas {given}: allowed: two numbers in [0, 1), e.g. '(0.9, 0.98)'")


def is_fused(params) -> bool:
    """Whether this torch has the kernel for the parameters' device: CUDA 2.0, CPU 2.4."""
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    return version >= ((2, 0) if params[0].device.type == "cuda" else (2, 4))


@register_optimizer("fused_adam", dataclass=FusedAdamConfig)
class FusedAdam(FairseqOptimizer):
    """torch's AdamW, fused where torch can; the state is kept in single precision.

    Works with --fp16 and --bf16, not with their memory-efficient variants.
    """

    def __init__(self, cfg: FusedAdamConfig, params):
        super().__init__(cfg)
        params = list(params)
        flat = [one for group in params for one in group["params"]] if _grouped(params) else params
        self._optimizer = _AdamW(
            params, **self.optimizer_config, **({"fused": True} if is_fused(flat) else {})
        )

    @property
    def optimizer_config(self) -> Dict[str, Any]:
        """What wins over the values in a checkpoint."""
        lr = self.cfg.lr
        return {
            "lr": float(lr if isinstance(lr, (int, float)) else lr[0]),
            "betas": betas_of(self.cfg.adam_betas),
            "eps": self.cfg.adam_eps,
            "weight_decay": self.cfg.weight_decay,
        }

    @property
    def supports_flat_params(self) -> bool:
        return True


class _AdamW(torch.optim.AdamW):
    """torch's, with epsilon before the correction.

    ages: {parameter: steps that it took}; known here, so that no step waits for the device.
    """

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.ages = {}

    def step(self, closure=None):
        groups = self.param_groups
        self.param_groups = [part for group in groups for part in self._by_age(group)]
        try:
            return super().step(closure)
        finally:
            self.param_groups = groups

    def _by_age(self, group):
        """The group in parts of as many steps, each with an epsilon that the correction undoes."""
        parts = {}
        for param in group["params"]:
            if param.grad is None:
                continue
            if param not in self.ages:  # a new one, or one from a checkpoint
                self.ages[param] = int(self.state[param].get("step", 0))
            self.ages[param] += 1
            parts.setdefault(self.ages[param], []).append(param)
        second = group["betas"][1]
        return [
            {**group, "params": params, "eps": group["eps"] / (1 - second**age) ** 0.5}
            for age, params in parts.items()
        ]

    def load_state_dict(self, state_dict):
        self.ages = {}
        super().load_state_dict(state_dict)


def _grouped(params) -> bool:
    return bool(params) and isinstance(params[0], dict)
