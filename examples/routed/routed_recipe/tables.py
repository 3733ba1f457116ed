"""Tables of what was run; systems that were not are left out."""

from recipe_tools.tables import BOOTSTRAP, cell, rows, seeds_text, signature_list, spread

from .settings import KINDS

FAULTY = {"ill_formed": "ill-formed lines", "wrong_length": "of another length"}
TRANSLATION = {"bleu": "BLEU", "ter": "TER", "ppl": "perplexity"}
# (baseline, system): each of the paper's against the one before and the first; what depth, the
# other tasks and the unit contribute
ONCE = (
    *(("single", "full"), ("full", "partial"), ("partial", "routed"), ("full", "routed")),
    ("single", "routed"),
    *(("single", "shallow"), ("shallow", "shallow_full"), ("shallow_full", "routed")),
    *(("shallow", "routed"), ("shallow", "unit"), ("unit", "routed")),
)
CONTRASTS = (*ONCE, *((f"{one}_long", f"{other}_long") for one, other in ONCE))


def by_system(results):
    """{system: [its results, by seed]}."""
    found = {}
    for (name, _), result in sorted(results.items()):
        found.setdefault(name, []).append(result)
    return found


def score_table(settings, results, pair, names):
    """One line for each system, one column for each metric, mean (range) over the seeds."""
    body = []
    for size in settings.sizes:
        for kind in KINDS:
            many = by_system(results).get(f"{kind}.{size}", [])
            values = [result["scores"][pair] for result in many if pair in result["scores"]]
            if values:
                cells = []
                for name in names:
                    found = spread([one[name] for one in values])
                    cells.append(f"{found['mean']:,.0f}" if name in FAULTY else cell(found))
                body.append([f"{kind}.{size}", *cells])
    return rows([pair, *names.values()], body) if body else None


def auxiliary_tables(settings, results):
    """The tables of the auxiliary tasks."""
    for pair in settings.pairs[1:]:
        names = {"accuracy": "token accuracy", "exact": "exact match"}
        if pair.split("-")[1] != "amr":
            names = {"f1": "F1", **names, **FAULTY}
        yield score_table(settings, results, pair, names)


def contrast_lines(tests):
    """tests: {(system, baseline): [what `scores.compare` found, by seed]}."""
    body = []
    for (system, baseline), found in tests.items():
        differences = spread([test["bleu"]["difference"] for test in found])
        values = ", ".join(f"{test['bleu']['p']:.3f}" for test in found)
        body.append([f"{system} - {baseline}", cell(differences), values])
    return rows(["difference of BLEU", "mean (range)", "p"], body) if body else None


def cost_table(results):
    """Parameters and time of every system."""
    body = []
    for name, many in by_system(results).items():
        counts, seconds = many[0]["parameters"], [one["seconds_per_update"] for one in many]
        numbers = [f"{counts[key]:,}" for key in ("translation", "all")]
        body.append([name, *numbers, f"{many[0]['updates']:,}", f"{1000 * min(seconds):.0f}"])
    header = ["system", "parameters, translation", "all tasks", "updates", "ms per update"]
    return rows(header, body)


def markdown(settings, seeds, results, tests, signatures):
    """The whole report."""
    blocks = [
        f"Recipe `{settings.name}` of `examples/routed`; {seeds_text(seeds, results)}; mean "
        f"(range) over seeds; test sets, {settings.files['test']} for translation; the checkpoint "
        f"with the best validation perplexity; `{' '.join(settings.words['evaluate', 'options'])}`."
        " Perplexity per subword, its end included.",
        score_table(settings, results, settings.main, TRANSLATION),
        contrast_lines(tests),
        *auxiliary_tables(settings, results),
        cost_table(results),
        BOOTSTRAP if tests else None,
        signature_list(signatures),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"
