"""Tables of test accuracies: couples as in Tables 2 - 4, methods, the paper's figures."""

import itertools
import statistics

from recipe_tools.tables import rows

NOTHING = "-"
# Tables 1 and 4: TF-IDF with logistic regression, the best couple, the best single set
PAPER = {"mr": ("74.59", "81.02", "80.33"), "r8": ("93.74", "97.02", NOTHING)}
COLUMNS = ("single", "average", "concatenation", "duo")


def cell(results, key="accuracy"):
    """Mean and standard deviation over the seeds."""
    if not results:
        return NOTHING
    values = [result[key] for result in results]
    deviation = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{deviation}"


def set_names(found):
    """All sets of word vectors, in alphabetical order."""
    return sorted({name for by_sets in found.values() for sets in by_sets for name in sets})


def of(found, method, sets):
    """The results of a method, the sets named in any order."""
    by_sets = found.get(method, {})
    return by_sets.get(sets) or by_sets.get(sets[::-1])


def couple_table(found):
    """The upper half: duo of two sets, on the diagonal one set with itself."""
    names, body = set_names(found), []
    for row, first in enumerate(names):
        cells = [NOTHING] * row + [cell(of(found, "single", (first,)))]
        cells += [cell(of(found, "duo", (first, second))) for second in names[row + 1 :]]
        body.append([first, *cells])
    return rows(["test accuracy", *names], body)


def method_table(found):
    """One line for each couple: the better of its sets alone, and what is made of both."""
    body = []
    for couple in itertools.combinations(set_names(found), 2):
        alone = [one for one in (of(found, "single", (name,)) for name in couple) if one]
        better = max(alone, key=lambda many: mean(many, "valid_accuracy"), default=None)
        cells = [cell(better), *(cell(of(found, method, couple)) for method in COLUMNS[1:])]
        body.append([" + ".join(couple), *cells])
    header = ["test accuracy", "better set alone", *COLUMNS[1:]]
    return rows(header, body) if body else None


def mean(results, key):
    return statistics.mean(result[key] for result in results)


def best(found, method):
    """(sets, results) with the best mean validation accuracy, or None."""
    many = found.get(method, {}).items()
    return max(many, key=lambda each: mean(each[1], "valid_accuracy"), default=None)


def paper_table(corpus, found, tfidf):
    """Beside the paper's figures; the sets are chosen on the validation set."""
    here = [[f"{tfidf['accuracy']:.2f}" if tfidf else NOTHING, ""]]
    for method in ("duo", "single"):
        sets, results = best(found, method) or ((), None)
        here.append([cell(results), " + ".join(sets)])
    lines = ("TF-IDF, logistic regression", "duo, best couple", "best set alone")
    paper = PAPER.get(corpus, (NOTHING,) * len(lines))
    body = [[line, *cells, figure] for line, cells, figure in zip(lines, here, paper)]
    return rows(["test accuracy", "here", "sets", "paper, GloVe and others"], body)


def cost_line(found):
    """How long the runs took."""
    duo = [one for results in found.get("duo", found["single"]).values() for one in results]
    everything = [one for many in found.values() for results in many.values() for one in results]
    seconds = sum(one["seconds"] for one in everything)
    return (
        f"Duo: {statistics.median(one['documents_per_second'] for one in duo):,.0f} documents/s "
        f"in training, {statistics.median(one['epochs'] for one in duo):.0f} epochs (medians); "
        f"all {len(everything)} runs: {seconds / 60:.0f} minutes of training."
    )


def section(found, tfidf):
    """The report on one corpus."""
    first = next(iter(next(iter(found.values())).values()))
    data = first[0]["settings"]["data"]
    seeds = sorted(
        {one["seed"] for many in found.values() for each in many.values() for one in each}
    )
    words = f" ({data['words']:,} most frequent words)" if data["words"] else ""
    blocks = [
        f"**{data['corpus']}**, vocabulary {data['vocabulary']}{words}, seeds "
        f"{', '.join(map(str, seeds))}, mean ± standard deviation, in percent; the checkpoint with "
        "the lowest validation loss.",
        couple_table(found),
        method_table(found),
        paper_table(data["corpus"], found, tfidf),
        cost_line(found),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"
