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
from typing import TYPE_CHECKING, Any, Iterable, Iterator, NamedTuple

import numpy as np
import torch
from fairseq import checkpoint_utils, tasks, utils
from fairseq.data.data_utils import post_process
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.token_generation_constraints import pack_constraints, unpack_constraints
from fairseq_cli.generate import get_symbols_to_strip_from_output

from .unknown_words import text_with_unknown_replaced

if TYPE_CHECKING:
    from fairseq.data import FairseqDataset
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.models import BaseFairseqModel

logger = logging.getLogger("fairseq_cli.interactive")
BYTE_ORDER_MARK = "\ufeff"


class Line(NamedTuple):
    """A line of the input: its number, from 0, its text, and the constraints behind tabs."""

    number: int
    text: str
    constraints: tuple[str, ...] = ()


class Source(NamedTuple):
    """A line as the task encoded it: indices of its tokens, their number, and their text."""

    line: Line
    tokens: Any
    length: int
    words: tuple[str, ...]


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
        text = text[1:] if number == 0 and text.startswith(BYTE_ORDER_MARK) else text
        # TEXT <tab> CONSTRAINT ..
        text, *constraints = text.strip().split("\t") if has_constraints else (text.strip(),)
        lines.append(Line(number, text, tuple(constraints)))
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
            f"{place}: byte {error.start + 1} is not UTF-8; such bytes are read as unknown words"
        )
        return raw.decode("utf-8", errors="replace")


class Session:
    """The models, dictionaries and sub-word coders of one run of the command.

    Args:
        cfg: fairseq's configuration.
    """

    def __init__(self, cfg: FairseqConfig) -> None:
        self.cfg = cfg
        self.seconds_of_search = 0.0
        self.use_cuda = torch.cuda.is_available() and not cfg.common.cpu
        self.task = tasks.setup_task(cfg.task)
        logger.info(f"loading model(s) from {cfg.common_eval.path}")
        self.models, _ = checkpoint_utils.load_model_ensemble(
            utils.split_paths(cfg.common_eval.path),
            arg_overrides=ast.literal_eval(cfg.common_eval.model_overrides),
            task=self.task,
            suffix=cfg.checkpoint.checkpoint_suffix,
            strict=cfg.checkpoint.checkpoint_shard_count == 1,
            num_shards=cfg.checkpoint.checkpoint_shard_count,
        )
        for model in self.models:
            self._prepare(model)
        self.source_dictionary = self.task.source_dictionary
        self.target_dictionary = self.task.target_dictionary
        self.generator = self.task.build_generator(self.models, cfg.generation)
        self.ignored_symbols = get_symbols_to_strip_from_output(self.generator)
        self.tokenizer = self.task.build_tokenizer(cfg.tokenizer)
        self.bpe = self.task.build_bpe(cfg.bpe)
        # None unless unknown words are to be replaced
        self.align_dict = utils.load_align_dict(cfg.generation.replace_unk)
        self.max_positions = utils.resolve_max_positions(  # the least of the task's and the models'
            self.task.max_positions(), *(model.max_positions() for model in self.models)
        )

    def _prepare(self, model: BaseFairseqModel) -> None:
        """Make a model ready for the search, in the precision and on the device of the options."""
        if self.cfg.common.fp16:
            model.half()
        if self.use_cuda and not self.cfg.distributed_training.pipeline_model_parallel:
            model.cuda()
        model.prepare_for_inference_(self.cfg)

    # ---------------------------------------------------------------- text to tokens

    def encode(self, text: str, bpe: Any = None) -> str:
        """Return the sub-words of a text. A word that is spelt like a special symbol is unknown.

        bpe: the coder instead of --bpe: some tasks have one for each language.
        """
        for coder in (self.tokenizer, bpe or self.bpe):  # first words, then sub-words
            text = text if coder is None else coder.encode(text)
        dictionary = self.source_dictionary or self.target_dictionary
        # a typed "</s>" must not become the index that ends the sentence
        names = ("bos_word", "pad_word", "eos_word")
        symbols = {getattr(dictionary, name, None) for name in names}
        if symbols.isdisjoint(text.split()):
            return text
        return " ".join(dictionary.unk_word if word in symbols else word for word in text.split())

    def decode(self, text: str) -> str:
        """Return the text of sub-words."""
        for coder in (self.bpe, self.tokenizer):
            text = text if coder is None else coder.decode(text)
        return text

    def _source(self, line: Line) -> Source:
        """Return the encoded line; ValueError, with the reason, where it cannot be translated."""
        words: list[str] = []

        def encode(text: str, bpe: Any = None) -> str:
            encoded = self.encode(text, bpe)
            words.extend(encoded.split())
            return encoded

        # The task calls `encode` for each part of the line, in order: for a task of several
        # sources, the words of all of them are those that the alignment counts.
        tokens, lengths = self.task.get_interactive_tokens_and_lengths([line.text], encode)
        source = Source(line, tokens[0], lengths[0], tuple(words))
        dataset = self._dataset([source])  # ValueError for a line that is none of the task's
        # a set of this line alone
        _, ignored = dataset.filter_indices_by_size(np.arange(1), self.max_positions)
        if len(ignored):
            raise ValueError(
                f"{dataset.size(0)} tokens (source, target), more than the model takes; allowed: "
                f"{self.max_positions}"
            )
        limit = self.cfg.dataset.max_tokens
        if limit and dataset.num_tokens(0) > limit:
            raise ValueError(f"{dataset.num_tokens(0)} tokens, more than --max-tokens {limit}")
        return source

    def _dataset(self, sources: list[Source]) -> FairseqDataset:
        """Return the encoded lines as the task's dataset, numbered as in `sources`."""
        constraints = None
        if self.cfg.generation.constraints:
            constraints = pack_constraints([self._constraints(source.line) for source in sources])
        tokens = [source.tokens for source in sources]
        lengths = [source.length for source in sources]
        return self.task.build_dataset_for_inference(tokens, lengths, constraints=constraints)

    def _constraints(self, line: Line) -> list[torch.Tensor]:
        """Return the token indices (T,) of each constraint of a line, without an end symbol."""
        return [
            self.target_dictionary.encode_line(
                self.encode(text), append_eos=False, add_if_not_exist=False
            )
            for text in line.constraints
        ]

    # ---------------------------------------------------------------- answers

    def answers(self, lines: list[Line], place: str) -> Iterator[str]:
        """Yield the rows that are printed for the lines, in order. place: named in warnings."""
        sources: list[Source] = []
        # {number of the line: its rows}; batches are not in the order of lines
        rows: dict[int, list[str]] = {}
        for line in lines:
            try:
                sources.append(self._source(line))
            except ValueError as error:
                logger.warning(f"{place}: line {line.number + 1} is not translated: {error}")
                rows[line.number] = self._no_answer(line)
        if sources:
            rows.update(self._translated(sources))
        for line in lines:
            yield from rows[line.number]

    def _no_answer(self, line: Line) -> list[str]:
        """Return the rows of an empty hypothesis, so that output and input stay line by line."""
        number = line.number
        empty = [f"H-{number}\t-inf\t", f"D-{number}\t-inf\t", f"P-{number}\t"]
        return ([f"S-{number}\t{line.text}"] if self.source_dictionary else []) + empty

    def _translated(self, sources: list[Source]) -> dict[int, list[str]]:
        """Return {number of the line: rows to be printed}."""
        dataset = self.cfg.dataset
        batches = self.task.get_batch_iterator(
            dataset=self._dataset(sources),
            max_tokens=dataset.max_tokens,
            max_sentences=dataset.batch_size,
            max_positions=self.max_positions,
        ).next_epoch_itr(shuffle=False)  # drops no line: each has passed the limits
        rows = {}
        for batch in batches:
            inputs = {name: batch["net_input"][name] for name in ("src_tokens", "src_lengths")}
            constraints = batch.get("constraints")
            if self.use_cuda:
                inputs, constraints = utils.move_to_cuda((inputs, constraints))
            start = time.time()
            hypotheses = self.task.inference_step(
                self.generator, self.models, {"net_input": inputs}, constraints=constraints
            )
            seconds = (time.time() - start) / len(hypotheses)  # of a sentence, as fairseq prints it
            self.seconds_of_search += seconds * len(hypotheses)
            for index, number in enumerate(batch["id"].tolist()):
                source, tokens = sources[number], inputs["src_tokens"][index]
                first = self._source_rows(source.line.number, tokens, seconds)
                if constraints is not None:
                    words = [self._text(part) for part in unpack_constraints(constraints[index])]
                    first += [f"C-{source.line.number}\t{text}" for text in words]
                best = hypotheses[index][: self.cfg.generation.nbest]
                parts = [self._hypothesis_rows(source, hypothesis) for hypothesis in best]
                rows[source.line.number] = sum(parts, first)
        return rows

    def _text(self, tokens: torch.Tensor) -> str:
        """Return the target text of token indices (T,)."""
        return self.target_dictionary.string(tokens, self.cfg.common_eval.post_process)

    def _source_rows(self, number: int, tokens: torch.Tensor, seconds: float) -> list[str]:
        """Return the rows S and W of a source (S,); none without a source dictionary."""
        if self.source_dictionary is None:
            return []
        tokens = utils.strip_pad(tokens, self.target_dictionary.pad())
        text = self.source_dictionary.string(tokens, self.cfg.common_eval.post_process)
        return [f"S-{number}\t{text}", f"W-{number}\t{seconds:.3f}\tseconds"]

    def _hypothesis_rows(self, source: Source, hypothesis: dict[str, Any]) -> list[str]:
        """Return the rows H, D and P of a hypothesis, and A with --print-alignment."""
        number = source.line.number
        score = hypothesis["score"] / math.log(2)  # as fairseq prints it, in base 2
        text = self._hypothesis_text(source, hypothesis)
        scores = (hypothesis["positional_scores"] / math.log(2)).tolist()
        rows = [
            f"H-{number}\t{score}\t{text}",
            f"D-{number}\t{score}\t{self.decode(text)}",
            f"P-{number}\t" + " ".join(f"{value:.4f}" for value in scores),
        ]
        if self.cfg.generation.print_alignment:
            joint = "," if self.cfg.generation.print_alignment == "soft" else "-"
            cells = [joint.join(map(str, cell)) for cell in hypothesis["alignment"]]
            rows.append(f"A-{number}\t" + " ".join(cells))
        return rows

    def _hypothesis_text(self, source: Source, hypothesis: dict[str, Any]) -> str:
        """Return the text of a hypothesis, with unknown words replaced where it was asked for."""
        tokens, dictionary = hypothesis["tokens"].int().cpu(), self.target_dictionary
        if self.align_dict is None:
            text = dictionary.string(tokens, extra_symbols_to_ignore=self.ignored_symbols)
        else:
            text = text_with_unknown_replaced(
                tokens.tolist(),
                dictionary,
                self.ignored_symbols,
                source.words,
                hypothesis["alignment"],
                self.align_dict,
            )
        return post_process(text, self.cfg.common_eval.post_process)


def check_batch(cfg: FairseqConfig) -> None:
    """Raise ValueError for options of batches and sampling that exclude each other."""
    size, buffer = cfg.dataset.batch_size, cfg.interactive.buffer_size
    if size and size > buffer:
        raise ValueError(f"--batch-size {size}: cannot be larger than --buffer-size {buffer}")
    if cfg.generation.sampling and cfg.generation.nbest != cfg.generation.beam:
        raise ValueError(
            f"--sampling with --nbest {cfg.generation.nbest} and --beam {cfg.generation.beam}: "
            "they must be equal"
        )


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
        for row in session.answers(lines, place):
            print(row)
        sys.stdout.flush()  # who has typed, or another program, waits for the answer
    logger.info(
        f"Total time: {time.time() - start:.3f} seconds; "
        f"translation time: {session.seconds_of_search:.3f}"
    )
