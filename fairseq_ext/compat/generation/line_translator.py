"""Lines of text in, hypotheses out, as fairseq-interactive has them: one answer for each line.

A line that cannot be translated (too long, not what the task expects) has an answer without
hypotheses that names the reason.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Iterable, Iterator, NamedTuple, Sequence

import numpy as np
import torch
from fairseq import utils
from fairseq.data.data_utils import post_process
from fairseq.tasks import FairseqTask
from fairseq.token_generation_constraints import pack_constraints, unpack_constraints
from fairseq_cli.generate import get_symbols_to_strip_from_output

from ..text_lines import without_line_breaks
from .unknown_words import text_with_unknown_replaced

if TYPE_CHECKING:
    from fairseq.data import Dictionary, FairseqDataset
    from fairseq.dataclass.configs import GenerationConfig
    from fairseq.models import BaseFairseqModel


def without_symbols(text: str, dictionary: Dictionary) -> str:
    """Return a text whose words that are spelt like special symbols are replaced by <unk>.

    A typed "</s>" must not become the index that ends the sentence.
    """
    # a task may have a dictionary of its own, without these names
    names = ("bos_word", "pad_word", "eos_word")
    symbols = {getattr(dictionary, name, None) for name in names}
    if symbols.isdisjoint(text.split()):
        return text
    return " ".join(dictionary.unk_word if word in symbols else word for word in text.split())


class Line(NamedTuple):
    """A line of the input: its number, from 0, its text, and the constraints behind tabs."""

    number: int
    text: str
    constraints: tuple[str, ...] = ()


class EncodedLine(NamedTuple):
    """A line as the task encoded it: indices of its tokens, their number, and their text."""

    line: Line
    tokens: Any
    length: int
    words: tuple[str, ...]


class Answer(NamedTuple):
    """What became of a line.

    error: why it was not translated; then there is nothing else. source: the encoded line. tokens:
    what the model read (S,), with padding, or the features of an image or a recording. hypotheses:
    fairseq's, the best first. constraints: (C,) as fairseq packs them. seconds: of the search, the
    share of one line of the batch.
    """

    line: Line
    error: str | None = None
    source: EncodedLine | None = None
    tokens: Any = None
    hypotheses: Sequence[dict[str, Any]] = ()
    constraints: torch.Tensor | None = None
    seconds: float = 0.0


class Coders(NamedTuple):
    """What makes tokens of a text and text of tokens; None where there is none.

    tokenizer, bpe: fairseq's, for words and for sub-words. post_process: the symbol of --post-
    process, which joins sub-words. target_tokenizer: for words of the target language, where
    `tokenizer` is not.
    """

    tokenizer: Any = None
    bpe: Any = None
    post_process: str | None = None
    target_tokenizer: Any = None


class BatchLimits(NamedTuple):
    """The largest batch: in tokens, with padding, and in lines; None is no limit."""

    max_tokens: int | None = None
    max_sentences: int | None = None


class LineTranslator:
    """Translates lines.

    Args:
        task: with dictionaries.
        models: an ensemble, ready for the search.
        generation: fairseq's options of the search.
        coders: of the texts.
        limits: of a batch.
        device: where the models are.
        search_options: more options of the search: `lm_model` and `lm_weight`.
    """

    def __init__(
        self,
        task: FairseqTask,
        models: Sequence[BaseFairseqModel],
        generation: GenerationConfig,
        coders: Coders,
        limits: BatchLimits,
        device: torch.device,
        search_options: dict[str, Any] | None = None,
    ) -> None:
        self.task, self.models, self.generation = task, list(models), generation
        self.coders, self.limits, self.device = coders, limits, device
        self.source_dictionary = task.source_dictionary
        self.target_dictionary = task.target_dictionary
        # not every task's search takes more options
        more = {"extra_gen_cls_kwargs": search_options} if search_options else {}
        self.generator = task.build_generator(self.models, generation, **more)
        self.ignored_symbols = get_symbols_to_strip_from_output(self.generator)
        # None unless unknown words are to be replaced
        self.align_dict = utils.load_align_dict(generation.replace_unk)
        self.max_positions = utils.resolve_max_positions(  # the least of the task's and the models'
            task.max_positions(), *(model.max_positions() for model in self.models)
        )
        if isinstance(self.max_positions, dict):  # of the one direction, see ``dataset``
            (self.max_positions,) = self.max_positions.values()

    # ---------------------------------------------------------------- text to tokens

    def encode(self, text: str, bpe: Any = None, tokenizer: Any = None) -> str:
        """Return the sub-words of a text. A word that is spelt like a special symbol is unknown.

        bpe, tokenizer: instead of --bpe and --tokenizer: some tasks have one for each language.
        """
        # first words, then sub-words
        for coder in (tokenizer or self.coders.tokenizer, bpe or self.coders.bpe):
            text = text if coder is None else coder.encode(text)
        return without_symbols(text, self.source_dictionary or self.target_dictionary)

    def decode(self, text: str) -> str:
        """Return the text of sub-words, in one line: byte-level ones may spell a line break."""
        for coder in (self.coders.bpe, self.coders.tokenizer):
            text = text if coder is None else coder.decode(text)
        return without_line_breaks(text)

    def source(self, line: Line) -> EncodedLine:
        """Return the encoded line; ValueError, with the reason, where it cannot be translated."""
        texts: list[str] = []

        def encode(text: str, **coders: Any) -> str:
            texts.append(self.encode(text, **coders))
            return texts[-1]

        # The task calls `encode` for each part of the line, in order: for a task of several
        # sources, the words of all of them are those that the alignment counts.
        tokens, lengths = self.task.get_interactive_tokens_and_lengths([line.text], encode)
        words = " ".join(texts or [line.text]).split()  # a task of a plugin may not ask for it
        source = EncodedLine(line, tokens[0], lengths[0], tuple(words))
        dataset = self.dataset([source])  # ValueError for a line that is none of the task's
        self._check_size(dataset)
        limit = self.limits.max_tokens
        if limit and dataset.num_tokens(0) > limit:
            raise ValueError(f"{dataset.num_tokens(0)} tokens, more than --max-tokens {limit}")
        self._check_constraints(source)
        return source

    def _check_size(self, dataset: FairseqDataset) -> None:
        """Raise ValueError if the batches of the task leave out the one line of a dataset."""
        if self.max_positions is None:  # then fairseq asks nobody
            return
        line = np.arange(1)
        if type(self.task).filter_indices_by_size is FairseqTask.filter_indices_by_size:
            # it asks the dataset, and warns of a "sample #0", where the line has a number
            fitting, _ = dataset.filter_indices_by_size(line, self.max_positions)
            reason = f", more than the model takes; allowed: {self.max_positions}"
        else:
            # True: leave out without an error
            fitting = self.task.filter_indices_by_size(line, dataset, self.max_positions, True)
            reason = f": {type(self.task).__name__}.filter_indices_by_size leaves them out"
        if not len(fitting):
            sizes = tuple(np.ravel(dataset.size(0)).tolist())  # Python's numbers, which look so
            raise ValueError(f"{sizes} tokens (source, target){reason}")

    def _check_constraints(self, source: EncodedLine) -> None:
        """Raise ValueError for constraints that no translation of the line has room for."""
        if not self.generation.constraints:
            return
        words = sum(len(constraint) for constraint in self._constraints(source.line))
        limit = int(self.generation.max_len_a * source.length + self.generation.max_len_b)
        # the end symbol takes a position; a search of a plugin may know no limit
        limit = min(limit, getattr(self.generator, "max_len", limit + 1) - 1)
        if words > limit:
            raise ValueError(
                f"{words} tokens of constraints, but a translation may have {limit}; allowed: "
                "fewer, or a larger --max-len-b"
            )

    def dataset(self, sources: Sequence[EncodedLine]) -> FairseqDataset:
        """Return the encoded lines as the task's dataset, numbered as in `sources`."""
        constraints = None
        if self.generation.constraints:
            constraints = pack_constraints([self._constraints(source.line) for source in sources])
        tokens = [source.tokens for source in sources]
        lengths = [source.length for source in sources]
        dataset = self.task.build_dataset_for_inference(tokens, lengths, constraints=constraints)
        # multilingual_translation has a dataset for each of its directions, here for one alone
        direction = getattr(dataset, "eval_key", None)
        return dataset if direction is None else dataset.datasets[direction]

    def _constraints(self, line: Line) -> list[torch.Tensor]:
        """Return the token indices (T,) of each constraint of a line, without an end symbol.

        Those without tokens are left out: fairseq would count them as parts of the next one.
        """
        # where source and target are cut differently; one that leaves the target whole is there too
        bpe = getattr(self.coders.bpe, "target", None)
        encoded = [
            self.target_dictionary.encode_line(
                self.encode(text, bpe, self.coders.target_tokenizer),
                append_eos=False,
                add_if_not_exist=False,
            )
            for text in line.constraints
        ]
        return [tokens for tokens in encoded if len(tokens)]

    # ---------------------------------------------------------------- answers

    def answers(self, lines: Sequence[Line]) -> Iterator[Answer]:
        """Yield the answers of the lines, in order."""
        sources: list[EncodedLine] = []
        # {number of the line: its answer}; batches are not in the order of lines
        answers: dict[int, Answer] = {}
        for line in lines:
            try:
                sources.append(self.source(line))
            except ValueError as error:
                answers[line.number] = Answer(line, str(error))
        if sources:
            for batch in self.batches(self.dataset(sources)):
                for answer in self._translated(sources, batch):
                    answers[answer.line.number] = answer
        for line in lines:
            # a task's own get_batch_iterator may choose among lines that are short enough
            reason = f"the batches of {type(self.task).__name__} leave it out"
            yield answers.get(line.number) or Answer(line, reason)

    def batches(self, dataset: FairseqDataset) -> Iterable[dict[str, Any]]:
        """Return the task's batches, each sentence in one of them."""
        return self.task.get_batch_iterator(
            dataset=dataset,
            max_tokens=self.limits.max_tokens,
            max_sentences=self.limits.max_sentences,
            max_positions=self.max_positions,
        ).next_epoch_itr(shuffle=False)  # drops no line: each has passed the limits

    def _translated(
        self, sources: Sequence[EncodedLine], batch: dict[str, Any]
    ) -> Iterator[Answer]:
        """Yield the answers of a batch, whose ids are places in `sources`."""
        inputs = {name: batch["net_input"][name] for name in ("src_tokens", "src_lengths")}
        constraints = batch.get("constraints")
        if self.device.type != "cpu":
            inputs, constraints = utils.move_to_cuda((inputs, constraints), self.device)
        start = time.time()
        hypotheses = self.task.inference_step(
            self.generator, self.models, {"net_input": inputs}, constraints=constraints
        )
        seconds = (time.time() - start) / len(hypotheses)  # of a sentence, as fairseq prints it
        for index, number in enumerate(batch["id"].tolist()):
            yield Answer(
                sources[number].line,
                None,
                sources[number],
                inputs["src_tokens"][index],
                hypotheses[index][: self.generation.nbest],
                None if constraints is None else constraints[index],
                seconds,
            )

    # ---------------------------------------------------------------- tokens to text

    def constraint_texts(self, answer: Answer) -> list[str]:
        """Return the constraints of a line as the search read them."""
        if answer.constraints is None:
            return []
        return [self.text(part) for part in unpack_constraints(answer.constraints)]

    def text(self, tokens: torch.Tensor) -> str:
        """Return the target text of token indices (T,)."""
        # to the CPU at once: fairseq asks for the tokens one by one
        return self.target_dictionary.string(tokens.cpu(), self.coders.post_process)

    def source_text(self, answer: Answer) -> str:
        """Return the sub-words of the source, for a task with a source dictionary."""
        tokens = utils.strip_pad(answer.tokens.cpu(), self.target_dictionary.pad())
        return self.source_dictionary.string(tokens, self.coders.post_process)

    def hypothesis_text(self, answer: Answer, hypothesis: dict[str, Any]) -> str:
        """Return the sub-words of a hypothesis, with unknown words replaced where asked for."""
        tokens, dictionary = hypothesis["tokens"].int().cpu(), self.target_dictionary
        if self.align_dict is None:
            # a dictionary of a plugin may join sub-words in a way of its own
            return dictionary.string(
                tokens, self.coders.post_process, extra_symbols_to_ignore=self.ignored_symbols
            )
        assert answer.source is not None  # it has been translated
        text = text_with_unknown_replaced(
            tokens.tolist(),
            dictionary,
            self.ignored_symbols,
            answer.source.words,
            hypothesis["alignment"],
            self.align_dict,
        )
        return post_process(text, self.coders.post_process)
