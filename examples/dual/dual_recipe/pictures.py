"""What the pictures of this recipe share: their arguments and colours."""

from pathlib import Path

from recipe_tools.cli import make_parser

COLOURS = {"stock": "C0", "dual": "C1"}


def arguments(doc, argv):
    """Return the arguments RUNS SEED ... --output FILE [--recipe NAME] [--into FILE.md]."""
    parser = make_parser(doc, "runs", "seeds", "--recipe", "--into")
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        required=True,
        help="picture to write, such as .png or .pdf",
    )
    return parser.parse_args(argv)
