"""Training and validation steps over a dict {pair: sample}, and what they log."""

from contextlib import ExitStack
from itertools import chain
from typing import Any, List, Optional

import torch
from fairseq.optim.amp_optimizer import AMPOptimizer
from fairseq.tasks import FairseqTask

from .distributed import average_gradients, is_torch_ddp
from .metrics import log_bleu_summary, log_pair, log_pair_bleu, merge_logs


class Steps:
    """The part of ``StreamsTask`` that runs in every update; see there for the attributes."""

    cfg: Any
    pairs: List[str]
    pair: Optional[str]
    bleu: Any
    _untouched: List[torch.nn.Parameter]

    def train_step(self, sample, model, criterion, optimizer, update_num, ignore_grad=False):
        """Forward and backward of every pair in the batch; one optimiser step follows on the sum.

        Pairs go one after the other, so that the memory of one pair is needed at a time.
        """
        model.train()
        model.set_num_updates(update_num)
        losses, sample_sizes, logs = [], [], {}
        device = next(model.parameters()).device.type
        amp = torch.autocast(device, enabled=isinstance(optimizer, AMPOptimizer))
        # the workers' gradients are put together once, after the last pair (and, with
        # --update-freq, where the trainer wants it)
        wrapped = [one for one in (model, criterion) if is_torch_ddp(one)]
        put_together = [one for one in wrapped if one.require_backward_grad_sync]
        for name, part in self.calls(sample).items():
            with ExitStack() as each:
                for one in wrapped:
                    each.enter_context(one.no_sync())
                with amp:
                    loss, sample_size, log = criterion(model, part)
                if ignore_grad:
                    loss = loss * 0
                if loss.requires_grad:  # not where --train-only froze all that the pair uses
                    optimizer.backward(loss)
            losses.append(loss.detach())
            sample_sizes.append(sample_size)
            logs.update({name: log} if name in sample else log)
        for one in put_together:
            average_gradients(one)
        trained = (p for p in chain(model.parameters(), criterion.parameters()) if p.requires_grad)
        self._untouched = [p for p in trained if p.grad is None]
        return sum(losses), sum(sample_sizes), merge_logs(logs, self.pairs)

    def calls(self, sample):
        """{name: what one call of the criterion is given}: here every pair is one.

        A system may put pairs together under another name, as {pair: sample}: the criterion then
        returns {pair: log}.
        """
        return sample

    def optimizer_step(self, optimizer, model, update_num):
        """Step without moving what no pair of the update has touched.

        Data-parallel training fills missing gradients with zeros, and Adam would then move those
        parameters along their old momentum.
        """
        if self._untouched:
            if getattr(optimizer, "has_flat_params", False):
                raise ValueError(
                    "--fp16/--bf16: this schedule leaves parameters out of an update, which the "
                    "flat fp32 copy cannot express: add --fp16-no-flatten-grads"
                )
            untouched = {id(parameter) for parameter in self._untouched}
            copies = getattr(optimizer, "fp32_params", ())
            for parameter, copy in zip(getattr(optimizer, "fp16_params", ()), copies):
                if id(parameter) in untouched:
                    copy.grad = None
            for parameter in self._untouched:
                parameter.grad = None
        super().optimizer_step(optimizer, model, update_num)

    def valid_step(self, sample, model, criterion):
        """Loss and, with --eval-bleu, the sums of BLEU of every pair in the batch."""
        if self.pair:
            sample = {self.pair: sample}
        model.eval()
        losses, sample_sizes, logs = [], [], {}
        with torch.no_grad():
            for pair, part in sample.items():
                part["net_input"]["pair"] = pair
                loss, sample_size, logs[pair] = criterion(model, part)
                losses.append(loss)
                sample_sizes.append(sample_size)
                if self.cfg.eval_bleu:
                    logs[pair] = {**logs[pair], **self.bleu(pair, part)}
        return sum(losses), sum(sample_sizes), merge_logs(logs, self._logged_pairs())

    def _logged_pairs(self) -> List[str]:
        return [self.pair] if self.pair else self.pairs

    def reduce_metrics(self, logging_outputs, criterion):
        FairseqTask.reduce_metrics(self, logging_outputs, criterion)
        pairs = self._logged_pairs()
        for pair in pairs:
            log_pair(criterion, logging_outputs, pair)
        if any(f"{pairs[0]}:_bleu_sys_len" in log for log in logging_outputs):
            for pair in pairs:
                log_pair_bleu(logging_outputs, pair)
            log_bleu_summary(pairs)
