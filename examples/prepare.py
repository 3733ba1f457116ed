#!/usr/bin/env python3
"""Make raw data into text that fairseq-preprocess reads.

python examples/prepare.py COMMAND --help
"""

import importlib
import sys
from argparse import ArgumentParser, Namespace

from fairseq_ext.tools import UsageError

# each is a module of corpora/, with - for _
COMMANDS = {
    "annotated": "linearise entities, trees or graphs",
    "captions": "make strips of digits, with captions",
    "spoken-digits": "make strings of spoken digits",
    "monolingual": "copy text of one language",
    "draw": "draw lines of aligned texts",
    "reviews": "tokenise film reviews",
    "parallel": "copy text that is aligned line by line",
    "tab-separated": "divide sentence pairs of a tab-separated file",
    "divide": "divide text in several languages among their pairs",
    "recipe": "write the experiment of your own pairs and text",
    "labelled": "copy texts with labels and draw a validation set",
    "word-vectors": "train word vectors with word2vec",
    "tfidf": "label texts by TF-IDF and logistic regression",
    "learn-subwords": "learn a subword model",
    "apply-subwords": "spell text in subwords",
}


def arguments(words: list[str]) -> Namespace:
    """Return the arguments of the command line; `run` is the function of the command."""
    parser = ArgumentParser(prog="prepare.py", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, help_text in COMMANDS.items():
        module = importlib.import_module(f"corpora.{name.replace('-', '_')}")
        command = commands.add_parser(name, help=help_text, description=help_text)
        command.set_defaults(run=module.run)
        module.add_arguments(command)
    return parser.parse_args(words)


def main(words: list[str]) -> None:
    """Run a command; show a problem that the user can solve without a traceback."""
    args = arguments(words)
    try:
        args.run(args)
    except UsageError as error:
        sys.exit(f"prepare.py {args.command}: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
