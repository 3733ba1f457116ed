#!/usr/bin/env python3
"""TF-IDF and logistic regression on a prepared corpus: the reference of the paper's Table 1.

    python tfidf.py DATA RUNS

Needs scikit-learn (pip install scikit-learn). Trained on the training texts, without the validation
set: single words, scikit-learn's defaults otherwise (rows of length 1, C = 1). Writes
RUNS/tfidf.json.
"""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recipe_tools import RecipeError
from recipe_tools.cli import make_parser, script
from recipe_tools.files import lines_of, written


def read(data, split):
    """Return (texts, labels)."""
    return tuple(list(lines_of(data / "text" / f"{split}.{kind}")) for kind in ("text", "label"))


def main(argv=None):
    args = make_parser(__doc__, "data", "runs").parse_args(argv)
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.metrics import f1_score
    except ImportError as error:
        raise RecipeError(f"{error}; pip install scikit-learn") from error
    (texts, labels), (test_texts, test_labels) = (
        read(args.data, split) for split in ("train", "test")
    )
    words = TfidfVectorizer(token_pattern=r"\S+", lowercase=False)
    model = LogisticRegression(max_iter=1000).fit(words.fit_transform(texts), labels)
    predicted = model.predict(words.transform(test_texts))
    right = sum(label == reference for label, reference in zip(predicted, test_labels))
    macro = f1_score(test_labels, predicted, average="macro")
    scores = {"accuracy": 100 * right / len(test_labels), "macro_f1": 100 * float(macro)}
    args.runs.mkdir(parents=True, exist_ok=True)
    with written(args.runs / "tfidf.json") as stream:
        json.dump(scores, stream, indent=1)
    print("  ".join(f"{name} {value:.2f}" for name, value in scores.items()))


if __name__ == "__main__":
    script(main)
