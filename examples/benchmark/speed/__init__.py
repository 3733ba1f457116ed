"""What the benchmark's scripts share: corpus, systems, turns, the machine's limits, report."""

import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
# recipe_tools and fairseq_ext
sys.path += [str(REPOSITORY / "examples"), str(REPOSITORY)]
