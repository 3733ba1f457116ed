"""Entry point of the `fairseq-ext` command, outside the package on purpose.

Importing `fairseq_ext` registers every system and therefore imports fairseq and torch. The light
commands must not: `user-dir` stands in scripts, `doctor` has to work where fairseq does not, and
`run` prepares the import of fairseq.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import types

# sub-commands and options that import neither fairseq nor torch
LIGHT = frozenset(
    ("user-dir", "doctor", "run", "plot", "compare", "evaluate", "-h", "--help", "--version")
)
# what the shell makes of a process that Ctrl-C ended
INTERRUPTED_STATUS = 130


def _bare_package() -> None:
    """Make the sub-modules of `fairseq_ext` importable without running its `__init__`."""
    spec = importlib.util.find_spec("fairseq_ext")
    package = types.ModuleType("fairseq_ext")
    assert spec is not None  # it was installed together with this file
    package.__path__ = list(spec.submodule_search_locations or ())
    sys.modules["fairseq_ext"] = package


def main() -> int:
    """Run the command line and return the exit status."""
    if len(sys.argv) < 2 or sys.argv[1] in LIGHT:
        _bare_package()
    else:
        # its import logs a recommendation of tensorboardX
        logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
    try:
        from fairseq_ext.__main__ import main as package_main
    except KeyboardInterrupt:  # the import of torch takes seconds
        print("fairseq-ext: interrupted", file=sys.stderr)
        return INTERRUPTED_STATUS
    return package_main()


if __name__ == "__main__":
    sys.exit(main())
