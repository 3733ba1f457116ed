"""``fairseq_ext.load(..).translate(..)`` beside fairseq's commands, in one process.

    python benchmarks/python_interface.py CHECKPOINT DATA -s de -t en

All three load CHECKPOINT and translate the sentences of --gen-subset, which are
cut into sub-words already, and take turns, on the CPU. The time is that of the processor, from the
file to the last translation, without the start of Python; each figure is the median over the turns.
*Same* is the share of translations that are those of fairseq-generate. Writes OUTPUT.json and .md.
"""

import contextlib
import io
import logging
import statistics
import tempfile
import time
from argparse import Namespace
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_cli import generate, interactive
from speed import cli, passes, translation
from speed.harness import Clock, Figures, in_turns
from speed.translation import Translator

import fairseq_ext

GENERATE, INTERACTIVE, PYTHON = "fairseq-generate", "fairseq-interactive", "load(..).translate"
COLUMNS = ("sentences/s", "ratio", "same, %")


class Programs:
    """The three ways from a checkpoint to translations: {sentence number: text}.

    Args:
        args: of the script.
        texts: the sentences.
        file: with the texts, a line each.
    """

    def __init__(self, args: Namespace, texts: Sequence[str], file: Path):
        self.args, self.texts, self.file = args, texts, file

    def _words(self) -> List[str]:
        args = self.args
        words = [args.data, "--path", args.checkpoint, "--task", args.task, "--cpu"]
        words += ["-s", args.source_lang, "-t", args.target_lang, "--beam", args.beam]
        words += ["--max-len-a", 0, "--max-len-b", args.longest, "--batch-size", args.sentences]
        return list(map(str, words))

    def _printed(
        self, command: Callable[..., object], words: List[str], typed: bool
    ) -> Dict[int, str]:
        """Return {number: hypothesis} of what a command prints."""
        parser = options.get_generation_parser(interactive=typed)
        cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, words))
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            command(cfg)
        rows = [line.split("\t") for line in printed.getvalue().splitlines()]
        return {int(row[0][2:]): row[2] for row in rows if row[0].startswith("H-")}

    def generate(self) -> Dict[int, str]:
        """Return the translations by fairseq-generate."""
        words = ["--gen-subset", self.args.gen_subset, "--num-workers", "0"]
        return self._printed(generate.main, self._words() + words, False)

    def interactive(self) -> Dict[int, str]:
        """Return the translations by fairseq-interactive."""
        words = ["--input", str(self.file), "--buffer-size", str(len(self.texts))]
        return self._printed(interactive.main, self._words() + words, True)

    def python(self) -> Dict[int, str]:
        """Return the translations in Python, with the attention of each."""
        args = self.args
        direction = f"{args.source_lang}-{args.target_lang}"
        model = fairseq_ext.load(args.checkpoint, args.data, direction, subwords="none")
        results = model.translate(
            self.texts, args.beam, batch=args.sentences, max_len_a=0, max_len_b=args.longest
        )
        return {number: result.text for number, result in enumerate(results)}


def texts_of(args: Namespace) -> List[str]:
    """Return the sentences of the subset, in its order."""
    member = Translator(args, args.checkpoint, args.task, args.sentences)
    texts: Dict[int, str] = {}
    for numbers, sentences in member.sources():
        texts.update(zip(numbers, sentences))
    return [texts[number] for number in sorted(texts)]


def processor_time(translate: Callable[[], Dict[int, str]]) -> Tuple[float, int]:
    """Return (seconds, sentences) of a call; what other processes do does not count."""
    start = time.process_time()
    sentences = len(translate())
    return time.process_time() - start, sentences


def measure(args: Namespace) -> Dict[str, Figures]:
    """Return {program: figures}."""
    texts = texts_of(args)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "lines")
        file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        programs = Programs(args, texts, file)
        members = {
            GENERATE: programs.generate,
            INTERACTIVE: programs.interactive,
            PYTHON: programs.python,
        }
        said = {name: translate() for name, translate in members.items()}
        turns = in_turns(members, processor_time, args.repeats, Clock())
    medians = {name: statistics.median(seconds) for name, seconds in turns.items()}
    return {
        name: {
            "sentences/s": 1 / medians[name],
            "ratio": medians[GENERATE] / medians[name],
            "same, %": 100
            * sum(said[name].get(number) == text for number, text in said[GENERATE].items())
            / len(texts),
            "turns": seconds,
        }
        for name, seconds in turns.items()
    }


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Measure and report."""
    parser = cli.make_parser(__doc__)
    translation.add_arguments(parser)
    cli.add_output(parser, "python_interface")
    parser.add_argument("--task", default="fast_translation",
                        help="task of the checkpoint (default %(default)s)")  # fmt: skip
    parser.add_argument("--sentences", type=cli.positive, default=64,
                        help="sentences per batch (default %(default)s)")  # fmt: skip
    cli.add_numbers(parser, beam=5, longest=200, repeats=5)
    cli.add_threads(parser)
    args = parser.parse_args(arguments)
    torch.set_num_threads(args.threads)
    logging.disable(logging.WARNING)
    sizes = f"{args.source_lang}-{args.target_lang}, beam {args.beam}, batches of {args.sentences}"
    passes.report(args, measure(args), COLUMNS, sizes, what="program")


if __name__ == "__main__":
    cli.run_script(main)
