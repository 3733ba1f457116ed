"""Options of fairseq-validate that it takes, does not read, and that would change its numbers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from ..checkpoints.configurations import stored_name
from ..module_overlay import overlay_names
from ..patch_registry import PatchedModule, patch
from ..surrounded_calls import call_before
from ..user_errors import OptionError

if TYPE_CHECKING:
    from fairseq.dataclass.configs import FairseqConfig

logger = logging.getLogger(__name__)


@patch(
    "fairseq_cli.validate",
    because="fairseq 0.12.2: --max-valid-steps, --combine-valid-subsets, --num-shards, "
    "--gen-subset and another --criterion than the checkpoint's do nothing in fairseq-validate: "
    "the numbers are of other batches, of another set or of another loss than those asked for",
)
def unread_options_are_refused(module: PatchedModule) -> None:
    """Refuse them by name."""

    def check_options(
        cfg: FairseqConfig, override_args: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        dataset = getattr(cfg, "dataset", cfg)  # a Namespace holds all options itself
        steps = getattr(dataset, "max_valid_steps", None)
        if steps is not None:
            raise OptionError(
                f"--max-valid-steps {steps}: fairseq-validate reads whole sets; allowed: leave it "
                "out"
            )
        if getattr(dataset, "combine_valid_subsets", None):
            raise OptionError(
                "--combine-valid-subsets: fairseq-validate reads each set by itself; allowed: "
                "their names, for example --valid-subset valid,valid1"
            )
        shards = getattr(dataset, "num_shards", 1)
        if shards > 1:
            raise OptionError(
                f"--num-shards {shards}: fairseq-validate reads whole sets; allowed: leave it out"
            )
        # what stands on the command line, without defaults
        subset = getattr(override_args, "gen_subset", None)
        if subset is not None:
            raise OptionError(
                f"--gen-subset {subset}: fairseq-validate reads the sets of --valid-subset; "
                f"allowed: --valid-subset {subset}"
            )
        if getattr(getattr(cfg, "common", cfg), "bf16", False):
            logger.warning("--bf16: fairseq-validate computes in single precision all the same")

    def load_model_ensemble_and_task(paths: Any, *args: Any, **options: Any) -> Any:
        """Load the checkpoint; OptionError where the user has named another criterion."""
        from fairseq import checkpoint_utils

        loaded = checkpoint_utils.load_model_ensemble_and_task(paths, *args, **options)
        # the overrides hold what stands on the command line, without defaults
        asked = (options.get("arg_overrides") or {}).get("criterion")
        stored = stored_name({"cfg": loaded[1]}, "criterion")
        if asked is not None and stored is not None and asked != stored:
            raise OptionError(
                f"--criterion {asked}: fairseq-validate computes that of the checkpoint; allowed: "
                f"{stored}, or leave it out"
            )
        return loaded

    call_before(module, "main", check_options)
    overlay_names(
        module, "checkpoint_utils", load_model_ensemble_and_task=load_model_ensemble_and_task
    )


@patch(
    "fairseq_cli.validate",
    because="fairseq 0.12.2 puts the options of fairseq-validate beside those of the checkpoint: "
    "--lang-pairs came together with the -s and -t of the training, which won",
)
def pairs_replace_the_direction_of_the_training(module: PatchedModule) -> None:
    """Leave the training's -s and -t out where --lang-pairs is given without them."""

    def forget_direction(
        cfg: FairseqConfig, override_args: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        # what stands on the command line, without defaults
        typed = vars(override_args) if override_args is not None else {}
        if typed.get("lang_pairs") and not {"source_lang", "target_lang"} & set(typed):
            override_args.source_lang = override_args.target_lang = None

    call_before(module, "main", forget_direction)
