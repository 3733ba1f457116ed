#!/usr/bin/env python3
"""A text classification corpus -> texts and labels, a validation set, binarised data.

    python prepare.py CORPUS RAW DATA [--seed 1] [--vocabulary train] [--words N]

CORPUS: mr, r8, imdb, or tab for any other train.txt and test.txt with lines "label TAB text" (R52,
20NG, Ohsumed). A tenth of the training texts, drawn with the seed, becomes the validation set.
--vocabulary all: also words of validation and test texts are in the dictionary, so that they have
their pre-trained vectors instead of that of <unk>; their vectors are not trained, and no label is
looked at. --words: only the N most frequent words, for large corpora; the others are <unk>. DATA is
made whole or not at all:
    text/{train,valid,test}.{text,label}      bin/ for fairseq-train      prepared.json
"""

import collections
import random
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from duo_recipe.corpora import READERS, read
from recipe_tools.cli import make_parser, script
from recipe_tools.commands import execute, preprocess_command
from recipe_tools.corpus import make_folder
from recipe_tools.files import digest, written

VALIDATION = 10  # one text of so many


def arguments(argv):
    parser = make_parser(__doc__, "--workers", "--force")
    parser.add_argument(
        "corpus", metavar="CORPUS", choices=sorted(READERS), help="name of the corpus"
    )
    parser.add_argument("raw", metavar="RAW", type=Path, help="folder with the files of the corpus")
    parser.add_argument("data", metavar="DATA", type=Path, help="folder to write")
    parser.add_argument(
        "--seed", type=int, default=1, help="seed that draws the validation set (default 1)"
    )
    parser.add_argument(
        "--vocabulary",
        choices=["train", "all"],
        default="train",
        help="texts whose words form the dictionary (default train)",
    )
    parser.add_argument(
        "--words", type=int, default=0, help="number of most frequent words to keep; 0 = all"
    )
    return parser.parse_args(argv)


def with_validation(splits, seed):
    """Return {"train", "valid", "test"}: a tenth of the shuffled training texts is for valid."""
    train = list(splits["train"])
    random.Random(seed).shuffle(train)
    size = max(1, len(train) // VALIDATION)
    return {"train": train[size:], "valid": train[:size], "test": splits["test"]}


def write_dictionary(splits, path, size):
    """Write words and counts in fairseq's format, most frequent first; size: 0 = all words."""
    words = collections.Counter(
        word for pairs in splits.values() for text, _ in pairs for word in text.split()
    )
    order = sorted(words.items(), key=lambda entry: (-entry[1], entry[0]))
    with written(path) as stream:
        for word, count in order[: size or None]:
            stream.write(f"{word} {count}\n")


def main(argv=None):
    args = arguments(argv)
    files = sorted(path for path in args.raw.glob("*") if path.is_file())
    description = {
        "corpus": args.corpus,
        "seed": args.seed,
        "vocabulary": args.vocabulary,
        "words": args.words,
        "inputs": {path.name: digest(path) for path in files},
    }

    def build(folder):
        splits = with_validation(read(args.corpus, args.raw), args.seed)
        texts = folder / "text"
        texts.mkdir()
        for split, pairs in splits.items():
            for ending, lines in zip(("text", "label"), zip(*pairs)):
                with written(texts / f"{split}.{ending}") as stream:
                    stream.writelines(line + "\n" for line in lines)
        command = preprocess_command("text-label", splits, texts, folder / "bin", args.workers)
        if args.words or args.vocabulary == "all":
            counted = splits if args.vocabulary == "all" else {"train": splits["train"]}
            write_dictionary(counted, folder / "dict.text.txt", args.words)
            command += ["--srcdict", folder / "dict.text.txt"]
        execute(command, folder / "preprocess.log")
        return {split: len(pairs) for split, pairs in splits.items()}

    counts = make_folder(args.data, description, args.force, build)
    if counts:
        print(", ".join(f"{count} {split}" for split, count in counts.items()))


if __name__ == "__main__":
    script(main)
