"""Text classification corpora in the forms in which users have them.

Tokens are what white space separates after ``tokens``; MR and the "label TAB text" files come
tokenised and only become lower case.
"""

import gzip
import re
import tarfile
from pathlib import Path

from recipe_tools import RecipeError
from recipe_tools.files import lines_of

WORD = re.compile(r"\w+(?:'\w+)*|[^\w\s]")
SPLITS = ("train", "test")
IMDB = "aclImdb_labelled.tar.xz"
IMDB_MEMBER = re.compile(r"(?:\./)?aclImdb/(train|test)/(pos|neg)/\d+_\d+\.txt")


def tokens(text):
    """Return lower-cased words, with their apostrophes, and single marks, without line breaks."""
    return " ".join(WORD.findall(text.replace("<br />", " ").lower()))


def packed(path):
    """Return the file or its .gz. Raises RecipeError when there is neither."""
    for candidate in (path, path.with_name(path.name + ".gz")):
        if candidate.is_file():
            return candidate
    raise RecipeError(f"RAW {path.parent}: there is neither {path.name} nor {path.name}.gz")


def latin_1_lines(path):
    """Return the lines of a plain or .gz file in Latin-1, in which Pang and Lee give MR."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as stream:
        return [line.decode("latin-1") for line in stream]


def read_mr(folder):
    """Read mr.txt, a text per line, and mr.split.txt: line number, train or test, 0 or 1."""
    texts = latin_1_lines(packed(folder / "mr.txt"))
    path, pairs = packed(folder / "mr.split.txt"), {split: [] for split in SPLITS}
    for number, line in enumerate(lines_of(path), 1):
        fields = line.split("\t")
        good = len(fields) == 3 and fields[0].isdigit() and int(fields[0]) < len(texts)
        if not good or fields[1] not in pairs or fields[2] not in ("0", "1"):
            raise RecipeError(f"{path}, line {number}: not NUMBER train|test 0|1: {line!r}")
        text = " ".join(texts[int(fields[0])].lower().split())
        pairs[fields[1]].append((text, ("neg", "pos")[int(fields[2])]))
    return pairs


def read_tab(folder):
    """Read train.txt and test.txt of lines "label TAB text": R8, R52, 20NG and Ohsumed."""
    pairs = {}
    for split in SPLITS:
        path, pairs[split] = packed(folder / f"{split}.txt"), []
        for number, line in enumerate(lines_of(path), 1):
            label, _, text = line.partition("\t")  # a label alone is that of an empty text
            if not label or " " in label:
                raise RecipeError(f"{path}, line {number}: not LABEL TAB TEXT: {line[:60]!r}")
            pairs[split].append((" ".join(text.lower().split()), label))
    return pairs


def read_imdb(folder):
    """Read aclImdb_labelled.tar.xz, or a folder aclImdb: {train,test}/{pos,neg}/*.txt."""
    pairs = {split: [] for split in SPLITS}
    if (folder / "aclImdb").is_dir():
        for split in SPLITS:
            for label in ("neg", "pos"):
                for path in sorted((folder / "aclImdb" / split / label).glob("*.txt")):
                    pairs[split].append((tokens(path.read_text(encoding="utf-8")), label))
        return pairs
    if not (folder / IMDB).is_file():
        raise RecipeError(f"RAW {folder}: there is neither a folder aclImdb nor {IMDB}")
    with tarfile.open(folder / IMDB) as archive:
        members = ((entry, IMDB_MEMBER.fullmatch(entry.name)) for entry in archive)
        for member, match in members:
            if match:
                text = archive.extractfile(member).read().decode("utf-8")
                pairs[match[1]].append((tokens(text), match[2]))
    return pairs


READERS = {"mr": read_mr, "r8": read_tab, "imdb": read_imdb, "tab": read_tab}


def read(corpus, folder):
    """Return {"train": [(text, label)], "test": ...}; texts without a word are left out.

    Raises RecipeError, with file and line, for what is not in the corpus's form.
    """
    pairs_by_split = READERS[corpus](Path(folder))
    pairs_by_split = {
        split: [pair for pair in pairs if pair[0]] for split, pairs in pairs_by_split.items()
    }
    for split, pairs in pairs_by_split.items():
        if not pairs:
            raise RecipeError(f"RAW {folder}: no {split} texts in the format of {corpus}")
    return pairs_by_split
