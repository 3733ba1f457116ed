"""Train word vectors on texts with word2vec of gensim (pip install gensim).

Words are what white space separates. The file is in word2vec's text format.
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Iterator

from fairseq_ext.tools import UsageError

from .files import check_outputs, lines_of, write_lines


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("texts", metavar="TEXT", nargs="+", type=Path, help="a sentence a line")
    parser.add_argument("--width", type=int, default=100, help="numbers of a vector (default 100)")
    parser.add_argument("--skip-gram", action="store_true", help="skip-gram instead of CBOW")
    parser.add_argument("--epochs", type=int, default=20, help="passes over the texts (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="random seed (default 1)")
    parser.add_argument("--output", metavar="FILE", type=Path, required=True)


def run(args: Namespace) -> None:
    """Write the file of vectors. Raises UsageError without gensim."""
    check_outputs([args.output], args.texts)
    try:
        from gensim.models import Word2Vec
    except ImportError as error:
        raise UsageError(f"{error}; pip install gensim") from error
    vectors = Word2Vec(
        [line.split() for path in args.texts for line in lines_of(path)],
        vector_size=args.width,
        sg=int(args.skip_gram),
        epochs=args.epochs,
        seed=args.seed,
        min_count=1,
        workers=1,  # more make the result differ from run to run
    ).wv

    def lines() -> Iterator[str]:
        yield f"{len(vectors.index_to_key)} {args.width}"
        for word in vectors.index_to_key:
            yield " ".join([word, *(f"{number:.6g}" for number in vectors[word])])

    write_lines(args.output, lines())
