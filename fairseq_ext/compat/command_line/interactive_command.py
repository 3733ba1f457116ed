"""The command fairseq-interactive: translates line by line and prints what fairseq prints.

Lines end at a line feed and nowhere else. Each has one answer, in order. A line that cannot be
translated (too long, not what the task expects) is named in a warning; its answer is an empty
hypothesis of score -inf, and the session continues.
"""

from __future__ import annotations

import ast
import logging
import math
import sys
import time
from argparse import Namespace
from typing import TYPE_CHECKING, Any, Iterable, Iterator

import numpy as np
import torch
from fairseq import checkpoint_utils, tasks, utils
from fairseq.data.encoders import build_tokenizer
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import OmegaConf

from ..generation.fused_language_models import load_language_model
from ..generation.line_translator import Answer, BatchLimits, Coders, Line, LineTranslator
from ..generation.sampled_words import check_samples
from ..text_lines import BYTE_ORDER_MARK

if TYPE_CHECKING:
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.models import BaseFairseqModel
    from fairseq.tasks import FairseqTask

logger = logging.getLogger("fairseq_cli.interactive")


def read_buffers(path: str, size: int, has_constraints: bool) -> Iterator[list[Line]]:
    """Yield lists of at most `size` lines of a file, or of the standard input for "-"."""
    if path == "-":
        yield from _buffers(getattr(sys.stdin, "buffer", sys.stdin), "input", size, has_constraints)
        return
    with open(path, "rb") as stream:
        yield from _buffers(stream, path, size, has_constraints)


def _buffers(
    stream: Iterable[bytes | str], name: str, size: int, has_constraints: bool
) -> Iterator[list[Line]]:
    """Yield lists of at most `size` lines of a stream; `name`: of the stream, for warnings."""
    lines: list[Line] = []
    for number, raw in enumerate(stream):
        text = raw if isinstance(raw, str) else _decoded(raw, f"{name}: line {number + 1}")
        # editors write the mark
        text = text.removeprefix(BYTE_ORDER_MARK) if number == 0 else text
        # TEXT <tab> CONSTRAINT ..; an empty text has its constraints, too
        text, *constraints = text.rstrip().split("\t") if has_constraints else (text,)
        lines.append(Line(number, text.strip(), tuple(constraints)))
        if len(lines) == size:
            yield lines
            lines = []
    if lines:
        yield lines


def _decoded(raw: bytes, place: str) -> str:
    """Return the text of a line; bytes that are not UTF-8 become U+FFFD, with a warning."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        logger.warning(
            f"{place}: byte {error.start + 1} is not UTF-8; such bytes are read as U+FFFD, an "
            "unknown word to most models, and a blank to some sub-word models"
        )
        return raw.decode("utf-8", errors="replace")


def target_tokenizer(options: Any) -> Any:
    """Return what cuts words of the target language, as constraints are; None where none differs.

    options: of --tokenizer, None without it.
    """
    if getattr(options, "_name", None) != "moses":
        return None
    languages = {"source_lang": options.target_lang, "target_lang": options.target_lang}
    return build_tokenizer(OmegaConf.create({**options, **languages}))


class Session:
    """The models, dictionaries and sub-word coders of one run of the command.

    Args:
        cfg: fairseq's configuration.
    """

    def __init__(self, cfg: FairseqConfig) -> None:
        self.cfg = cfg
        self.seconds_of_search = 0.0
        use_cuda = torch.cuda.is_available() and not cfg.common.cpu
        task = tasks.setup_task(cfg.task)
        logger.info(f"loading model(s) from {cfg.common_eval.path}")
        overrides = ast.literal_eval(cfg.common_eval.model_overrides)
        models, _ = checkpoint_utils.load_model_ensemble(
            utils.split_paths(cfg.common_eval.path),
            arg_overrides=overrides,
            task=task,
            suffix=cfg.checkpoint.checkpoint_suffix,
            strict=cfg.checkpoint.checkpoint_shard_count == 1,
            num_shards=cfg.checkpoint.checkpoint_shard_count,
        )
        for model in models:
            self._prepare(model, use_cuda)
        self.translator = LineTranslator(
            task,
            models,
            cfg.generation,
            Coders(
                task.build_tokenizer(cfg.tokenizer),
                task.build_bpe(cfg.bpe),
                cfg.common_eval.post_process,
                target_tokenizer(cfg.tokenizer),
            ),
            BatchLimits(cfg.dataset.max_tokens, cfg.dataset.batch_size),
            torch.device("cuda" if use_cuda else "cpu"),
            self._language_model(task, use_cuda),
        )

    def _language_model(self, task: FairseqTask, use_cuda: bool) -> dict[str, Any] | None:
        """Return the options of the search for --lm-path, None without it."""
        generation = self.cfg.generation
        if generation.lm_path is None:
            return None
        load = checkpoint_utils.load_model_ensemble
        (model,), _ = load_language_model(load, generation.lm_path, self.cfg.task.data, task)
        self._prepare(model, use_cuda)
        return {"lm_model": model, "lm_weight": generation.lm_weight}

    def _prepare(self, model: BaseFairseqModel, use_cuda: bool) -> None:
        """Make a model ready for the search, in the precision and on the device of the options."""
        if self.cfg.common.fp16:
            model.half()
        if use_cuda and not self.cfg.distributed_training.pipeline_model_parallel:
            model.cuda()
        model.prepare_for_inference_(self.cfg)

    def rows(self, lines: list[Line], place: str) -> Iterator[str]:
        """Yield the rows that are printed for the lines, in order. place: named in warnings."""
        for answer in self.translator.answers(lines):
            self.seconds_of_search += answer.seconds
            if answer.error is not None:
                number = answer.line.number + 1
                logger.warning(f"{place}: line {number} is not translated: {answer.error}")
                yield from self._no_answer(answer.line)
                continue
            yield from self._source_rows(answer)
            for hypothesis in answer.hypotheses:
                yield from self._hypothesis_rows(answer, hypothesis)

    def _no_answer(self, line: Line) -> list[str]:
        """Return the rows of an empty hypothesis, so that output and input stay line by line."""
        number = line.number
        empty = [f"H-{number}\t-inf\t", f"D-{number}\t-inf\t", f"P-{number}\t"]
        has_source = self.translator.source_dictionary
        return ([f"S-{number}\t{line.text}"] if has_source else []) + empty

    def _source_rows(self, answer: Answer) -> list[str]:
        """Return the rows S and W of a source, and C for its constraints.

        S and W are missing without a source dictionary.
        """
        number, rows = answer.line.number, []
        if self.translator.source_dictionary is not None:
            rows = [
                f"S-{number}\t{self.translator.source_text(answer)}",
                f"W-{number}\t{answer.seconds:.3f}\tseconds",
            ]
        return rows + [f"C-{number}\t{text}" for text in self.translator.constraint_texts(answer)]

    def _hypothesis_rows(self, answer: Answer, hypothesis: dict[str, Any]) -> list[str]:
        """Return the rows H, D and P of a hypothesis, and A with --print-alignment."""
        number = answer.line.number
        score = hypothesis["score"] / math.log(2)  # as fairseq prints it, in base 2
        text = self.translator.hypothesis_text(answer, hypothesis)
        scores = (hypothesis["positional_scores"] / math.log(2)).tolist()
        rows = [
            f"H-{number}\t{score}\t{text}",
            f"D-{number}\t{score}\t{self.translator.decode(text)}",
            f"P-{number}\t" + " ".join(f"{value:.4f}" for value in scores),
        ]
        if self.cfg.generation.print_alignment:
            joint = "," if self.cfg.generation.print_alignment == "soft" else "-"
            cells = [joint.join(map(str, cell)) for cell in hypothesis["alignment"]]
            rows.append(f"A-{number}\t" + " ".join(cells))
        return rows


def check_batch(cfg: FairseqConfig) -> None:
    """Raise ValueError for options of batches and sampling that exclude each other."""
    size, buffer = cfg.dataset.batch_size, cfg.interactive.buffer_size
    if size and size > buffer:
        raise ValueError(f"--batch-size {size}: cannot be larger than --buffer-size {buffer}")
    check_samples(cfg.generation)


def main(cfg: FairseqConfig | Namespace) -> None:
    """Translate the lines of --input."""
    start = time.time()
    cfg = convert_namespace_to_omegaconf(cfg) if isinstance(cfg, Namespace) else cfg
    utils.import_user_module(cfg.common)
    cfg.interactive.buffer_size = max(cfg.interactive.buffer_size, 1)  # as fairseq reads 0
    if cfg.dataset.max_tokens is None and cfg.dataset.batch_size is None:
        cfg.dataset.batch_size = 1
    check_batch(cfg)
    logger.info(cfg)
    if cfg.common.seed is not None and not cfg.generation.no_seed_provided:
        np.random.seed(cfg.common.seed)
        utils.set_torch_seed(cfg.common.seed)
    session = Session(cfg)
    if cfg.generation.constraints:
        logger.warning("NOTE: Constrained decoding assumes a shared sub-word vocabulary.")
    if cfg.interactive.buffer_size > 1:
        logger.info(f"Sentence buffer size: {cfg.interactive.buffer_size}")
    logger.info("NOTE: hypothesis and token scores are output in base 2")
    logger.info("Type the input sentence and press return:")
    path = cfg.interactive.input
    place = "input" if path == "-" else path
    has_constraints = bool(cfg.generation.constraints)
    for lines in read_buffers(path, cfg.interactive.buffer_size, has_constraints):
        for row in session.rows(lines, place):
            print(row)
        sys.stdout.flush()  # who has typed, or another program, waits for the answer
    logger.info(
        f"Total time: {time.time() - start:.3f} seconds; "
        f"translation time: {session.seconds_of_search:.3f}"
    )
