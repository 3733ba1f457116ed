"""Options of convolutional models that list the layers as text, such as [(512, 3)] * 4."""

from __future__ import annotations

from ..checkpoints.literal_evaluation import literal_value
from ..user_errors import OptionError, option_of
from .chosen_classes import Values, chosen_model, is_stock
from .option_values import is_stock_alone

SELF_ATTENDING = "fairseq.models.fconv_self_att"
# {module of a model: numbers of a layer: width, kernel and maybe layers back to the residual}
CONVOLUTIONAL = {
    "fairseq.models.fconv": (2, 3),
    "fairseq.models.fconv_lm": (2, 3),
    SELF_ATTENDING: (2,),
}
# {option that says which layers attend: the list of these layers}
SWITCHES = {
    "decoder_attention": "decoder_layers",
    "encoder_attention": "encoder_layers",
    "self_attention": "decoder_layers",
}
# lists of (width, kernel, stride) of wav2vec, HuBERT and models that begin with them
OF_SOUND = ("conv_feature_layers", "conv_aggregator_layers")


def layers_of_convolutions(values: Values) -> None:
    """Raise OptionError for lists of layers that fconv, fconv_lm or fconv_self_att cannot have."""
    model = chosen_model(values)
    if model is None or not is_stock(model) or model.__module__ not in CONVOLUTIONAL:
        return
    lengths = {}
    for name in ("encoder_layers", "decoder_layers"):
        text = values.get(name)
        if isinstance(text, str):
            lengths[name] = _number_of_layers(name, text, CONVOLUTIONAL[model.__module__])
    for name, layers in SWITCHES.items():
        text = values.get(name)
        if isinstance(text, str) and layers in lengths:
            _check_switches(name, text, lengths[layers])


def _number_of_layers(name: str, text: str, sizes: tuple[int, ...]) -> int:
    """Return how many layers a text lists; OptionError for what is no list of them.

    sizes: how many numbers a layer may have.
    """
    third = ", with a third number for the layers back to the residual" if 3 in sizes else ""
    allowed = f"a list of (width, kernel) of at least one layer, as [(512, 3)] * 4{third}"
    layers = _literal(name, text, allowed)
    if not isinstance(layers, (list, tuple)) or not layers:
        raise OptionError(f"{_shown(name, text)}: no list of layers; allowed: {allowed}")
    for number, layer in enumerate(layers, 1):
        is_layer = isinstance(layer, tuple) and len(layer) in sizes
        if not is_layer or not all(type(size) is int for size in layer) or min(layer[:2]) < 1:
            raise OptionError(
                f"{_shown(name, text)}: layer {number} is {layer}; allowed: {allowed}"
            )
        if len(layer) == 3 and not 0 <= layer[2] <= number:
            raise OptionError(
                f"{_shown(name, text)}: the residual of layer {number} is of {layer[2]} layers "
                f"back; allowed: 0 (none) to {number}"
            )
    return len(layers)


def layers_of_recordings(values: Values) -> None:
    """Raise OptionError for lists of convolutions that fairseq's models of sound cannot have."""
    if not is_stock_alone(values):
        return
    for name in OF_SOUND:
        text = values.get(name)
        if isinstance(text, str) and not text.startswith("${"):  # no reference to the model's
            _check_strided(name, text)
    text = values.get("conv_kernel_sizes")
    if isinstance(text, str) and not all(map(_is_odd, text.split(","))):
        raise OptionError(
            f"{_shown('conv_kernel_sizes', text)} is not allowed; allowed: odd numbers with commas "
            "between them, one for each layer, such as 5,5"
        )


def _check_strided(name: str, text: str) -> None:
    """Raise OptionError unless a text lists layers of three whole numbers."""
    allowed = (
        "a list of (width, kernel, stride) of at least one layer, as [(512, 10, 5)] + "
        "[(512, 3, 2)] * 4"
    )
    layers = _literal(name, text, allowed)
    if not isinstance(layers, (list, tuple)) or not layers:
        raise OptionError(f"{_shown(name, text)}: no list of layers; allowed: {allowed}")
    for number, layer in enumerate(layers, 1):
        is_layer = isinstance(layer, (tuple, list)) and len(layer) == 3
        if not is_layer or not all(type(size) is int and size > 0 for size in layer):
            raise OptionError(
                f"{_shown(name, text)}: layer {number} is {layer}; allowed: {allowed}"
            )


def _is_odd(text: str) -> bool:
    """True for an odd number: fairseq counts the frames that such kernels leave."""
    return text.strip().isdecimal() and int(text) % 2 == 1


def _check_switches(name: str, text: str, layers: int) -> None:
    """Raise OptionError unless a text is True, False, or a list of these for each layer."""
    allowed = f"True, False, or a list of these with {layers} entries, one for each layer"
    switches = _literal(name, text, allowed)
    if isinstance(switches, bool):
        return
    if not isinstance(switches, list) or len(switches) != layers:
        raise OptionError(f"{_shown(name, text)} is not allowed; allowed: {allowed}")


def _literal(name: str, text: str, allowed: str) -> object:
    """Return the value of an option that is an expression; OptionError for other text."""
    try:
        value: object = literal_value(text)
    except ValueError as error:
        raise OptionError(f"{_shown(name, text)}: {error}; allowed: {allowed}") from error
    return value


def _shown(name: str, text: str) -> str:
    """Return an option with its value for an error."""
    return option_of(name, repr(text if len(text) <= 80 else f"{text[:77]}..."))
