"""A stock fairseq checkpoint as a folder of CTranslate2 (an optional dependency)."""

import os
from pathlib import Path
from typing import Any, Mapping, Optional, Union

from ...compat.atomic_files import folder_beside, open_for_torch, replace_folder
from ...compat.patch_registry import since
from ...compat.user_errors import option_of
from .. import UsageError
from .protocol import Checkpoint, namespace_of

# switches of fairseq's transformer that the converter does not read: CTranslate2 would compute
# something else, or the converter would end in an error that names no option
UNREAD = (
    "cross_self_attention", "no_cross_attention", "base_layers",
    # of NormFormer, which configurations of fairseq 0.12 may hold
    "scale_attn", "scale_fc", "scale_heads", "scale_resids",
)  # fmt: skip


def import_converter() -> Any:
    """Return CTranslate2's FairseqConverter; UsageError with the remedy where it is missing."""
    try:
        from ctranslate2.converters import FairseqConverter
    except ImportError as error:
        raise UsageError(
            f"--to ctranslate2 needs the package ctranslate2 ({error}); "
            "install it: pip install ctranslate2"
        ) from error
    return FairseqConverter


def check_options(model: Mapping[str, Any]) -> None:
    """Raise UsageError for options of a transformer that the converter leaves out of the result.

    It refuses others by itself, such as an activation function that CTranslate2 does not have.
    """
    unread = [name for name in UNREAD if model.get(name)]
    # a layer behind the embedding, which stays when nothing is quantised
    if (model.get("quant_noise_pq") or 0) > 0 and not model.get("adaptive_input"):
        unread.append("quant_noise_pq")
    # fairseq computes such a model in emulated 8-bit numbers, also when it translates
    if (model.get("quant_noise_scalar") or 0) > 0:
        unread.append("quant_noise_scalar")
    width = model.get("decoder_embed_dim")
    if width is not None and model.get("decoder_output_dim", width) != width:
        unread.append("decoder_output_dim")
    if model.get("decoder_normalize_before") and model.get("no_decoder_final_norm"):
        unread.append("no_decoder_final_norm")
    if model.get("decoder_layers") == 0:
        # it would write a folder that it cannot load
        raise UsageError(
            "--to ctranslate2: the model was trained with --decoder-layers 0, but CTranslate2 "
            "needs a layer; allowed: --to fairseq"
        )
    if unread:
        raise UsageError(
            f"--to ctranslate2: the model was trained with {option_of(unread[0])}, which "
            "CTranslate2 does not have; allowed: --to fairseq"
        )


def with_namespace(stock: Checkpoint) -> Checkpoint:
    """Return the checkpoint with the model's options in a Namespace, as the converter reads them.

    fairseq-hydra-train stores dicts, and the names of task and model under "_name".
    """
    model, task = stock["cfg"]["model"], stock["cfg"]["task"]
    if isinstance(model, Mapping):
        names = {"arch": model["_name"], "task": task["_name"]}
        model = namespace_of({**task, **model, **names})
    return {**stock, "cfg": {**stock["cfg"], "model": model}}


def write_folder(
    converter: Any,
    stock: Checkpoint,
    data: Optional[Path],
    path: Union[str, Path],
    quantization: Optional[str] = None,
) -> None:
    """Convert and put the result at `path` in one step; what is there is replaced.

    converter: the class of `import_converter`; stock: a checkpoint of fairseq's `transformer`;
    data: folder with both dictionaries; quantization: None or a name that CTranslate2 knows.
    UsageError for a model with options that CTranslate2 does not know.
    """
    import torch

    if since("torch", 2, 6)() is not None:
        # there its torch.load cannot be told that argparse.Namespace is harmless
        raise UsageError(
            f"--to ctranslate2: torch {torch.__version__} is too old for CTranslate2's converter "
            "to read the checkpoint as data; 2.6 or later is needed (--to fairseq works)"
        )
    stock = with_namespace(stock)
    check_options(vars(stock["cfg"]["model"]))
    with folder_beside(os.path.realpath(path)) as folder:
        file, converted = Path(folder) / "model.pt", Path(folder) / "converted"
        with open_for_torch(str(file)) as stream:
            torch.save(stock, stream)
        task = stock["cfg"]["task"]
        languages = {name: task[name] for name in ("source_lang", "target_lang")}
        try:
            converted = converter(str(file), str(data), **languages).convert(
                str(converted), quantization=quantization
            )
        except ValueError as error:  # options of the model that CTranslate2 does not know
            raise UsageError(f"--to ctranslate2: {error}") from error
        replace_folder(str(converted), str(path))
