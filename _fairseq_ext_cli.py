"""Entry point of the `fairseq-ext` command, outside the package on purpose.

Importing `fairseq_ext` registers every system and therefore imports fairseq and torch. The light
commands must not: `user-dir` stands in scripts, `doctor` has to work where fairseq does not, and
`run` prepares the import of fairseq.
"""

import importlib.util
import logging
import sys
import types

LIGHT = frozenset(
    ("user-dir", "doctor", "run", "plot", "compare", "evaluate", "-h", "--help", "--version")
)


def _bare_package():
    """Make the sub-modules of `fairseq_ext` importable without running its `__init__`."""
    spec = importlib.util.find_spec("fairseq_ext")
    package = types.ModuleType("fairseq_ext")
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules["fairseq_ext"] = package


def main():
    """Run the command line; returns the exit status."""
    if len(sys.argv) < 2 or sys.argv[1] in LIGHT:
        _bare_package()
    else:
        # at import it recommends tensorboardX to everybody
        logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
    from fairseq_ext.__main__ import main as package_main

    return package_main()


if __name__ == "__main__":
    sys.exit(main())
