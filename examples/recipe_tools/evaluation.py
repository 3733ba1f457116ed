"""Steps of evaluation that are made once and kept, and reading back what was found."""

import json
import time
from pathlib import Path

from . import RecipeError
from .cli import ARGUMENTS, make_parser
from .commands import execute, run_name, shown
from .files import lines_of, written
from .scores import compare, translations
from .tables import insert


def make(output, command, inputs, finish=None):
    """Run `command`, which makes `output`, unless it is current; return the seconds, or None.

    It was done when `output` is newer than all `inputs` and came from the same command line, which
    is kept beside it. finish: function log -> None that makes `output` from what was printed.
    """
    record, text = Path(f"{output}.command"), shown(command) + "\n"
    newest = max(path.stat().st_mtime for path in inputs)
    if output.is_file() and output.stat().st_mtime > newest and record.is_file():
        if record.read_text(encoding="utf-8") == text:
            return None
    print(text, end="", flush=True)
    record.unlink(missing_ok=True)
    started, log = time.monotonic(), Path(f"{output}.log")
    execute(command, log)
    if finish:
        finish(log)
    with written(record) as stream:
        stream.write(text)
    return time.monotonic() - started


def translate(output, command, inputs, source):
    """Make and return the translations `output` of the plain text `source`, a sentence per line.

    command: fairseq-generate or fairseq-interactive. inputs: what `output` must be newer than.
    """
    count = sum(1 for _ in lines_of(source))

    def finish(log):
        with written(output) as stream:
            stream.writelines(line + "\n" for line in translations(log, count))

    seconds = make(output, command, inputs, finish)
    if seconds is not None:
        print(f"{count} sentences in {seconds:.0f} s: {output}", flush=True)
    return output


def read_result(path, settings, again):
    """Return the content of a scores.json.

    settings: those of the recipe now, as a dict. again: words of the command that makes the file.
    Raises RecipeError when it is missing or was made with other settings.
    """
    if not path.is_file():
        raise RecipeError(f"{path} does not exist; run {again}")
    result = json.loads(path.read_text(encoding="utf-8"))
    # what JSON makes of the settings: tuples become lists
    if result["settings"] != json.loads(json.dumps(settings)):
        raise RecipeError(
            f"{path} was made with other settings than --recipe {settings['name']} has; run "
            f"{again} again, after train.py if a training setting has changed"
        )
    return result


def read_results(runs, names, seeds, relevant, more=""):
    """Return ({(name, seed): content of scores.json}, names of runs that were not evaluated).

    relevant: function name -> the settings that its results depend on. more: words of evaluate.py
    after the seed. Raises RecipeError for an outdated one, and when there is none.
    """
    results, missing = {}, []
    for name in names:
        for seed in seeds:
            path = runs / run_name(name, seed) / "scores.json"
            if path.is_file():
                again = f"evaluate.py DATA RUNS {name} {seed}{more}"
                results[name, seed] = read_result(path, relevant(name), again)
            else:
                missing.append(run_name(name, seed))
    if not results:
        raise RecipeError(f"RUNS {runs} has no scores.json for these seeds; run evaluate.py")
    return results, missing


def paired_by_seed(runs, results, places, seeds, references):
    """Return ([result of `scores.compare`], signatures) over the seeds that both systems have.

    places: [(system, name of its translations in a run's folder)] of the baseline and the other.
    """
    by_seed, signatures = [], {}
    for seed in seeds:
        if all((name, seed) in results for name, _ in places):
            files = [runs / run_name(name, seed) / file for name, file in places]
            test, signatures = compare(*files, references)
            by_seed.append(test)
    return by_seed, signatures


def report_arguments(doc, argv, recipe=ARGUMENTS["--recipe"]["default"]):
    """Return the arguments of a report.py; recipe: the settings where none are named."""
    parser = make_parser(doc, "data", "runs", "seeds", "--recipe", "--into")
    parser.set_defaults(recipe=recipe)
    parser.add_argument(
        "--output",
        metavar="NAME",
        type=Path,
        help="name of the output files (default: RUNS/report)",
    )
    return parser.parse_args(argv)


def publish(args, parts, data):
    """Write a report as NAME.md and NAME.json, print it, and put it between the marks of --into.

    parts: {name of the marks: text that goes between them}.
    """
    output, text = args.output or args.runs / "report", "\n".join(parts.values())
    with written(output.with_name(output.name + ".json")) as stream:
        json.dump(data, stream, indent=1)
    with written(output.with_name(output.name + ".md")) as stream:
        stream.write(text)
    if args.into:
        for mark, part in parts.items():
            insert(part, args.into, mark)
    print(text)
