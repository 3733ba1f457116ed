"""What the benchmarks share: corpus, systems, turns, the machine's limits, report."""

import logging
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# for files that are named by neither --output nor --into
BUILD = REPOSITORY / "build" / "benchmark"

# importing fairseq's tasks recommends to install tensorboardX
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
import fairseq_ext  # noqa: E402, F401  (registers the systems with fairseq)
