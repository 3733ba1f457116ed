"""The criterion ``twin``: both networks' likelihoods and the penalty between their states.

Dimensions: B sentences, T target positions, V vocabulary, D state.
"""

import inspect
import math
from argparse import Namespace
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Tuple, Type

import torch
from fairseq import checkpoint_utils, metrics, utils
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass.utils import merge_with_parent
from fairseq.models import ARCH_MODEL_REGISTRY, BaseFairseqModel
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from ..common.log_sums import logged_sum
from ..common.losses import label_smoothed_cross_entropy
from ..common.run_config import carry_in_checkpoints, whole_run
from ..compat.user_errors import option_of
from .config import TwinConfig, check
from .contract import TwinCall, TwinModel, TwinOutput, align, backward_tokens, matched
from .modules import TwinPenalty

# options of tasks that are refused: what the criterion does that they do not go with
REFUSED = {
    "left_pad_target": "reverses targets that are padded on the right",
    "add_bos_token": "matches states by targets that are each the next input, and the symbol that "
    "is put before both inputs and targets breaks this",
}


@register_criterion("twin", dataclass=TwinConfig)
class TwinCriterion(FairseqCriterion):
    """Likelihoods of a forward and a backward network, and the distance of their states.

    sum_t [ -log P_f(x_t | x_<t) - log P_b(x_t | x_>t) + alpha L_t ]  (Sec. 2).
    The backward network and g belong to the criterion (contract.py says why). In evaluation mode
    both are left alone: the loss is the forward network's.

    Args:
        task: for its target dictionary.
        weight: alpha.
        penalty: L_t, with g.
        network: the backward network; None where the penalty needs none, or for evaluation only.
        label_smoothing: epsilon, of both likelihoods.
        sentence_avg: divide the gradient by sentences instead of tokens.
        layers_to_keep: --decoder-layers-to-keep, of both decoders.
    """

    def __init__(
        self,
        task: FairseqTask,
        weight: float,
        penalty: TwinPenalty,
        network: Optional[nn.Module] = None,
        label_smoothing: float = 0.0,
        sentence_avg: bool = False,
        layers_to_keep: Optional[str] = None,
    ):
        super().__init__(task)
        self.layers_to_keep = layers_to_keep
        self.weight, self.penalty, self.network = weight, penalty, network
        self.epsilon, self.sentence_avg = label_smoothing, sentence_avg

    @classmethod
    def build_criterion(cls, cfg: TwinConfig, task: FairseqTask) -> "TwinCriterion":
        """Return the criterion, with a backward network unless ``cfg`` is a checkpoint's.

        Raises the errors of ``of_run``.
        """
        criterion = cls.of_run(cfg, task, is_stored=cfg.twin_stored)
        # commands that evaluate build the criterion of a checkpoint
        carry_in_checkpoints(cfg, "criterion", {"twin_stored": True})
        return criterion

    @classmethod
    def of_run(cls, cfg: TwinConfig, task: FairseqTask, is_stored: bool) -> "TwinCriterion":
        """Return the criterion of a run's options, whose parent is the configuration of the run.

        is_stored: for evaluation of the forward network alone, which needs nothing of the twin.

        Raises ValueError, naming the option, for bad values, for options of the task that do not
        go with a twin, and for a model without the contract.
        """
        check(cfg)
        _check_task(task)
        network: Any = None
        state_size: Optional[int] = None
        layers_to_keep: Optional[str] = None
        if not is_stored:
            model, model_cfg = _model_of_the_run(cfg)
            # the other rows of Table 1 compare with zeros, noise or the state before
            if cfg.twin_target == "backward" and not cfg.twin_stabilise:
                network = model.build_backward(model_cfg, task)
                layers_to_keep = getattr(model_cfg, "decoder_layers_to_keep", None)
                # g maps between the two state spaces; the identity has no parameters
                state_size = None if cfg.twin_map == "identity" else network.state_size
        penalty = TwinPenalty(cfg.twin_target, cfg.twin_distance, cfg.twin_stabilise, state_size)
        smoothing, sentence_avg = cfg.label_smoothing, cfg.sentence_avg
        parts = (penalty, network, smoothing, sentence_avg, layers_to_keep)
        return cls(task, cfg.twin_weight, *parts)

    @classmethod
    def of_checkpoint(
        cls, cfg: Any, parameters: Dict[str, Tensor], task: FairseqTask
    ) -> "TwinCriterion":
        """Return a checkpoint's criterion with its backward network, for analyses.

        cfg: its configuration, whose parent is that of the run. parameters: the criterion's.
        """
        criterion = cls.of_run(merge_with_parent(TwinConfig(), cfg), task, is_stored=False)
        criterion.load_state_dict(parameters)
        return criterion.eval()

    def forward(
        self, model: BaseFairseqModel, sample: Dict[str, Any], reduce: bool = True
    ) -> Tuple[Tensor, int, Dict[str, Any]]:
        """Return the loss, sample size and sums to be logged, in nats.

        The loss is a sum over the batch or, without ``reduce``, (B*T,) of the forward network;
        ValueError for this in training, where both networks have losses.
        """
        if self.training and not reduce:
            raise ValueError(
                "criterion twin: reduce=False in training, where the backward network and L_t have "
                "no loss of a single token; allowed: after eval()"
            )
        target = sample["target"]  # (B, T)
        if target is None or target.numel() == 0:
            raise ValueError("criterion twin: the batch has no target tokens")
        twin: Optional[TwinOutput] = None
        if not self.training:
            # the forward network alone, whose likelihood is what the paper reports
            output = model(**sample["net_input"])
        else:
            call, backward_target = self.call(sample)
            output, twin = model(**sample["net_input"], twin=call)
        losses, nll = self._likelihoods(output[0], target)  # of the forward network
        loss, log = losses.sum(), {"nll_loss": nll}
        if twin is not None:
            if twin.backward_logits is not None and backward_target is not None:
                backward_losses, log["backward_nll_loss"] = self._likelihoods(
                    twin.backward_logits, backward_target
                )
                loss = loss + backward_losses.sum()
            penalty, log["matched"] = self.distance(twin, target.eq(self.padding_idx))
            log["L_t"] = penalty.sum()
            loss = loss + self.weight * log["L_t"]  # alpha L_t
        # what the trainer divides the gradient by
        sample_size = target.size(0) if self.sentence_avg else sample["ntokens"]
        counts = {
            "ntokens": sample["ntokens"],
            "nsentences": target.size(0),
            "sample_size": sample_size,
        }
        # what is logged keeps no graph alive
        sums = {name: value.detach() for name, value in {"loss": loss, **log}.items()}
        return loss if reduce else losses, sample_size, {**sums, **counts}

    def call(self, sample: Dict[str, Any]) -> Tuple[TwinCall, Optional[Tensor]]:
        """Return what the model's ``forward`` is given, and the backward network's targets (B, T).

        ValueError where the penalty needs a backward network and there is none.
        """
        if not self.penalty.has_backward_states:
            return TwinCall(), None
        if self.network is None:
            raise ValueError(
                "criterion twin: built from a checkpoint (--twin-stored), without the backward "
                "network; it evaluates but does not train"
            )
        inputs, target = sample["net_input"], sample["target"]
        # a language model reads its own targets, shifted
        prev_tokens = inputs.get("prev_output_tokens", inputs.get("src_tokens"))
        padding = target.eq(self.padding_idx)  # (B, T)
        tokens, backward_target = backward_tokens(prev_tokens, target, padding)
        return TwinCall(self.network, tokens), backward_target

    def distance(self, twin: TwinOutput, padding: Tensor) -> Tuple[Tensor, Tensor]:
        """Return L_t (B, T), zero where nothing is matched, and the number of matched tokens."""
        tokens, aligned = matched(padding), None
        if twin.backward_states is not None:
            # the gradient of L_t trains the forward network alone (Sec. 2)
            aligned = align(twin.backward_states.detach(), padding)
        return self.penalty(twin.states, tokens, aligned), tokens.sum()

    @torch.no_grad()
    def token_distances(
        self, model: BaseFairseqModel, sample: Dict[str, Any]
    ) -> Tuple[Tensor, Tensor, Tensor]:
        """Return the forward logits (B, T, V), L_t (B, T) and which tokens are matched (B, T)."""
        # the inputs of the backward network; its own targets are not looked at here
        call, _ = self.call(sample)
        (logits, *_), twin = model(**sample["net_input"], twin=call)
        padding = sample["target"].eq(self.padding_idx)
        penalty, _ = self.distance(twin, padding)
        return logits, penalty, matched(padding)

    def _likelihoods(self, logits: Tensor, target: Tensor) -> Tuple[Tensor, Tensor]:
        """Return -log P of (B, T, V) and (B, T): smoothed (B*T,), and the sum of the plain one."""
        loss, nll = label_smoothed_cross_entropy(
            logits.flatten(0, 1), target.flatten(), self.epsilon, self.padding_idx, overwrite=True
        )
        return loss, nll.sum()

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        """Log the terms: likelihoods in bits per token, as fairseq does, L_t as it is."""
        total = partial(logged_sum, logging_outputs)
        tokens, sample_size = total("ntokens"), total("sample_size")
        # from nats to bits, which fairseq logs
        metrics.log_scalar("loss", total("loss") / sample_size / math.log(2), sample_size, round=3)
        for name, perplexity in (("nll_loss", "ppl"), ("backward_nll_loss", "backward_ppl")):
            if any(name in log for log in logging_outputs):
                bits = total(name) / tokens / math.log(2)
                metrics.log_scalar(name, bits, tokens, round=3)
                metrics.log_derived(perplexity, _perplexity(name))
        if any("L_t" in log for log in logging_outputs):
            count = total("matched")
            # texts of one word have no matched token
            metrics.log_scalar("L_t", total("L_t") / (count + (count == 0)), count, round=4)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """True: all that is logged is a sum over tokens."""
        return True

    def load_state_dict(self, state_dict: Optional[Dict[str, Any]], strict: bool = True) -> Any:
        """Load a checkpoint's weights; one of a run without a backward network has none.

        Then the network and g stay as they are: a plain model goes on being trained with a twin.
        Of a network with more layers those that are to be kept are read, as fairseq does with the
        forward decoder.
        """
        if state_dict is None:
            return None
        # as fairseq names the options of a model; it clears the layers where it has pruned
        options = Namespace(arch="twin", decoder_layers_to_keep=self.layers_to_keep)
        pruned = checkpoint_utils.prune_state_dict(state_dict, options)
        return super().load_state_dict(pruned, strict)


def _check_task(task: FairseqTask) -> None:
    """Raise ValueError for options with which tokens would be padded or matched wrongly."""
    for options in (getattr(task, "cfg", None), getattr(task, "args", None)):
        for name, reason in REFUSED.items():
            if getattr(options, name, False):
                raise ValueError(f"{option_of(name)}: the criterion twin {reason}; leave it out")
        size = getattr(options, "output_dictionary_size", -1)
        if size >= 0:
            raise ValueError(
                f"--output-dictionary-size {size}: the criterion twin matches states that predict "
                "the same words, and the backward network knows all of them; leave it out"
            )


def _perplexity(name: str) -> Callable[[Dict[str, Any]], float]:
    """Return the function of fairseq's meters that gives the perplexity of a loss."""
    return lambda meters: utils.get_perplexity(meters[name].avg)


def _model_of_the_run(cfg: Any) -> Tuple[Type[TwinModel], Any]:
    """Return the run's model class and its configuration; ValueError without the contract."""
    run = whole_run(cfg)
    if run is None or getattr(run, "model", None) is None:
        raise ValueError(
            "criterion twin: it is built from the configuration of a whole run, which names the "
            "model"
        )
    model = ARCH_MODEL_REGISTRY[run.model._name]
    if not is_twin_model(model):
        allowed = sorted(
            name for name, registered in ARCH_MODEL_REGISTRY.items() if is_twin_model(registered)
        )
        raise ValueError(
            f"--criterion twin: --arch {run.model._name} has no backward network and does not "
            f"return its states; allowed: {', '.join(allowed)}"
        )
    return model, run.model


def is_twin_model(model: Type[BaseFairseqModel]) -> bool:
    """True if a model class keeps the contract."""
    takes_twin = "twin" in inspect.signature(model.forward).parameters
    return takes_twin and issubclass(model, TwinModel)
