"""--retain-dropout-modules: a list of names, which some module must have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..patch_registry import PatchedModule, patch

if TYPE_CHECKING:
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.models import BaseFairseqModel


@patch(
    "fairseq.models.fairseq_model",
    because="fairseq 0.12.2: --retain-dropout-modules takes any part of a name for the name, and "
    "does nothing without --retain-dropout and with names that no module of the model has",
)
def retained_modules_exist(module: PatchedModule) -> None:
    """Split the option at commas and blanks; raise ValueError where a name changes nothing."""
    base = module.BaseFairseqModel
    prepare, make_fast = base.prepare_for_inference_, base.make_generation_fast_

    def prepare_for_inference_(self: BaseFairseqModel, cfg: FairseqConfig) -> None:
        names = getattr(cfg.generation, "retain_dropout_modules", None)
        if names and not cfg.generation.retain_dropout:
            raise ValueError(
                f"--retain-dropout-modules {names}: does nothing without --retain-dropout; add it"
            )
        prepare(self, cfg)

    def make_generation_fast_(
        self: BaseFairseqModel,
        retain_dropout_modules: str | Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        # of a text fairseq's test, `module_name in option`, is true for any part of it
        if isinstance(retain_dropout_modules, str):
            retain_dropout_modules = retain_dropout_modules.replace(",", " ").split()
        if retain_dropout_modules:
            _check_names(self, retain_dropout_modules)
        make_fast(self, retain_dropout_modules=retain_dropout_modules or None, **kwargs)

    base.prepare_for_inference_ = prepare_for_inference_
    base.make_generation_fast_ = make_generation_fast_


def _check_names(model: BaseFairseqModel, names: Sequence[str]) -> None:
    """Raise ValueError, naming the option, for a name that no module with dropout has."""
    # what can retain dropout, in fairseq's models and in those of this package
    modules = [part for part in model.modules() if hasattr(part, "apply_during_inference")]
    allowed = sorted({part.module_name for part in modules if part.module_name})
    for name in names:
        if name not in allowed:
            raise ValueError(
                f"--retain-dropout-modules {','.join(names)}: no module {name!r} of the model has "
                f"dropout; allowed: {', '.join(allowed) or 'none'}"
            )
