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
from speed import REPOSITORY, passes
from speed.harness import in_turns
from speed.report import circumstances, heading, publish, table

COLUMNS = ("sentences/s", "ratio to stock", "same, %")
STOCK, SUITE, OTHER = "stock fairseq", "this suite", "CTranslate2"


class Fairseq:
    """A checkpoint, its task and its batches, through fairseq's own functions."""

    def __init__(self, args, checkpoint, task):
        from fairseq import checkpoint_utils, options, tasks
        from fairseq.dataclass.utils import convert_namespace_to_omegaconf

        words = f"{args.data} --path {checkpoint} --task {task} -s {args.source_lang} "
        words += (
            f"-t {args.target_lang} --beam {args.beam} --max-len-a 0 --max-len-b {args.longest}"
        )
        parsed = options.parse_args_and_arch(options.get_generation_parser(), words.split())
        cfg = convert_namespace_to_omegaconf(parsed)
        self.task = tasks.setup_task(cfg.task)
        self.models, saved = checkpoint_utils.load_model_ensemble([str(checkpoint)], task=self.task)
        for model in self.models:
            model.prepare_for_inference_(cfg)
        self.task.load_dataset(args.gen_subset, task_cfg=saved.task)
        self.generator = self.task.build_generator(self.models, cfg.generation)
        iterator = self.task.get_batch_iterator(
            self.task.dataset(args.gen_subset),
            max_sentences=args.sentences,
            required_batch_size_multiple=1,
        )
        self.batches = list(iterator.next_epoch_itr(shuffle=False))

    def translate(self):
        """{number of a sentence: its best translation}."""
        found = {}
        for batch in self.batches:
            hypotheses = self.task.inference_step(self.generator, self.models, batch)
            for number, nbest in zip(batch["id"].tolist(), hypotheses):
                found[number] = self.task.target_dictionary.string(nbest[0]["tokens"])
        return found

    def sources(self):
        """[numbers, sentences as lists of words] of each batch."""
        words = self.task.source_dictionary
        for batch in self.batches:
            rows = batch["net_input"]["src_tokens"]
            yield batch["id"].tolist(), [words.string(row[row.ne(words.pad())]) for row in rows]


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
        self.batches = [(ids, [one.split() for one in rows]) for ids, rows in sources]
        self.options = {"beam_size": args.beam, "max_decoding_length": args.longest}

    def translate(self):
        found = {}
        for numbers, rows in self.batches:
            results = self.translator.translate_batch(rows, **self.options)
            for number, result in zip(numbers, results):
                found[number] = " ".join(result.hypotheses[0])
        return found


def exported(args, folder, to):
    """The direction as `fairseq-ext export` writes it."""
    output = folder / to
    command = ["fairseq-ext", "export", args.checkpoint, "-s", args.source_lang]
    command += ["-t", args.target_lang, "--to", to, "--output", output, "--data", args.data]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise RecipeError(f"{' '.join(map(str, command))} failed: {done.stderr.strip()}")
    return output


def seconds(member):
    """(seconds, sentences) of one pass."""
    start = time.perf_counter()
    found = member.translate()
    return time.perf_counter() - start, len(found)


def measure(args, folder):
    """{system: figures}"""
    stock = Fairseq(args, exported(args, folder, "fairseq"), "translation")
    members = {
        STOCK: stock,
        SUITE: Fairseq(args, args.checkpoint, "dual_translation"),
        OTHER: CTranslate2(args, exported(args, folder, "ctranslate2"), stock.sources()),
    }
    turns = in_turns(members, seconds, args.repeats, lambda text: print(text, flush=True))
    rates = {name: 1 / statistics.median(found) for name, found in turns.items()}
    wanted = stock.translate()
    results = {}
    for name, member in members.items():
        found = member.translate()
        same = sum(found[number] == wanted[number] for number in wanted)
        results[name] = {
            "sentences/s": rates[name],
            "ratio to stock": rates[name] / rates[STOCK],
            "same, %": 100 * same / len(wanted),
            "turns": turns[name],
        }
    return results


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=Path, metavar="CHECKPOINT")
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("-s", "--source-lang", required=True)
    parser.add_argument("-t", "--target-lang", required=True)
    parser.add_argument("--gen-subset", default="test", help="(default test)")
    default = REPOSITORY / "build" / "benchmark" / "ctranslate2"
    parser.add_argument("--output", type=Path, default=default)
    passes.add_numbers(parser, beam=5, sentences=64, longest=200, threads=1, repeats=5)
    args = parser.parse_args(arguments)

    import torch
    from fairseq import utils

    torch.set_num_threads(args.threads)
    package = REPOSITORY / "fairseq_ext"
    utils.import_user_module(argparse.Namespace(user_dir=str(package)))
    with tempfile.TemporaryDirectory() as folder:
        results = measure(args, Path(folder))
    settings = {name: str(value) for name, value in vars(args).items() if name != "output"}
    record = {**circumstances("cpu"), "settings": settings, "results": results}
    lines = [[name, *(found[column] for column in COLUMNS)] for name, found in results.items()]
    text = f"{heading(record)}, {args.threads} thread(s); {args.source_lang}-{args.target_lang}, "
    text += (
        f"beam {args.beam}, {args.sentences} sentences at a time; medians of {args.repeats}.\n\n"
    )
    text += table(["translation", *COLUMNS], lines)
    print(text)
    publish(record, text, args.output)


if __name__ == "__main__":
    script(main)
