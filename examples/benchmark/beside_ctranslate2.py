"""Translation by a trained dual model: this suite, stock fairseq and CTranslate2 in one run.

    python examples/benchmark/beside_ctranslate2.py CHECKPOINT DATA -s de -t en

CHECKPOINT: of dual_translation; DATA: its binarised data. The direction is exported for the other
two, and all translate the same batches of --gen-subset, taking turns; each figure is the median
over the turns. Search is fairseq's with its default length penalty, in single precision on the CPU.
"Same" is the share of best translations that are those of stock fairseq. Writes OUTPUT.json and
OUTPUT.md.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools import RecipeError
from recipe_tools.cli import script
from speed import REPOSITORY, passes, translation
from speed.harness import in_turns
from speed.translation import Translator

COLUMNS = ("sentences/s", "ratio to stock", "same, %")
STOCK, SUITE, OTHER = "stock fairseq", "this suite", "CTranslate2"


class CTranslate2:
    """The exported direction in a folder of CTranslate2."""

    def __init__(self, args, folder, sources):
        try:
            import ctranslate2
        except ImportError as error:
            raise RecipeError(
                f"CTranslate2 is needed: pip install ctranslate2 ({error})"
            ) from error
        self.translator = ctranslate2.Translator(
            str(folder), device="cpu", compute_type="float32", intra_threads=args.threads
        )
        self.batches = [(ids, [sentence.split() for sentence in rows]) for ids, rows in sources]
        self.options = {"beam_size": args.beam, "max_decoding_length": args.longest}

    def translate(self):
        translations = {}
        for numbers, rows in self.batches:
            results = self.translator.translate_batch(rows, **self.options)
            for number, result in zip(numbers, results):
                translations[number] = " ".join(result.hypotheses[0])
        return translations


def exported(args, folder, to):
    """Export the direction with `fairseq-ext export` and return its folder."""
    output = folder / to
    command = ["fairseq-ext", "export", args.checkpoint, "-s", args.source_lang]
    command += ["-t", args.target_lang, "--to", to, "--output", output, "--data", args.data]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise RecipeError(f"{' '.join(map(str, command))} failed: {done.stderr.strip()}")
    return output


def seconds(member):
    """Return (seconds, sentences) of one pass."""
    start = time.perf_counter()
    translations = member.translate()
    return time.perf_counter() - start, len(translations)


def measure(args, folder):
    """Return {system: figures}."""
    stock = Translator(args, exported(args, folder, "fairseq"), "translation", args.sentences)
    members = {
        STOCK: stock,
        SUITE: Translator(args, args.checkpoint, "dual_translation", args.sentences),
        OTHER: CTranslate2(args, exported(args, folder, "ctranslate2"), stock.sources()),
    }
    turns = in_turns(members, seconds, args.repeats, lambda text: print(text, flush=True))
    rates = {
        name: 1 / statistics.median(seconds_per_sentence)
        for name, seconds_per_sentence in turns.items()
    }
    stock_translations = stock.translate()
    results = {}
    for name, member in members.items():
        translations = member.translate()
        same = sum(
            translations[number] == stock_translations[number] for number in stock_translations
        )
        results[name] = {
            "sentences/s": rates[name],
            "ratio to stock": rates[name] / rates[STOCK],
            "same, %": 100 * same / len(stock_translations),
            "turns": turns[name],
        }
    return results


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    translation.add_arguments(parser)
    default = REPOSITORY / "build" / "benchmark" / "ctranslate2"
    parser.add_argument("--output", type=Path, default=default, help="name of the output files")
    passes.add_numbers(parser, beam=5, sentences=64, longest=200, threads=1, repeats=5)
    args = parser.parse_args(arguments)
    translation.set_up(args.threads)
    with tempfile.TemporaryDirectory() as folder:
        results = measure(args, Path(folder))
    sizes = f"{args.source_lang}-{args.target_lang}, beam {args.beam}, {args.sentences} sentences "
    passes.report(args, results, COLUMNS, f"{sizes}at a time", what="translation")


if __name__ == "__main__":
    script(main)
