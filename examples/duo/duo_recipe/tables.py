"""Tables of test accuracies: couples as in Tables 2 - 4, methods, the paper's figures."""

import itertools
import statistics

from recipe_tools.tables import rows

NOTHING = "-"
# Tables 1 and 4: TF-IDF with logistic regression, the best couple, the best single set
PAPER = {"mr": ("74.59", "81.02", "80.33"), "r8": ("93.74", "97.02", NOTHING)}
COLUMNS = ("single", "average", "concatenation", "duo")


def cell(results, key="accuracy"):
    """Return mean and standard deviation over the seeds."""
    if not results:
        return NOTHING
    values = [result[key] for result in results]
    deviation = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{deviation}"


def set_names(by_method):
    """Return all sets of word vectors, in alphabetical order."""
    return sorted({name for by_sets in by_method.values() for sets in by_sets for name in sets})


def of(by_method, method, sets):
    """Return the results of a method; the sets may come in any order."""
    by_sets = by_method.get(method, {})
    return by_sets.get(sets) or by_sets.get(sets[::-1])


def couple_table(by_method):
    """Return the upper half of the table of couples; on the diagonal stands each set alone."""
    names, body = set_names(by_method), []
    for row, first in enumerate(names):
        cells = [NOTHING] * row + [cell(of(by_method, "single", (first,)))]
        cells += [cell(of(by_method, "duo", (first, second))) for second in names[row + 1 :]]
        body.append([first, *cells])
    return rows(["test accuracy", *names], body)


def method_table(by_method):
    """Return a line for each couple: the better set alone, and each combination of both."""
    body = []
    for couple in itertools.combinations(set_names(by_method), 2):
        alone = [
            set_results
            for set_results in (of(by_method, "single", (name,)) for name in couple)
            if set_results
        ]
        better = max(alone, key=lambda many: mean(many, "valid_accuracy"), default=None)
        cells = [cell(better), *(cell(of(by_method, method, couple)) for method in COLUMNS[1:])]
        body.append([" + ".join(couple), *cells])
    header = ["test accuracy", "better set alone", *COLUMNS[1:]]
    return rows(header, body) if body else None


def mean(results, key):
    return statistics.mean(result[key] for result in results)


def best(by_method, method):
    """Return (sets, results) with the best mean validation accuracy, or None."""
    many = by_method.get(method, {}).items()
    return max(many, key=lambda item: mean(item[1], "valid_accuracy"), default=None)


def paper_table(corpus, by_method, tfidf):
    """Return the scores beside the paper's; the sets are chosen on the validation set."""
    here = [[f"{tfidf['accuracy']:.2f}" if tfidf else NOTHING, ""]]
    for method in ("duo", "single"):
        sets, results = best(by_method, method) or ((), None)
        here.append([cell(results), " + ".join(sets)])
    lines = ("TF-IDF, logistic regression", "duo, best couple", "best set alone")
    paper = PAPER.get(corpus, (NOTHING,) * len(lines))
    body = [[line, *cells, figure] for line, cells, figure in zip(lines, here, paper)]
    return rows(["test accuracy", "here", "sets", "paper, GloVe and others"], body)


def cost_line(by_method):
    """Return a sentence on how long the runs took."""
    duo = [run for results in by_method.get("duo", by_method["single"]).values() for run in results]
    everything = [
        run for many in by_method.values() for results in many.values() for run in results
    ]
    seconds = sum(run["seconds"] for run in everything)
    return (
        "Duo trains on "
        f"{statistics.median(run['documents_per_second'] for run in duo):,.0f} documents/s for "
        f"{statistics.median(run['epochs'] for run in duo):.0f} epochs (medians over runs). All "
        f"{len(everything)} runs took {seconds / 60:.0f} minutes of training."
    )


def section(by_method, tfidf):
    """Return the report on one corpus."""
    first = next(iter(next(iter(by_method.values())).values()))
    data = first[0]["settings"]["data"]
    seeds = sorted(
        {run["seed"] for many in by_method.values() for runs in many.values() for run in runs}
    )
    words = f" ({data['words']:,} most frequent words)" if data["words"] else ""
    blocks = [
        f"**{data['corpus']}**: test accuracy in percent, mean ± standard deviation over seeds "
        f"{', '.join(map(str, seeds))}; vocabulary {data['vocabulary']}{words}. The scored "
        "checkpoint is the one with the lowest validation loss.",
        couple_table(by_method),
        method_table(by_method),
        paper_table(data["corpus"], by_method, tfidf),
        cost_line(by_method),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"
