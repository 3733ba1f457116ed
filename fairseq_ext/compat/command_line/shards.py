"""--num-shards and --shard-id of fairseq-generate, which fairseq 0.12.2 does not read."""

from __future__ import annotations

import logging
import os
from argparse import Namespace
from typing import TYPE_CHECKING, Any, TextIO

from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before

if TYPE_CHECKING:
    from fairseq.dataclass.configs import FairseqConfig

logger = logging.getLogger(__name__)


@patch(
    "fairseq_cli.generate",
    because="fairseq 0.12.2: --num-shards and --shard-id have no effect: every process translates "
    "the whole set",
)
def sets_are_sharded(module: PatchedModule) -> None:
    """Translate every N-th batch of the set, as the options' help says."""

    def take_shard(cfg: FairseqConfig, output_file: TextIO) -> None:
        workers = cfg.distributed_training
        total = workers.distributed_world_size
        if total > 1:
            # fairseq-generate starts no processes
            logger.warning(
                f"--distributed-world-size {total}: this process translates one of {total} parts "
                f"of the set, that of --distributed-rank {workers.distributed_rank or 0}"
            )
        if cfg.dataset.num_shards > 1 and total == 1:
            # the task gives these two to the iterator, which takes every N-th batch
            workers.distributed_world_size = cfg.dataset.num_shards
            workers.distributed_rank = cfg.dataset.shard_id

    call_before(module, "_main", take_shard)


@patch(
    "fairseq_cli.generate",
    because="fairseq 0.12.2: the shards of a set write one file of --results-path, and each "
    "removes what the others wrote",
)
def shards_have_their_own_files(module: PatchedModule) -> None:
    """Write the file of shard N to the folder shardN of --results-path."""
    generate = module.main

    def main(cfg: FairseqConfig | Namespace) -> Any:
        """Translate, into the shard's folder if there are several."""
        if isinstance(cfg, Namespace):
            cfg = module.convert_namespace_to_omegaconf(cfg)
        results = cfg.common_eval.results_path
        if results is not None and cfg.dataset.num_shards > 1:
            cfg.common_eval.results_path = os.path.join(results, f"shard{cfg.dataset.shard_id}")
        return generate(cfg)

    module.main = main
