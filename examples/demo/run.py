#!/usr/bin/env python3
"""The demo: one small model that translates English to German and German to English.

    python examples/demo/run.py [--work build/demo]

Makes a corpus, prepares it, trains ``dual_transformer_tiny``, translates unseen sentences both
ways with the one checkpoint, scores them, draws the training curves and packs the model.  What is
finished stays in the --work folder: after an interruption the same command goes on from there.
The last line is ``demo: OK en-de=NN.N de-en=NN.N``, or ``demo: FAILED ...`` with a non-zero exit
status.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Callable, Dict, List, Sequence, Tuple, Union

import corpus
from demo_grammar.lexicon import AMBIGUOUS_NOUNS, AMBIGUOUS_VERBS, Noun, Verb
from demo_progress import Describe, StepFailed, TrainingStatus, duration, run_command
from demo_scoring import Score, read_hypotheses, score, verdict

REPOSITORY = Path(__file__).resolve().parents[2]
LANGS = ("en", "de")
PAIRS = ("en-de", "de-en")
MARKER = "fairseq-ext-demo"
# as the reader sees them in the printed commands
USER_DIR = os.path.relpath(REPOSITORY / "fairseq_ext")
DEFAULT_WORK = Path(os.path.relpath(REPOSITORY / "build" / "demo"))
# glibc gives large buffers back to the kernel at every free unless told otherwise, which costs
# about a third of the time of training on CPU
ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": "8589934592",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "268435456",
}


class Demo:
    """The steps; each reads what the ones before it left in the work folder."""

    def __init__(self, args: argparse.Namespace):
        self.args, self.work = args, args.work
        self.text, self.binary = self.work / "text", self.work / "bin"
        self.model = self.work / "sentencepiece.model"
        self.checkpoints, self.logs = self.work / "checkpoints", self.work / "logs"
        self.curves, self.packed = self.work / "curves.png", self.work / "model"

    def steps(self) -> List[Tuple[str, Callable[[], None], Dict[str, object]]]:
        """Return (name, function, options that its result depends on) of each step, in order."""
        args = self.args
        sizes = {split: getattr(args, split) for split in corpus.SPLITS}
        return [
            ("corpus", self.make_corpus, {**sizes, "corpus_seed": args.corpus_seed}),
            ("prepare", self.prepare, {"vocabulary": args.vocabulary}),
            ("train", self.train, {"updates": args.updates, "seed": args.seed}),
            ("translate", self.translate, {}),
            ("curves", self.plot, {}),
            ("pack", self.pack, {}),
        ]

    def fairseq(
        self, step: str, command: List[object], describe: Describe = lambda line: None
    ) -> None:
        """Run a command of this project or of fairseq, as the user would."""
        words = [str(word) for word in command]
        print(f"  $ {shlex.join(words)}")
        if words[0] != "fairseq-ext":
            words = ["fairseq-ext", "run", *words]
        # the module behind the fairseq-ext command, with this Python, installed or not
        program = [sys.executable, "-W", "ignore", "-m", "_fairseq_ext_cli", *words[1:]]
        path = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH"))))
        env = {**ALLOCATOR, **os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
        env["OMP_NUM_THREADS"] = str(self.args.threads)
        run_command(step, program, self.logs / f"{step}.log", env, describe)

    def make_corpus(self) -> None:
        """Write the raw sentences text/{train,valid,test}.{en,de}."""
        args = self.args
        sizes = {split: getattr(args, split) for split in corpus.SPLITS}
        corpus.write_corpus(self.text, LANGS, sizes, args.corpus_seed)
        for lang in LANGS:
            print(f"  {lang}  {self.lines('train', lang)[0]}")

    def lines(self, split: str, lang: str) -> List[str]:
        """Return the raw sentences of one file of the corpus."""
        return (self.text / f"{split}.{lang}").read_text(encoding="utf-8").splitlines()

    def prepare(self) -> None:
        """Split words into pieces with one vocabulary for both languages, then binarise."""
        import sentencepiece

        sentences = [line for lang in LANGS for line in self.lines("train", lang)]
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_prefix=str(self.model.with_suffix("")),
            model_type="bpe",
            vocab_size=self.args.vocabulary,
            character_coverage=1.0,
            num_threads=1,
            minloglevel=2,
        )
        processor = sentencepiece.SentencePieceProcessor(model_file=str(self.model))
        pieces = self.work / "pieces"
        pieces.mkdir(exist_ok=True)
        for split in corpus.SPLITS:
            for lang in LANGS:
                rows = processor.encode(self.lines(split, lang), out_type=str)
                text = "".join(" ".join(row) + "\n" for row in rows)
                (pieces / f"{split}.{lang}").write_text(text, encoding="utf-8")
        shutil.rmtree(self.binary, ignore_errors=True)
        command = ["fairseq-preprocess", "-s", LANGS[0], "-t", LANGS[1], "--joined-dictionary"]
        for split in corpus.SPLITS:
            command += [f"--{split}pref", pieces / split]
        self.fairseq("prepare", [*command, "--destdir", self.binary])

    def task(self, source: str, target: str) -> List[object]:
        """Return the options that training and translation share."""
        task = ["--user-dir", USER_DIR, "--task", "dual_translation"]
        return [self.binary, *task, "-s", source, "-t", target]

    def train(self) -> None:
        """Train both directions in one model, from the last checkpoint if there is one."""
        updates = self.args.updates
        command = ["fairseq-train", *self.task(*LANGS), "--arch", "dual_transformer_tiny"]
        command += ["--embed-dim", 128, "--ffn-embed-dim", 256, "--share-all-embeddings"]
        command += ["--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1]
        command += ["--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--clip-norm", 1.0]
        command += ["--lr", 0.004, "--lr-scheduler", "polynomial_decay", "--warmup-updates", 150]
        command += ["--total-num-update", updates, "--max-update", updates, "--max-tokens", 1024]
        command += ["--eval-bleu", "--eval-bleu-args", '{"beam": 1}']
        command += ["--eval-bleu-remove-bpe", "sentencepiece", "--save-dir", self.checkpoints]
        command += ["--save-interval-updates", 200, "--keep-interval-updates", 1]
        command += ["--no-epoch-checkpoints", "--log-format", "json", "--log-interval", 10]
        command += ["--log-file", self.work / "train.log", "--seed", self.args.seed]
        command += ["--num-workers", 0, "--distributed-world-size", 1]
        self.fairseq("train", command, TrainingStatus(updates, list(PAIRS)))

    def discard_training(self) -> None:
        """Remove the checkpoints of a training with other options."""
        shutil.rmtree(self.checkpoints, ignore_errors=True)
        (self.work / "train.log").unlink(missing_ok=True)

    def translate(self) -> None:
        """Translate the test sentences in both directions with the same checkpoint and data."""
        for pair in PAIRS:
            source, target = pair.split("-")
            command = ["fairseq-generate", *self.task(source, target), "--gen-subset", "test"]
            command += ["--path", self.checkpoints / "checkpoint_best.pt", "--beam", 4]
            command += ["--max-tokens", 4000, "--remove-bpe", "sentencepiece"]
            command += ["--distributed-world-size", 1]
            name = f"translate.{pair}"
            self.fairseq(name, command)
            output = (self.logs / f"{name}.log").read_text(encoding="utf-8")
            hypotheses = read_hypotheses(output, len(self.lines("test", target)))
            text = "".join(line + "\n" for line in hypotheses)
            self.hypotheses(pair).write_text(text, encoding="utf-8")

    def hypotheses(self, pair: str) -> Path:
        """Return the file of translations of the test set."""
        return self.work / f"test.{pair}.txt"

    def plot(self) -> None:
        """Draw loss and BLEU of both directions."""
        command = ["fairseq-ext", "plot", self.work / "train.log", "--output", self.curves]
        command += ["--metric", "loss", "bleu", "--per-pair", "--tsv"]
        self.fairseq("curves", [*command, "--title", "dual_transformer_tiny"])

    def pack(self) -> None:
        """Put what translating needs into one folder, which fairseq-ext serve reads."""
        command = ["fairseq-ext", "pack", self.checkpoints / "checkpoint_best.pt", self.binary]
        command += ["--subwords", self.model, "--output", self.packed, "--force"]
        self.fairseq("pack", command)

    def scores(self) -> Dict[str, Score]:
        """Return the scores of each direction."""
        return {
            pair: score(
                self.hypotheses(pair).read_text(encoding="utf-8").splitlines(),
                self.lines("test", pair.split("-")[1]),
            )
            for pair in PAIRS
        }

    def print_samples(self) -> None:
        """Print a few test sentences, those with ambiguous words first."""
        for number in choose_samples(self.lines("test", "en"), self.lines("test", "de")):
            for pair in PAIRS:
                source, target = pair.split("-")
                output = self.hypotheses(pair).read_text(encoding="utf-8").splitlines()[number]
                reference = self.lines("test", target)[number]
                print(f"  {source}  {self.lines('test', source)[number]}")
                print(f"   -> {target}  {output}")
                if output != reference:
                    print(f"      (expected: {reference})")
            print()


def choose_samples(english: Sequence[str], german: Sequence[str], count: int = 4) -> List[int]:
    """Return the numbers of sentences with different ambiguous words, then the first ones."""
    senses: List[Union[Noun, Verb]] = [*AMBIGUOUS_NOUNS, *AMBIGUOUS_VERBS]
    words = sorted({sense.en[0] for sense in senses} | {sense.de[0] for sense in senses})
    chosen: List[int] = []
    for word in ("bank", "letter", "Schloss", "tragen", *words):
        for number, texts in enumerate(zip(english, german)):
            if number not in chosen and word in re.findall(r"\w+", " ".join(texts)):
                chosen.append(number)
                break
        if len(chosen) == count:
            return chosen
    rest = (number for number in range(len(english)) if number not in chosen)
    return [*chosen, *rest][:count]


def open_work_folder(folder: Path) -> None:
    """Make the work folder, or check that the demo made it.

    :raises StepFailed: for a folder with other things in it, since steps delete old results, and
        for a name that is several paths to fairseq
    """
    marker = folder / MARKER
    for sign in ":,":
        if sign in str(folder):
            raise StepFailed(f"--work {folder}: fairseq takes a path with {sign!r} for several")
    if folder.exists() and not folder.is_dir():
        raise StepFailed(f"--work {folder} is not a folder")
    if folder.is_dir() and any(folder.iterdir()) and not marker.exists():
        raise StepFailed(f"--work {folder} holds other files; give an empty or a new folder")
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    (folder / "done").mkdir(exist_ok=True)
    marker.write_text("work folder of examples/demo/run.py\n", encoding="utf-8")


def run_steps(demo: Demo) -> None:
    """Run the steps that are not done yet, or were done with other options."""
    settings: Dict[str, object] = {}
    steps = demo.steps()
    current = True
    for number, (name, function, options) in enumerate(steps, start=1):
        settings.update(options)
        stamp = demo.work / "done" / f"{name}.json"
        text = json.dumps(settings, sort_keys=True)
        current = current and stamp.exists() and stamp.read_text(encoding="utf-8") == text
        print(f"[{number}/{len(steps)}] {name}{': done before' if current else ''}", flush=True)
        if current:
            continue
        stamp.unlink(missing_ok=True)
        if name == "train":
            begin_training(demo, text)
        start = time.monotonic()
        function()
        partial = stamp.with_suffix(".partial")
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, stamp)
        print(f"  {name} took {duration(time.monotonic() - start)}", flush=True)


def begin_training(demo: Demo, settings: str) -> None:
    """Keep the checkpoints of an interrupted training only if its settings were the same."""
    begun = demo.work / "done" / "train.begun"
    if not begun.exists() or begun.read_text(encoding="utf-8") != settings:
        demo.discard_training()
        begun.write_text(settings, encoding="utf-8")


def report(demo: Demo) -> int:
    """Print samples, scores, where the files are, and the verdict; returns the exit status."""
    print("\nUnseen sentences, translated both ways by the same checkpoint:\n")
    demo.print_samples()
    scores = demo.scores()
    for pair, value in scores.items():
        print(f"{pair}  BLEU {value.bleu:.2f}  {value.bleu_signature}")
        print(f"       chrF {value.chrf:.2f}  {value.chrf_signature}")
    print(f"checkpoint       {demo.checkpoints / 'checkpoint_best.pt'}")
    print(f"training curves  {demo.curves}")
    print("your own sentences, typed or from a file:")
    direction = ["--direction", "-".join(LANGS)]
    print(f"  {shlex.join(['fairseq-ext', 'translate', str(demo.packed), *direction])}")
    print("the same with fairseq's own command:")
    words = ["fairseq-interactive", *demo.task(*LANGS), "--bpe", "sentencepiece"]
    words += ["--sentencepiece-model", demo.model]
    words += ["--path", demo.checkpoints / "checkpoint_best.pt"]
    print(f"  {shlex.join(map(str, words))}")
    print("a page that shows what the model does:")
    print(f"  {shlex.join(['fairseq-ext', 'serve', str(demo.packed)])}")
    line, status = verdict({pair: value.bleu for pair, value in scores.items()}, demo.args.required)
    print(line)
    return status


def positive(text: str) -> int:
    """Return a whole number of at least 1, the type of an option."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: allowed: a whole number of at least 1")
    return value


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    # not the number of cores: the model is so small that threads mostly wait for each other, and
    # beside another busy process two of them were five times slower than one
    threads = int(os.environ.get("OMP_NUM_THREADS") or 1)
    add = options.add_argument
    add("--work", type=Path, default=DEFAULT_WORK, help="folder for the results")
    add("--train", type=positive, default=20000, help="number of training sentences")
    add("--valid", type=positive, default=200, help="number of validation sentences")
    add("--test", type=positive, default=500, help="number of test sentences")
    add(
        "--vocabulary",
        type=positive,
        default=1000,
        help="vocabulary size of the sentencepiece model",
    )
    add("--updates", type=positive, default=1000, help="number of training updates")
    add("--corpus-seed", type=int, default=1, help="seed that draws the sentences")
    add("--seed", type=positive, default=1, help="seed of the training")
    add("--threads", type=positive, default=threads, help="number of threads")
    add("--required", type=float, default=90.0, help="minimum BLEU of both directions")
    return options


def main(argv: Sequence[str]) -> int:
    """Run the demo; returns the exit status."""
    args = parser().parse_args(argv)
    demo = Demo(args)
    try:
        open_work_folder(args.work)
        run_steps(demo)
        return report(demo)
    except (StepFailed, ValueError, OSError) as error:
        print(f"demo: FAILED {error}")
        return 1
    except KeyboardInterrupt:
        print("\ndemo: interrupted; the same command goes on from here")
        return 130


def stop(number: int, frame: object) -> None:
    """End the demo on SIGTERM as on Ctrl-C, so that the running command ends too."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    sys.exit(main(sys.argv[1:]))
