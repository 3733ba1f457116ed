"""Label test texts by TF-IDF and logistic regression of scikit-learn (pip install scikit-learn).

Trained on the training texts, without the validation set: single words, scikit-learn's defaults
otherwise (rows of length 1, C = 1). The reference of the Duo paper's Table 1.
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from fairseq_ext.tools import UsageError

from .files import check_outputs, lines_of, write_lines


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "texts", metavar="FOLDER", type=Path, help="with train.text, train.label and test.text"
    )
    parser.add_argument("--output", metavar="FILE", type=Path, required=True, help="a label a line")


def run(args: Namespace) -> None:
    """Write the labels. Raises UsageError without scikit-learn."""
    inputs = [args.texts / name for name in ("train.text", "train.label", "test.text")]
    check_outputs([args.output], inputs)
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise UsageError(f"{error}; pip install scikit-learn") from error
    texts, labels, tests = (list(lines_of(path)) for path in inputs)
    words = TfidfVectorizer(token_pattern=r"\S+", lowercase=False)
    model = LogisticRegression(max_iter=1000).fit(words.fit_transform(texts), labels)
    write_lines(args.output, model.predict(words.transform(tests)))
