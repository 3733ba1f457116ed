#!/usr/bin/env python3
"""Word vectors of some texts, by word2vec of gensim: one more set for couples.py.

    python own_vectors.py FILE.vec TEXT [TEXT ...] [--width 100] [--skip-gram] [--epochs 20]

Needs gensim (pip install gensim). Words are what white space separates. FILE.vec is in word2vec's
text format.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools import RecipeError
from recipe_tools.cli import make_parser, script
from recipe_tools.files import lines_of, written


def main(argv=None):
    parser = make_parser(__doc__)
    parser.add_argument("file", metavar="FILE.vec", type=Path, help="file of vectors to write")
    parser.add_argument(
        "texts", metavar="TEXT", type=Path, nargs="+", help="text file with one sentence per line"
    )
    parser.add_argument(
        "--width", type=int, default=100, help="dimensions of a vector (default 100)"
    )
    parser.add_argument("--skip-gram", action="store_true", help="train skip-gram instead of CBOW")
    parser.add_argument("--epochs", type=int, default=20, help="passes over the texts (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="random seed (default 1)")
    args = parser.parse_args(argv)
    for path in args.texts:
        if not path.is_file():
            raise RecipeError(f"TEXT {path} is not a file")
    try:
        from gensim.models import Word2Vec
    except ImportError as error:
        raise RecipeError(f"{error}; pip install gensim") from error
    vectors = Word2Vec(
        [line.split() for path in args.texts for line in lines_of(path)],
        vector_size=args.width,
        sg=int(args.skip_gram),
        epochs=args.epochs,
        seed=args.seed,
        min_count=1,
        workers=1,  # more make the result differ from run to run
    ).wv
    with written(args.file) as stream:
        stream.write(f"{len(vectors.index_to_key)} {args.width}\n")
        for word in vectors.index_to_key:
            stream.write(" ".join([word, *(f"{number:.6g}" for number in vectors[word])]) + "\n")


if __name__ == "__main__":
    script(main)
