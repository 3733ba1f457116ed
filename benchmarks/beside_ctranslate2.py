"""Translation by a trained dual model: this suite, stock fairseq and CTranslate2 in one run.

    python benchmarks/beside_ctranslate2.py CHECKPOINT DATA -s de -t en

CHECKPOINT: of dual_translation; DATA: its binarised data. The direction is exported for the other
two, and all translate the same batches of --gen-subset, taking turns; each figure is the median
over the turns. Search is fairseq's with its default length penalty, in single precision on the CPU.
"Same" is the share of best translations that are those of stock fairseq. Writes OUTPUT.json and
OUTPUT.md.
"""

import statistics
import subprocess
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Dict, Iterable, List, Optional, Sequence, Tuple, Union

import torch
from speed import cli, passes, translation
from speed.harness import Clock, Figures, in_turns
from speed.translation import Translator, timed_pass

from fairseq_ext.tools import UsageError

COLUMNS = ("sentences/s", "ratio to stock", "same, %")
STOCK, SUITE, OTHER = "stock fairseq", "this suite", "CTranslate2"


class CTranslate2:
    """The exported direction in a folder of CTranslate2; it has the methods of ``Translator``."""

    def __init__(
        self, args: Namespace, folder: Path, sources: Iterable[Tuple[List[int], List[str]]]
    ):
        try:
            import ctranslate2
        except ImportError as error:
            raise UsageError(f"CTranslate2 is needed: pip install ctranslate2 ({error})") from error
        self.translator = ctranslate2.Translator(
            str(folder), device="cpu", compute_type="float32", intra_threads=args.threads
        )
        self.batches = [(ids, [sentence.split() for sentence in rows]) for ids, rows in sources]
        self.options = {"beam_size": args.beam, "max_decoding_length": args.longest}

    def translate(self) -> Dict[int, str]:
        """Return {sentence number: best translation} of all batches."""
        translations = {}
        for numbers, rows in self.batches:
            results = self.translator.translate_batch(rows, **self.options)
            for number, result in zip(numbers, results):
                translations[number] = " ".join(result.hypotheses[0])
        return translations


def exported(args: Namespace, folder: Path, to: str) -> Path:
    """Export the direction with `fairseq-ext export` and return its folder."""
    words = [sys.executable, "-m", "fairseq_ext", "export", args.checkpoint, "-s"]
    words += [args.source_lang, "-t", args.target_lang, "--to", to, "--output", folder / to]
    words += ["--data", args.data]
    finished = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if finished.returncode:
        raise UsageError(f"{' '.join(map(str, words))} failed: {finished.stderr.strip()}")
    return folder / to


def measure(args: Namespace, folder: Path) -> Dict[str, Figures]:
    """Return {system: figures}."""
    stock = Translator(args, exported(args, folder, "fairseq"), "translation", args.sentences)
    members: Dict[str, Union[Translator, CTranslate2]] = {
        STOCK: stock,
        SUITE: Translator(args, args.checkpoint, "dual_translation", args.sentences),
        OTHER: CTranslate2(args, exported(args, folder, "ctranslate2"), stock.sources()),
    }
    turns = in_turns(members, lambda m: timed_pass(m.translate), args.repeats, Clock())
    rates = {name: 1 / statistics.median(seconds) for name, seconds in turns.items()}
    expected = stock.translate()
    results = {}
    for name, member in members.items():
        translations = member.translate()
        same = sum(translations[number] == text for number, text in expected.items())
        results[name] = {
            "sentences/s": rates[name],
            "ratio to stock": rates[name] / rates[STOCK],
            "same, %": 100 * same / len(expected),
            "turns": turns[name],
        }
    return results


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Measure and report."""
    parser = cli.make_parser(__doc__)
    translation.add_arguments(parser)
    cli.add_output(parser, "ctranslate2")
    cli.add_numbers(parser, beam=5, sentences=64, longest=200, repeats=5)
    cli.add_threads(parser)
    args = parser.parse_args(arguments)
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory() as folder:
        results = measure(args, Path(folder))
    sizes = f"{args.source_lang}-{args.target_lang}, beam {args.beam}, {args.sentences} sentences "
    passes.report(args, results, COLUMNS, f"{sizes}at a time", what="translation")


if __name__ == "__main__":
    cli.run_script(main)
