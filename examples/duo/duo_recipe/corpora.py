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
    """Lower-cased words, with their apostrophes, and single marks; HTML line breaks are spaces."""
    return " ".join(WORD.findall(text.replace("<br />", " ").lower()))


def packed(path):
    """The file or its .gz. Raises RecipeError when there is neither."""
    for found in (path, path.with_name(path.name + ".gz")):
        if found.is_file():
            return found
    raise RecipeError(f"RAW {path.parent}: there is neither {path.name} nor {path.name}.gz")


def latin_1_lines(path):
    """The lines of a plain or .gz file in Latin-1, in which Pang and Lee give MR."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as stream:
        return [line.decode("latin-1") for line in stream]


def read_mr(folder):
    """mr.txt, a text per line, and mr.split.txt: number of the line, train or test, 0 or 1."""
    texts = latin_1_lines(packed(folder / "mr.txt"))
    path, found = packed(folder / "mr.split.txt"), {split: [] for split in SPLITS}
    for number, line in enumerate(lines_of(path), 1):
        fields = line.split("\t")
        good = len(fields) == 3 and fields[0].isdigit() and int(fields[0]) < len(texts)
        if not good or fields[1] not in found or fields[2] not in ("0", "1"):
            raise RecipeError(f"{path}, line {number}: not NUMBER train|test 0|1: {line!r}")
        text = " ".join(texts[int(fields[0])].lower().split())
        found[fields[1]].append((text, ("neg", "pos")[int(fields[2])]))
    return found


def read_tab(folder):
    """train.txt and test.txt of lines "label TAB text": R8, R52, 20NG and Ohsumed."""
    found = {}
    for split in SPLITS:
        path, found[split] = packed(folder / f"{split}.txt"), []
        for number, line in enumerate(lines_of(path), 1):
            label, _, text = line.partition("\t")  # a label alone is that of an empty text
            if not label or " " in label:
                raise RecipeError(f"{path}, line {number}: not LABEL TAB TEXT: {line[:60]!r}")
            found[split].append((" ".join(text.lower().split()), label))
    return found


def read_imdb(folder):
    """aclImdb_labelled.tar.xz, or a folder aclImdb: {train,test}/{pos,neg}/*.txt."""
    found = {split: [] for split in SPLITS}
    if (folder / "aclImdb").is_dir():
        for split in SPLITS:
            for label in ("neg", "pos"):
                for path in sorted((folder / "aclImdb" / split / label).glob("*.txt")):
                    found[split].append((tokens(path.read_text(encoding="utf-8")), label))
        return found
    if not (folder / IMDB).is_file():
        raise RecipeError(f"RAW {folder}: there is neither a folder aclImdb nor {IMDB}")
    with tarfile.open(folder / IMDB) as archive:
        members = ((one, IMDB_MEMBER.fullmatch(one.name)) for one in archive)
        for member, match in members:
            if match:
                text = archive.extractfile(member).read().decode("utf-8")
                found[match[1]].append((tokens(text), match[2]))
    return found


READERS = {"mr": read_mr, "r8": read_tab, "imdb": read_imdb, "tab": read_tab}


def read(corpus, folder):
    """{"train": [(text, label)], "test": ...}; texts without a word are left out.

    Raises RecipeError, with file and line, for what is not in the corpus's form.
    """
    found = READERS[corpus](Path(folder))
    found = {split: [pair for pair in pairs if pair[0]] for split, pairs in found.items()}
    for split, pairs in found.items():
        if not pairs:
            raise RecipeError(f"RAW {folder}: no {split} texts in the form of {corpus}")
    return found
