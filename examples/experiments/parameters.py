"""How many parameters the checkpoints of a run have, and how many of them translations use."""

from argparse import Namespace
from pathlib import Path
from typing import Any, Sequence

from . import UsageError

TRAINING = "parameters, only in training"


def sentence(dictionary: Any) -> Any:
    """Return a batch of one sentence: (1, 4) tokens that end with the end-of-sentence symbol."""
    import torch

    words = range(dictionary.nspecial, dictionary.nspecial + 3)
    return torch.tensor([[*words, dictionary.eos()]])


def read_by(model: Any, directions: Sequence[tuple[str, Any, Any]]) -> int:
    """Return how many parameters of a model its translations depend on.

    model: a fairseq encoder-decoder model, or one with `direction(pair)` that gives such.
    directions: [(pair, source dictionary, target dictionary)]. Stock encoder layers of fairseq
    0.12.2 may hold parameters that nothing reads.
    """
    model.eval()
    model.zero_grad(set_to_none=True)
    for pair, source, target in directions:
        network = model.direction(pair) if hasattr(model, "direction") else model
        tokens, previous = sentence(source), sentence(target)
        lengths = tokens.new_tensor([tokens.size(1)])
        logits = network(tokens, lengths, previous)[0]  # (1, 4, V)
        logits.float().pow(2).sum().backward()
    return sum(part.numel() for part in model.parameters() if part.grad is not None)


def direction(pair: str, folder: Path) -> tuple[str, Any, Any]:
    """Return (pair, source dictionary, target dictionary). Raises UsageError where there is none.

    folder: the data, with the dictionaries.
    """
    from fairseq.data import Dictionary

    sides = pair.split("-")
    if len(sides) != 2:
        raise UsageError(f"--pairs {pair}: allowed: SOURCE-TARGET, languages without a dash")
    files = [folder / f"dict.{side}.txt" for side in sides]
    for file in files:
        if not file.is_file():
            raise UsageError(f"--data {folder}: there is no {file}, for --pairs {pair}")
    source, target = (Dictionary.load(str(file)) for file in files)
    return pair, source, target


def parameters(checkpoints: Sequence[Path], folder: Path, pairs: Sequence[str]) -> dict[str, float]:
    """Return the parameters of checkpoints that are used together.

    folder: the data, with the dictionaries. pairs: what they translate, a checkpoint those that it
    can; without pairs, those of the criterion are counted instead, which only training has.
    Raises UsageError for a checkpoint that cannot be read.
    """
    from fairseq import checkpoint_utils, utils

    import fairseq_ext

    utils.import_user_module(Namespace(user_dir=str(Path(fairseq_ext.__file__).parent)))
    values = {"parameters": 0.0}
    for checkpoint in checkpoints:
        try:
            models, args, _ = checkpoint_utils.load_model_ensemble_and_task(
                [str(checkpoint)], arg_overrides={"data": str(folder)}
            )
        except (OSError, ValueError) as error:  # whose messages name the file
            raise UsageError(f"--checkpoint {checkpoint}: {error}") from error
        unique = list(models[0].parameters())  # yields shared ones once
        values["parameters"] += sum(part.numel() for part in unique)
        if not pairs:
            # fairseq's torch: the reader of torch 1.13 itself refuses floats
            load = checkpoint_utils.torch.load
            state = load(checkpoint, map_location="cpu", weights_only=True)
            more = sum(part.numel() for part in (state["criterion"] or {}).values())
            values[TRAINING] = values.get(TRAINING, 0) + more
            continue
        stock = f"{args.task.source_lang}-{args.task.target_lang}"
        translated = pairs if hasattr(models[0], "direction") else [stock]
        used = read_by(models[0], [direction(pair, folder) for pair in translated])
        values["parameters used"] = values.get("parameters used", 0) + used
    return values
