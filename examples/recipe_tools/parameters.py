"""How many parameters a checkpoint has, and how many of them its translations depend on."""

from argparse import Namespace


def sentence(dictionary):
    """Return a batch of one sentence: (1, 4) tokens that end with the end-of-sentence symbol."""
    import torch

    words = range(dictionary.nspecial, dictionary.nspecial + 3)
    return torch.tensor([[*words, dictionary.eos()]])


def count_parameters(model, directions):
    """Return {"unique": scalars stored once, "used": scalars with a gradient in some direction}.

    model: a fairseq encoder-decoder model, or one with `direction(pair)` that gives such.
    directions: [(pair, source dictionary, target dictionary)].
    Stock encoder layers of fairseq 0.12.2 may hold parameters that nothing reads: they are unique
    and not used.
    """
    model.eval()
    model.zero_grad(set_to_none=True)
    for pair, source, target in directions:
        network = model.direction(pair) if hasattr(model, "direction") else model
        tokens, previous = sentence(source), sentence(target)
        lengths = tokens.new_tensor([tokens.size(1)])
        logits = network(tokens, lengths, previous)[0]  # (1, 4, V)
        logits.float().pow(2).sum().backward()
    # parameters() yields shared ones once
    unique = list(model.parameters())
    return {
        "unique": sum(parameter.numel() for parameter in unique),
        "used": sum(parameter.numel() for parameter in unique if parameter.grad is not None),
    }


def parameters_of(checkpoint, data, user_dir, pairs):
    """Return `count_parameters` of a checkpoint file.

    data: folder with the dictionaries. pairs: the directions that the system translates.
    """
    from fairseq import checkpoint_utils, utils
    from fairseq.data import Dictionary

    utils.import_user_module(Namespace(user_dir=str(user_dir)))
    models, _, _ = checkpoint_utils.load_model_ensemble_and_task(
        [str(checkpoint)], arg_overrides={"data": str(data)}
    )
    languages = {language for pair in pairs for language in pair.split("-")}
    words = {name: Dictionary.load(str(data / f"dict.{name}.txt")) for name in languages}
    directions = [(pair, *(words[side] for side in pair.split("-"))) for pair in pairs]
    return count_parameters(models[0], directions)
