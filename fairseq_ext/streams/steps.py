"""Training and validation steps over a dict {pair: sample}, and what they log."""

from contextlib import ExitStack
from itertools import chain
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

import torch
from fairseq.criterions import FairseqCriterion
from fairseq.optim import FairseqOptimizer
from fairseq.optim.amp_optimizer import AMPOptimizer
from fairseq.tasks import FairseqTask
from fairseq.tasks.translation import TranslationTask
from torch import Tensor, nn

from .back_translation import BackTranslation
from .bleu import PairBleu
from .config import StreamsConfig
from .dataset import Sample
from .distributed import average_gradients, is_torch_ddp, legacy_ddp, touched_by_any, unwrapped
from .language_pair import MONO, label_of
from .metrics import (
    Log,
    likelihood_log,
    log_bleu_summary,
    log_likelihoods,
    log_pair_bleu,
    log_pairs,
    merge_logs,
)
from .pair_parallel import PairParallel
from .patience import PairPatience
from .reducer import PairReducer
from .synthetic import LossThreshold

# the sum of a step's losses, the size to divide it by, and what is logged
StepOutput = Tuple[Union[Tensor, float], Any, Log]


class Steps(TranslationTask):
    """The part of ``StreamsTask`` that runs in updates and validations; see there for attributes.

    It is a base class and not an object of the task: all that it has are methods that fairseq's
    trainer calls on the task, and that systems override there.
    """

    cfg: StreamsConfig
    pairs: List[str]
    pair: Optional[str]
    bleu: PairBleu
    pair_parallel: PairParallel
    pair_patience: Optional[PairPatience] = None
    synthetic: List[str]
    back_translation: BackTranslation
    loss_threshold: LossThreshold
    _trained: List[nn.Parameter]
    _untouched: List[nn.Parameter]
    # of the validation that runs, until its first subset is judged
    _epoch_to_judge: Optional[int] = None

    @property
    def uses_ema(self) -> bool:
        """True if the trainer is to hand its averaged model to ``train_step``."""
        return self.cfg.synthetic_ema

    def train_step(
        self,
        sample: Mapping[str, Any],
        model: Any,
        criterion: FairseqCriterion,
        optimizer: FairseqOptimizer,
        update_num: int,
        ignore_grad: bool = False,
        ema_model: Optional[nn.Module] = None,
    ) -> StepOutput:
        """Run forward and backward of every pair in the batch; one optimiser step follows."""
        # fairseq-train calls this once for each of the --update-freq batches of an update
        parameters = chain(model.parameters(), criterion.parameters())
        self._trained = [parameter for parameter in parameters if parameter.requires_grad]
        # also where the batch runs out of memory: fairseq goes on with the other workers' gradients
        self._untouched = self._trained
        translator = ema_model if self.cfg.synthetic_ema else unwrapped(model)
        sample = self._with_sources(sample, translator, optimizer, update_num)
        with self.pair_parallel.step(model, criterion, optimizer, ignore_grad):
            output = self._backward_passes(
                sample, model, criterion, optimizer, update_num, ignore_grad
            )
        return output

    def _with_sources(
        self, sample: Mapping[str, Any], model: Any, optimizer: FairseqOptimizer, update_num: int
    ) -> Mapping[str, Any]:
        """Return the batch with sources of the lines of --monolingual, which ``model`` makes."""
        if not any(label_of(name) == MONO for name in sample):
            return sample
        device = next(model.parameters()).device.type
        with torch.autocast(device, enabled=isinstance(optimizer, AMPOptimizer)):
            return {
                name: self.back_translation(name, part, model, update_num)
                if label_of(name) == MONO
                else part
                for name, part in sample.items()
            }

    def _backward_passes(
        self,
        sample: Mapping[str, Any],
        model: Any,
        criterion: FairseqCriterion,
        optimizer: FairseqOptimizer,
        update_num: int,
        ignore_grad: bool,
    ) -> StepOutput:
        """Return what ``train_step`` does.

        Pairs go one after the other, so that the memory of one pair is needed at a time.
        """
        model.train()
        model.set_num_updates(update_num)
        losses: List[Tensor] = []
        sample_sizes: List[Any] = []
        logs: Dict[str, Log] = {}
        device = next(model.parameters()).device.type
        amp = torch.autocast(device, enabled=isinstance(optimizer, AMPOptimizer))
        # the workers' gradients are put together once, after the last pair (and, with
        # --update-freq, where the trainer wants it)
        wrapped: List[Any] = [module for module in (model, criterion) if is_torch_ddp(module)]
        # asked before no_sync() below, which switches it off
        to_average = [module for module in wrapped if module.require_backward_grad_sync]
        for name, part in self.criterion_calls(sample).items():
            with ExitStack() as backward_passes:
                for module in wrapped:
                    backward_passes.enter_context(module.no_sync())
                with amp:
                    loss, sample_size, log = criterion(model, part)
                if ignore_grad:  # a stand-in batch: others may wait for this worker's gradients
                    loss = loss * 0
                if loss.requires_grad:  # not where --train-only froze all that the pair uses
                    optimizer.backward(loss)
            losses.append(loss.detach())  # lets go of the pair's graph
            sample_sizes.append(sample_size)
            # a call of several pairs returns {pair: log}
            logs.update({name: log} if name in sample else log)
        for module in to_average:
            average_gradients(module)
        # Gradients add up over the batches of an update, so that after the
        # last one this is what none of them has touched.
        self._untouched = [p for p in self._trained if p.grad is None]
        return sum(losses), sum(sample_sizes), merge_logs(logs, [*self.pairs, *self.synthetic])

    def criterion_calls(self, sample: Mapping[str, Sample]) -> Mapping[str, Any]:
        """Return {name: what one call of the criterion is given}: here every pair is one.

        A system may put pairs together under another name, as {pair: sample}: the criterion then
        returns {pair: log}.
        """
        return sample

    @property
    def reduces_gradients(self) -> bool:
        """True if the trainer asks for a reducer (compat/training/training_hooks.py)."""
        return self.cfg.pair_parallel

    def reducer_of(self, optimizer: FairseqOptimizer) -> Optional[PairReducer]:
        """Return what the trainer calls to exchange gradients; None for its ordinary way."""
        return self.pair_parallel.reducer_of(optimizer)

    def optimizer_step(
        self, optimizer: FairseqOptimizer, model: nn.Module, update_num: int
    ) -> None:
        """Step without moving what no pair of the update has touched.

        Data-parallel training fills missing gradients with zeros, and Adam would then move those
        parameters along their old momentum.
        """
        untouched = self._untouched_by_all(model)
        if untouched:
            if getattr(optimizer, "has_flat_params", False):
                raise ValueError(
                    "--fp16: the update leaves parameters out, which one flat fp32 copy of them "
                    "all cannot express: add --fp16-no-flatten-grads, or use --bf16"
                )
            # with --fp16-no-flatten-grads the optimiser works on fp32 copies, one for each
            numbers = {id(parameter) for parameter in untouched}
            copies = getattr(optimizer, "fp32_params", ())
            for parameter, copy in zip(getattr(optimizer, "fp16_params", ()), copies):
                if id(parameter) in numbers:
                    copy.grad = None
            for parameter in untouched:
                parameter.grad = None
        super().optimizer_step(optimizer, model, update_num)

    def _untouched_by_all(self, model: nn.Module) -> List[nn.Parameter]:
        """Return what no worker has touched in the update; all workers of legacy_ddp call it.

        ``model`` is as the trainer wraps it.
        """
        if self.pair_parallel.assignment is not None:
            return []  # nobody fills missing gradients with zeros there
        wrapper = legacy_ddp(model)
        if wrapper is None:
            # one worker, or those of ``average_gradients``, which lack the same gradients
            return self._untouched
        # fairseq's wrapper has put zeros in the place of what this worker alone lacks
        missing = {id(parameter) for parameter in self._untouched}
        is_here = [id(parameter) not in missing for parameter in self._trained]
        touched = touched_by_any(self._trained, is_here, wrapper.process_group)
        return [p for p, is_touched in zip(self._trained, touched) if not is_touched]

    def begin_valid_epoch(self, epoch: int, model: nn.Module) -> None:
        """Give every worker all parameters, which validation needs."""
        super().begin_valid_epoch(epoch, model)
        self.pair_parallel.send_parameters()
        self._epoch_to_judge = epoch

    def post_validate(
        self, model: nn.Module, stats: Mapping[str, Any], agg: Mapping[str, Any]
    ) -> None:
        """Judge pairs and streams by the first of several --valid-subset.

        fairseq-train calls it after each of them.

        Args:
            model: the validated one.
            stats: what the validation of the subset has logged, as it is printed.
            agg: {name: meter} of the same, summed over all workers.
        """
        epoch, self._epoch_to_judge = self._epoch_to_judge, None
        if epoch is None:
            return
        self.loss_threshold.judge(epoch, agg)
        if self.pair_patience is not None:
            self.pair_patience.judge(epoch, stats, agg)

    def valid_step(
        self,
        sample: Mapping[str, Any],
        model: nn.Module,
        criterion: FairseqCriterion,
        ema_model: Optional[nn.Module] = None,
    ) -> StepOutput:
        """Return loss and, with --eval-bleu, the sums of BLEU of every pair in the batch.

        ``ema_model``, which the trainer hands over as in ``train_step``, translates in training
        alone: validated is the model whose parameters the checkpoint holds.
        """
        if self.pair:
            # a chosen direction has the ordinary dataset
            sample = {self.pair: sample}
        model.eval()
        losses: List[Tensor] = []
        sample_sizes: List[Any] = []
        logs: Dict[str, Log] = {}
        with torch.no_grad():
            for pair, part in sample.items():
                part["net_input"]["pair"] = pair  # which the ordinary dataset does not name
                loss, sample_size, logs[pair] = criterion(model, part)
                losses.append(loss)
                sample_sizes.append(sample_size)
                logs[pair] = {**logs[pair], **likelihood_log(criterion, logs[pair])}
                if self.cfg.eval_bleu:
                    logs[pair] = {**logs[pair], **self.bleu(pair, part)}
        return sum(losses), sum(sample_sizes), merge_logs(logs, self._logged_pairs())

    def _logged_pairs(self) -> List[str]:
        """Return the chosen direction, or all pairs where none is chosen."""
        return [self.pair] if self.pair else self.pairs

    def _logged_streams(self, logging_outputs: List[Log]) -> List[str]:
        """Return the streams of ``logging_outputs``: an update has all, a validation none."""
        names = {name.rpartition(":")[0] for log in logging_outputs for name in log}
        return [stream for stream in self.synthetic if stream in names]

    def reduce_metrics(self, logging_outputs: List[Log], criterion: FairseqCriterion) -> None:
        """Log the criterion's metrics over all pairs and of each, and BLEU where it was summed."""
        # TranslationTask's would look for BLEU's sums under names without a pair
        FairseqTask.reduce_metrics(self, logging_outputs, criterion)
        pairs = self._logged_pairs()
        log_pairs(criterion, logging_outputs, [*pairs, *self._logged_streams(logging_outputs)])
        log_likelihoods(logging_outputs, pairs)
        # every pair has the name where any has: ``merge_logs``
        if any(f"{pairs[0]}:_bleu_sys_len" in log for log in logging_outputs):
            for pair in pairs:
                log_pair_bleu(logging_outputs, pair)
            log_bleu_summary(logging_outputs, pairs)
