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
CONTRASTS = (*ONCE, *((f"{baseline}_long", f"{system}_long") for baseline, system in ONCE))


def by_system(results):
    """Return {system: [its results, by seed]}."""
    by_name = {}
    for (name, _), result in sorted(results.items()):
        by_name.setdefault(name, []).append(result)
    return by_name


def score_table(settings, results, pair, names):
    """Return a line for each system, with mean (range) over the seeds of each metric."""
    body = []
    for size in settings.sizes:
        for kind in KINDS:
            many = by_system(results).get(f"{kind}.{size}", [])
            values = [result["scores"][pair] for result in many if pair in result["scores"]]
            if values:
                cells = []
                for name in names:
                    values_spread = spread([scores[name] for scores in values])
                    cells.append(
                        f"{values_spread['mean']:,.0f}" if name in FAULTY else cell(values_spread)
                    )
                body.append([f"{kind}.{size}", *cells])
    return rows([pair, *names.values()], body) if body else None


def auxiliary_tables(settings, results):
    """Yield the tables of the auxiliary tasks."""
    for pair in settings.pairs[1:]:
        names = {"accuracy": "token accuracy", "exact": "exact match"}
        if pair.split("-")[1] != "amr":
            names = {"f1": "F1", **names, **FAULTY}
        yield score_table(settings, results, pair, names)


def contrast_lines(tests):
    """Return the table of tests: {(system, baseline): [result of `scores.compare` by seed]}."""
    body = []
    for (system, baseline), by_seed in tests.items():
        differences = spread([test["bleu"]["difference"] for test in by_seed])
        values = ", ".join(f"{test['bleu']['p']:.3f}" for test in by_seed)
        body.append([f"{system} - {baseline}", cell(differences), values])
    return rows(["difference of BLEU", "mean (range)", "p"], body) if body else None


def cost_table(results):
    """Return parameters and time of every system."""
    body = []
    for name, many in by_system(results).items():
        counts, seconds = many[0]["parameters"], [run["seconds_per_update"] for run in many]
        numbers = [f"{counts[key]:,}" for key in ("translation", "all")]
        body.append([name, *numbers, f"{many[0]['updates']:,}", f"{1000 * min(seconds):.0f}"])
    header = ["system", "parameters, translation", "all tasks", "updates", "ms per update"]
    return rows(header, body)


def markdown(settings, seeds, results, tests, signatures):
    """Return the whole report."""
    blocks = [
        f"Recipe `{settings.name}` of `examples/routed`; {seeds_text(seeds, results)}; mean "
        f"(range) over seeds. All scores are of test sets ({settings.files['test']} for "
        "translation) and of the checkpoint with the lowest validation perplexity. Translation "
        f"uses `{' '.join(settings.words['evaluate', 'options'])}`. Perplexity is per subword, the "
        "end of the sentence included. Lower TER and perplexity are better.",
        score_table(settings, results, settings.main, TRANSLATION),
        contrast_lines(tests),
        *auxiliary_tables(settings, results),
        cost_table(results),
        BOOTSTRAP if tests else None,
        signature_list(signatures),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"
