"""The example noisychannel: what its reranking reads of fairseq's commands, and what it writes."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import logging
import math
import os
import re
import subprocess
import sys
from typing import IO, Any, Callable, ContextManager, Iterator

from ..atomic_files import removed_at_the_end
from ..imported_examples import modules_of_examples
from ..module_overlay import overlay_names
from ..patch_registry import PatchedModule, patch

UTILS = modules_of_examples("noisychannel.rerank_utils")
# a line of fairseq-generate: its letter and the number of the sentence
PRINTED = re.compile(r"([STHP])-(\d+)(?:\t(.*))?")
# a line of fairseq-eval-lm --output-word-probs: the number of the sentence, words with ln P
WORDS = re.compile(r"(\d+) (\S+ \[.*)")


@patch(
    *UTILS,
    because="fairseq 0.12.2: the reranking looks for S-, T-, H- and P- anywhere in what "
    "fairseq-generate prints, also in translations: 'T-34 tanks' replaces the reference of "
    "sentence 34; a score such as -9e-05 leaves a part of it in the hypothesis",
)
def lines_are_read_by_their_columns(module: PatchedModule) -> None:
    """Read a line by what it begins with, and its columns by the tabs."""

    def reprocess(fle: str) -> tuple[dict[int, Any], ...]:
        """Return sources, hypotheses, their scores, targets and log2 P of words, by sentence."""
        sources: dict[int, str] = {}
        targets: dict[int, str] = {}
        hypotheses: dict[int, list[str]] = {}
        scores: dict[int, list[float]] = {}
        word_scores: dict[int, list[list[float]]] = {}
        for line in _lines(fle):
            printed = PRINTED.fullmatch(line)
            if printed is None:
                continue
            letter, number, text = printed[1], int(printed[2]), printed[3] or ""
            if letter == "H":
                score, _, hypothesis = text.partition("\t")
                hypotheses.setdefault(number, []).append(hypothesis + "\n")
                scores.setdefault(number, []).append(float(score))
            elif letter == "P":
                word_scores.setdefault(number, []).append([float(word) for word in text.split()])
            else:
                (sources if letter == "S" else targets)[number] = text + "\n"
        return sources, hypotheses, scores, targets, word_scores

    module.reprocess = reprocess


@patch(
    *UTILS,
    because="fairseq 0.12.2: --nbest-list reads the output of a fairseq-interactive before 0.8: "
    "today's ends in an AssertionError",
)
def lists_of_today_are_read(module: PatchedModule) -> None:
    """Read the lines of today's fairseq-interactive, which are those of fairseq-generate."""
    stock = module.reprocess_nbest

    @functools.wraps(stock)
    def reprocess_nbest(fle: str) -> Any:
        if any(line.startswith("O\t") for line in _lines(fle)):
            return stock(fle)
        sources, hypotheses, scores, targets, word_scores = module.reprocess(fle)
        # stock's word for a reference that there is not
        targets = {number: targets.get(number, "filler") for number in sources}
        return sources, hypotheses, scores, targets, word_scores

    module.reprocess_nbest = reprocess_nbest


@patch(
    *UTILS,
    because="fairseq 0.12.2 logs the words of fairseq-eval-lm, which the reranking reads from the "
    "standard output: it ends in KeyError: 0. They are ln P, what it adds them to is log2 P",
)
def words_of_language_models_are_read(module: PatchedModule) -> None:
    """Write the words to the file of scores, and read them as log2 P."""

    def main(cfg: Any) -> Any:
        from fairseq_cli import eval_lm

        with _words_are_printed():
            return eval_lm.main(cfg)

    def parse_lm(
        input_file: str,
        prefix_len: int | None = None,
        bpe_symbol: str | None = None,
        target_prefix_frac: float | None = None,
    ) -> tuple[dict[int, Any], ...]:
        """Return sentences, their log2 P, those of words, sentences of words, and lengths."""
        sentences, totals, word_scores, plain, lengths = {}, {}, {}, {}, {}
        for line in _lines(input_file):
            words = WORDS.fullmatch(line)
            if words is None:
                continue
            number, columns = int(words[1]), words[2].split()
            scores = [float(score[1:-1]) / math.log(2) for score in columns[1::2]]
            sentence = " ".join(columns[0::2][:-1]) + "\n"  # without the end of the sentence
            length = len(scores)
            if prefix_len is not None:
                length = module.get_num_bpe_tokens_from_len(sentence, bpe_symbol, prefix_len)
            elif target_prefix_frac is not None:
                _, _, length = module.calc_length_from_frac(
                    sentence, target_prefix_frac, bpe_symbol
                )
            if bpe_symbol is not None:
                plain[number] = module.remove_bpe(sentence, bpe_symbol)
            sentences[number], word_scores[number] = sentence, scores
            totals[number], lengths[number] = sum(scores[:length]), length
        return sentences, totals, word_scores, plain, lengths

    overlay_names(module, "eval_lm", main=main)
    module.parse_lm = parse_lm


@patch(
    *UTILS,
    because="fairseq 0.12.2: without --lm-bpe-code the language model of a reranking scores the "
    "sources of an English-German model, and with the codes of the other models it may find no "
    "text",
)
def language_models_score_hypotheses(module: PatchedModule) -> None:
    """Give language models the hypotheses, all of which they must score."""
    stock = module.lm_scoring

    @functools.wraps(stock)
    def lm_scoring(
        preprocess_directory: str,
        bpe_status: str,
        gen_output: Any,
        pre_gen: str,
        cur_lm_dict: str,
        cur_lm_name: str,
        cur_language_model: str,
        cur_lm_bpe_code: str | None,
        batch_size: int,
        lm_score_file: str,
        target_lang: str,
        source_lang: str,
        prefix_len: int | None = None,
    ) -> None:
        pieces = f"{pre_gen}/rescore_data."
        if bpe_status == "no bpe":
            # stock writes the sources to a file .de and the hypotheses to one .en
            source_lang, target_lang = "de", "en"
        elif bpe_status == "shared" and not os.path.isfile(pieces + target_lang):
            module.write_reprocessed(
                gen_output.source,
                gen_output.hypo,
                gen_output.target,
                pieces + source_lang,
                pieces + target_lang,
                f"{pre_gen}/reference_file",
            )
        stock(
            *(preprocess_directory, bpe_status, gen_output, pre_gen, cur_lm_dict, cur_lm_name),
            *(cur_language_model, cur_lm_bpe_code, batch_size, lm_score_file),
            *(target_lang, source_lang, prefix_len),
        )
        total = sum(map(len, gen_output.hypo.values()))
        missing = sorted(set(range(total)) - set(module.parse_lm(lm_score_file)[0]))
        if missing:
            os.unlink(lm_score_file)
            raise ValueError(
                f"--language-model {cur_language_model} has not scored {len(missing)} of {total} "
                f"hypotheses, the first being number {missing[0]}: they are longer than it can "
                "read; allowed: a model of longer sentences"
            )

    module.lm_scoring = lm_scoring


@contextlib.contextmanager
def _words_are_printed() -> Iterator[None]:
    """Let the words of fairseq-eval-lm go to the standard output in place of the log."""
    logger = logging.getLogger("fairseq_cli.eval_lm")
    level, is_shown = logger.level, logger.isEnabledFor(logging.INFO)

    def print_words(record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if WORDS.fullmatch(message):
            print(message)
            return False
        return is_shown or record.levelno > logging.INFO

    logger.addFilter(print_words)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeFilter(print_words)
        logger.setLevel(level)


@patch(
    *modules_of_examples("noisychannel.rerank_score_lm"),
    because="fairseq 0.12.2: the reranking leaves a file without scores of the language model, "
    "which it takes for its scores from then on",
)
def empty_scores_are_computed_again(module: PatchedModule) -> None:
    """Remove a file of scores that holds none."""
    stock, utils = module.score_lm, module.rerank_utils

    @functools.wraps(stock)
    def score_lm(args: Any) -> None:
        if args.language_model is not None:
            folder = folder_of(utils, args)
            path = utils.rescore_file_name(folder, args.prefix_len, args.lm_name, lm_file=True)
            if os.path.isfile(path) and not any(map(WORDS.fullmatch, _lines(path))):
                os.unlink(path)
        stock(args)

    module.score_lm = score_lm


def folder_of(utils: Any, args: Any) -> str:
    """Return the folder that holds all files of a list of hypotheses.

    Args:
        utils: the module rerank_utils. args: the options of the reranking.
    """
    folders = utils.get_directories(
        args.data_dir_name,
        args.num_rescore,
        args.gen_subset,
        args.gen_model_name,
        args.shard_id,
        args.num_shards,
        args.sampling,
        args.prefix_len,
        args.target_prefix_frac,
        args.source_prefix_frac,
    )
    return str(folders[0])


@patch(
    *UTILS,
    *modules_of_examples("noisychannel.rerank_generate", "noisychannel.rerank_score_bw"),
    because="fairseq 0.12.2: the reranking takes a list of hypotheses that an interrupted run has "
    "left for all of them",
)
def lists_are_whole(module: PatchedModule) -> None:
    """Give a file that is written its name when it is complete."""

    def open_whole(path: str, mode: str = "r", **options: Any) -> ContextManager[IO[str]]:
        if mode == "w":
            return _written_whole(path)
        return open(path, mode, **{"encoding": "utf-8", **options})

    module.open = open_whole  # a global of the module comes before the built-in of this name


@contextlib.contextmanager
def _written_whole(path: str) -> Iterator[IO[str]]:
    """Yield a file that is renamed to `path` when the block has ended without an error."""
    part = f"{path}.part"
    with removed_at_the_end(part):
        with open(part, "w", encoding="utf-8") as file:
            yield file
        os.replace(part, path)


def _lines(path: str) -> Iterator[str]:
    """Yield the lines of a file, without their ends."""
    with open(path, encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.rstrip("\n")


@patch(
    *UTILS,
    *modules_of_examples("noisychannel.rerank_generate"),
    because="fairseq 0.12.2: the reranking runs a copy of subword-nmt in its own folder, by the "
    "python in PATH, and goes on where it fails",
)
def pieces_are_made_by_subword_nmt(module: PatchedModule) -> None:
    """Run the installed subword-nmt where there is no copy, and end where it fails."""

    def call(command: list[str], shell: bool = False) -> int:
        _, script, *options = command
        program = [script]
        if not os.path.isfile(script):
            if importlib.util.find_spec("subword_nmt") is None:
                raise FileNotFoundError(
                    f"{script}: subword-nmt is needed for the codes of other models; "
                    "allowed: pip install subword-nmt, or a clone of it at this place"
                )
            program = ["-m", "subword_nmt.apply_bpe"]
        return subprocess.check_call([sys.executable, *program, *options])

    overlay_names(module, "subprocess", call=call)


@patch(
    *modules_of_examples("noisychannel.rerank_generate"),
    because="fairseq 0.12.2: --ref-translation does nothing: BLEU, and what is tuned by it, is "
    "that of a reference 'filler' for all sentences",
)
def references_of_lists_are_read(module: PatchedModule) -> None:
    """Put the references beside the hypotheses of --nbest-list."""
    stock: Callable[..., Any] = module.gen_and_reprocess_nbest
    utils = module.rerank_utils

    @functools.wraps(stock)
    def gen_and_reprocess_nbest(args: Any) -> Any:
        if args.nbest_list is not None and args.ref_translation is not None:
            references = list(_lines(args.ref_translation))
            numbers = sorted(utils.reprocess_nbest(args.nbest_list)[0])
            if len(references) != len(numbers):
                raise ValueError(
                    f"--ref-translation {args.ref_translation} has {len(references)} lines; "
                    f"allowed: {len(numbers)}, one for each source of --nbest-list"
                )
            folder = folder_of(utils, args)
            os.makedirs(folder, exist_ok=True)
            path = os.path.join(folder, "nbest_list_with_references.txt")
            with _written_whole(path) as file:
                for line in _lines(args.nbest_list):
                    file.write(line + "\n")
                for number, reference in zip(numbers, references):
                    file.write(f"T-{number}\t{reference}\n")
            args.nbest_list, args.ref_translation = path, None
        return stock(args)

    module.gen_and_reprocess_nbest = gen_and_reprocess_nbest
