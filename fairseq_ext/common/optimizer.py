"""The optimiser ``fused_adam``: fairseq's ``adam`` with all parameters in one kernel.

Without NVIDIA's apex, fairseq's own takes ten small operations for every parameter of a model. The
rules are those of Loshchilov and Hutter (2019), *Decoupled Weight Decay Regularization*, as there.
Epsilon is added to the square root of the mean before its correction, as fairseq does; torch adds
it after (Kingma and Ba, 2015, Algorithm 1). In the first updates steps from minute gradients are
much larger then, and recurrent models learn otherwise.
"""

import ast
from dataclasses import dataclass, field
from typing import Any, Dict, List, Sequence, Tuple, Union

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from omegaconf import II
from torch import Tensor

Parameters = Union[List[Tensor], List[Dict[str, Any]]]


@dataclass
class FusedAdamConfig(FairseqDataclass):
    """Options of ``fused_adam``, with the names and the defaults of fairseq's ``adam``.

    ``FusedAdam`` raises ValueError for decay rates outside of [0, 1).
    """

    adam_betas: str = field(
        default="(0.9, 0.999)", metadata={"help": "decay rates of both running averages"}
    )
    adam_eps: float = field(default=1e-8, metadata={"help": "epsilon"})
    weight_decay: float = field(default=0.0, metadata={"help": "weight decay"})
    lr: List[float] = II("optimization.lr")


def parse_betas(text: str) -> Tuple[float, float]:
    """Return both numbers of "(0.9, 0.98)"; ValueError, with the option, unless in [0, 1)."""
    try:
        first, second = ast.literal_eval(str(text))
        if 0 <= first < 1 and 0 <= second < 1:
            return float(first), float(second)
    except (ValueError, TypeError, SyntaxError):
        pass
    raise ValueError(f"--adam-betas {text}: allowed: two numbers in [0, 1), e.g. '(0.9, 0.98)'")


def has_fused_kernel(parameters: Sequence[Tensor]) -> bool:
    """True if this torch has the kernel for the parameters' device: CUDA 2.0, CPU 2.4."""
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    return version >= ((2, 0) if parameters[0].device.type == "cuda" else (2, 4))


@register_optimizer("fused_adam", dataclass=FusedAdamConfig)
class FusedAdam(FairseqOptimizer):
    """fairseq's ``adam``, all parameters in one kernel where torch has it.

    The base is torch's AdamW; the state is kept in single precision. Works with --fp16 and --bf16,
    not with their memory-efficient variants.
    """

    def __init__(self, cfg: FusedAdamConfig, params: Parameters):
        super().__init__(cfg)
        params = list(params)  # type: ignore[assignment]  # a generator in fairseq's trainer
        # where there is no kernel, fused=True is an error
        fused = {"fused": True} if has_fused_kernel(_flat(params)) else {}
        self._optimizer = _AdamW(params, **self.optimizer_config, **fused)

    @property
    def optimizer_config(self) -> Dict[str, Any]:
        """Return the options of this run, which replace those of a checkpoint."""
        lr = self.cfg.lr
        return {
            # --lr has a value for each epoch; the scheduler sets those of later ones
            "lr": float(lr if isinstance(lr, (int, float)) else lr[0]),
            "betas": parse_betas(self.cfg.adam_betas),
            "eps": self.cfg.adam_eps,
            "weight_decay": self.cfg.weight_decay,
        }

    @property
    def supports_flat_params(self) -> bool:
        """True: ``--fp16`` may hand over all parameters as one vector."""
        return True


class _AdamW(torch.optim.AdamW):
    """torch's, with epsilon before the correction.

    ages: {parameter: steps that it took}, on the host, so that no step waits for the device.
    """

    def __init__(self, params: Parameters, **options: Any):
        super().__init__(params, **options)
        self.ages: Dict[Tensor, int] = {}

    def step(self, closure: Any = None) -> Any:
        """Take a step, in parts of equal age; as of torch's optimisers.

        --amp leaves it to the kernel to skip a step whose gradients overflow. A parameter does not
        age by it, neither here nor on the device.
        """
        # set by torch's GradScaler; the trainer has waited for the norm of the gradients already
        found_inf = getattr(self, "found_inf", None)
        if found_inf is not None and bool(found_inf):
            return None
        groups = self.param_groups
        # torch's step reads the groups from here; schedulers and checkpoints keep the others
        self.param_groups = [part for group in groups for part in self._by_age(group)]
        try:
            return super().step(closure)
        finally:
            self.param_groups = groups

    def _by_age(self, group: Dict[str, Any]) -> List[Dict[str, Any]]:
        """Split a group into parameters of equal age.

        torch divides by sqrt(1 - beta2^age) before it adds epsilon. A group with epsilon divided
        by the same number gets what fairseq computes, but all of its parameters need one age.
        """
        parts: Dict[int, List[Tensor]] = {}
        for parameter in group["params"]:
            # as of a language that had no part in the update: it does not move and does not age
            if parameter.grad is None:
                continue
            if parameter not in self.ages:  # a new parameter, or from a checkpoint
                self.ages[parameter] = int(self.state[parameter].get("step", 0))
            self.ages[parameter] += 1
            parts.setdefault(self.ages[parameter], []).append(parameter)
        second = group["betas"][1]
        return [
            # (sqrt(v) + eps) / c = sqrt(v) / c + eps / c, with c = sqrt(1 - beta2^age)
            {**group, "params": params, "eps": group["eps"] / (1 - second**age) ** 0.5}
            for age, params in parts.items()
        ]

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self.ages = {}  # read again from the states that come
        super().load_state_dict(state_dict)


def _flat(params: Parameters) -> List[Tensor]:
    """Return the parameters of all groups, or of a list without groups."""
    return [
        parameter
        for part in params
        for parameter in (part["params"] if isinstance(part, dict) else [part])
    ]
