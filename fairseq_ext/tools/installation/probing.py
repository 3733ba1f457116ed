"""Code that doctor runs in child processes, and what to do where it fails.

fairseq and torch are imported there: an import that fails, or one that ends the process, must not
end the report.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys

from .fairseq_origin import RELEASE

# a child reads the modules that this process reads: -c puts the current folder before them
SAME_PATH = "import json, sys\nsys.path[:] = json.loads(sys.argv.pop(1))\n"
# modules whose distribution has another name
DISTRIBUTIONS = {
    "antlr4": "antlr4-python3-runtime==4.9.3",
    "hydra": "hydra-core",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}
MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^'.]+)")


def probe(code: str, *arguments: str) -> tuple[str | None, str | None]:
    """Run code in a child and return (its last line of output, None) or (None, what went wrong).

    Args:
        code: prints one line at least.
        arguments: its ``sys.argv[1:]``.
    """
    finished = subprocess.run(
        [sys.executable, "-c", SAME_PATH + code, json.dumps(sys.path), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",  # not the locale's: messages name files
        errors="replace",  # a child in another locale than UTF-8 writes in that
        check=False,
    )
    if finished.returncode == 0:
        return finished.stdout.splitlines()[-1], None  # the lines before may come from imports
    errors = [line for line in finished.stderr.splitlines() if line.strip()]
    return None, errors[-1] if errors else f"status {finished.returncode}"


def missing_remedy(error: str) -> str | None:
    """Return how to install the module that an error misses, or None for another error."""
    match = MISSING_MODULE.match(error)
    if match is None:
        return None
    name = match[1]
    if name in ("fairseq", "fairseq_cli"):
        # with --force-reinstall: pip may believe that it is there
        return f"pip install --no-deps --force-reinstall fairseq=={RELEASE}"
    return f'pip install "{DISTRIBUTIONS.get(name, name)}"'
