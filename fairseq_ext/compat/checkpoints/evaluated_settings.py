"""fairseq's modules that evaluate text read it as literals; see `literal_evaluation`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..data.data_files import UnreadableFile
from ..imported_examples import modules_of_examples
from ..module_overlay import overlay_names
from ..patch_registry import PatchedModule, patch
from .literal_evaluation import RefusedSetting, evaluate, literal_value

if TYPE_CHECKING:
    from fairseq.data import Dictionary

# every module of fairseq that calls `eval`; most evaluate the configuration of a checkpoint
EVALUATING_MODULES = (
    "fairseq.utils",
    "fairseq.criterions.ctc",
    "fairseq.data.audio.raw_audio_dataset",
    "fairseq.data.codedataset",
    "fairseq.models.fconv",
    "fairseq.models.fconv_lm",
    "fairseq.models.fconv_self_att",
    "fairseq.models.hubert.hubert",
    "fairseq.models.lightconv_lm",
    "fairseq.models.speech_to_text.s2t_wav_transformer",
    "fairseq.models.transformer_lm",
    "fairseq.models.wav2vec.wav2vec",
    "fairseq.models.wav2vec.wav2vec2",
    "fairseq.optim.adafactor",
    "fairseq.optim.adam",
    "fairseq.optim.adamax",
    "fairseq.optim.cpu_adam",
    "fairseq.optim.fused_lamb",
    "fairseq_cli.eval_lm",
    "fairseq_cli.validate",
)
# the same of fairseq's examples, below their folder; `user_dirs` treats copies of them
EVALUATING_EXAMPLES = (
    "criss.save_encoder",
    "data2vec.models.data2vec_audio",
    "discriminative_reranking_nmt.drnmt_rerank",
    "speech_recognition.models.vggtransformer",
    "speech_recognition.models.w2l_conv_glu_enc",
    "textless_nlp.pgslm.data_utils",
    "textless_nlp.pgslm.quantize_f0",
    "textless_nlp.pgslm.sample.sample",
)


@patch(
    *EVALUATING_MODULES,
    *modules_of_examples(*EVALUATING_EXAMPLES),
    because="fairseq 0.12.2 evaluates strings of a checkpoint's configuration, of manifests and of "
    "options as Python: a checkpoint could run any code",
)
def settings_are_literals(module: PatchedModule) -> None:
    """Give the module an `eval` that knows literals, + and * only."""
    module.eval = evaluate  # a global of the module comes before the built-in of this name


@patch(
    "fairseq.dataclass.utils",
    "fairseq.models.speech_to_text.berard",
    because="fairseq 0.12.2 reads strings of old checkpoints with ast.literal_eval, which deeply "
    "nested text makes use up the memory or the stack of the process",
)
def literals_are_bounded(module: PatchedModule) -> None:
    """Read literals with `evaluate`, whose texts are of limited size and depth."""
    if hasattr(module, "ast"):
        overlay_names(module, "ast", literal_eval=evaluate)
    else:
        module.literal_eval = evaluate


@patch(
    "fairseq.data.codedataset",
    because="fairseq 0.12.2 evaluates every line of a manifest; an error names no line",
)
def manifest_errors_name_the_line(module: PatchedModule) -> None:
    """Name file and line of what is no entry."""
    stock = module.parse_manifest

    @functools.wraps(stock)
    def parse_manifest(manifest: str, dictionary: Dictionary) -> Any:
        try:
            return stock(manifest, dictionary)
        except RefusedSetting as error:
            raise UnreadableFile(_describe_wrong_entry(manifest, str(error))) from error

    module.parse_manifest = parse_manifest


def _describe_wrong_entry(manifest: str, reason: str) -> str:
    """Return the first line of a manifest that is not a dict of literals, and why."""
    with open(manifest) as stream:
        for number, line in enumerate(stream, 1):
            try:
                literal_value(line)
            except ValueError as error:
                return (
                    f"{manifest}, line {number}: {line.strip()[:80]!r} is not allowed: {error}; "
                    "allowed: a dict of strings such as {'audio': FILE, 'hubert_km100': UNITS}"
                )
    return f"{manifest}: {reason}"
