"""The task ``transcription``: fairseq's ``speech_to_text``, with error rates in validation."""

from argparse import ArgumentParser
from dataclasses import dataclass, field
from typing import Any, Dict, List, Tuple

from fairseq import utils
from fairseq.criterions import FairseqCriterion
from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask, register_task
from fairseq.tasks.speech_to_text import SpeechToTextTask
from omegaconf import II, MISSING
from torch import Tensor

from ...common.search_options import (
    SOURCE_WORDS,
    STEPS,
    check_language_model,
    refuse_options,
)
from ..metrics import error_sums, log_error_rates
from ..validation_search import UNKNOWN, search_options


@dataclass
class TranscriptionConfig(FairseqDataclass):
    """Options of ``transcription``: fairseq's ``speech_to_text``, and error rates in validation.

    Lengths of sources are in frames, those of targets in symbols.
    """

    data: str = field(
        default=MISSING, metadata={"help": "folder written by fairseq-ext filter-banks"}
    )
    config_yaml: str = field(
        default="config.yaml", metadata={"help": "file of settings in that folder"}
    )
    max_source_positions: int = field(
        default=6000, metadata={"help": "maximum length of a recording in frames"}
    )
    max_target_positions: int = field(
        default=1024,
        metadata={"help": "maximum length of a transcript in tokens, its end included"},
    )
    eval_wer: bool = field(
        default=False,
        metadata={"help": "log word and character error rates (wer and cer) in validation"},
    )
    eval_wer_args: str = field(
        default="{}",
        metadata={
            "help": "options of the search in validation, as JSON: "
            """'{"beam": 4, "max_len_b": 200}'"""
        },
    )
    seed: int = II("common.seed")
    train_subset: str = II("dataset.train_subset")


@register_task("transcription", dataclass=TranscriptionConfig)
class TranscriptionTask(SpeechToTextTask):
    """Data, models and checkpoints are those of ``speech_to_text``.

    With --eval-wer every validation also transcribes and logs ``wer`` and ``cer`` in percent: of
    words between blanks and of characters with their blanks, both as they are written.
    """

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Add the options of the dataclass, among which are all of the stock task."""
        # not super(): SpeechToTextTask adds options by hand and none of a dataclass
        FairseqTask.add_args.__func__(cls, parser)

    def build_model(self, args: Any, from_checkpoint: bool = False) -> BaseFairseqModel:
        """Return the model; ValueError for search options that are no JSON object or not used."""
        model = super().build_model(args, from_checkpoint)
        if self.args.eval_wer:
            options = search_options("--eval-wer-args", self.args.eval_wer_args)
            self.generator = self.build_generator([model], options)
            self.bpe = self.build_bpe(self.args)
        elif self.args.eval_wer_args != "{}":
            raise ValueError(
                f"--eval-wer-args {self.args.eval_wer_args}: is of --eval-wer; give both"
            )
        return model

    def build_generator(self, models: List[BaseFairseqModel], args: Any, **options: Any) -> Any:
        """Return the search; ValueError for options about the words of a source."""
        neutral = {**STEPS, **SOURCE_WORDS}
        check_language_model(options)
        refuse_options(args, neutral, "the source is a recording and has no words")
        return super().build_generator(models, args, **options)

    def valid_step(
        self, sample: Dict[str, Any], model: BaseFairseqModel, criterion: FairseqCriterion
    ) -> Tuple[Tensor, int, Dict[str, Any]]:
        """Return loss, sample size and sums to be logged, errors of transcripts among them."""
        loss, sample_size, log = super().valid_step(sample, model, criterion)
        if self.args.eval_wer:
            log = {**log, **self._errors(sample, model)}
        return loss, sample_size, log

    def _errors(self, sample: Dict[str, Any], model: BaseFairseqModel) -> Dict[str, int]:
        """Return the sums of errors of the batch's transcripts."""
        lists = self.inference_step(self.generator, [model], sample)
        hypotheses = [self._text(nbest[0]["tokens"], UNKNOWN[0]) for nbest in lists]
        # different symbols for both sides: two unknown characters are never taken for the same
        references = [self._text(target, UNKNOWN[1]) for target in sample["target"]]
        return error_sums(hypotheses, references)

    def _text(self, tokens: Tensor, unknown: str) -> str:
        """Return tokens as text, their sub-words joined."""
        # before the characters are joined, as padding has a symbol too
        tokens = utils.strip_pad(tokens, self.tgt_dict.pad()).int().cpu()
        line = self.tgt_dict.string(tokens, unk_string=unknown)
        return self.bpe.decode(line) if self.bpe else line

    def reduce_metrics(
        self, logging_outputs: List[Dict[str, Any]], criterion: FairseqCriterion
    ) -> None:
        """Log the values of the criterion, and error rates where there are any."""
        super().reduce_metrics(logging_outputs, criterion)
        if any("_cer_length" in log for log in logging_outputs):
            log_error_rates(logging_outputs)
