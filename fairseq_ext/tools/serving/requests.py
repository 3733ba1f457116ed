"""What a request asks for: its JSON -> a key and items for the batches."""

import json
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

from ...inference.inputs import SURROGATES
from ...inference.model import Model
from .limits import Limits
from .schemas import Refused, Schema, check, request_schemas, shown
from .served import Key, Pair, ServedModel

LONGEST_NUMBER = 100  # digits


class Work(NamedTuple):
    """What is computed for a request; lengths: of the items, about, in tokens."""

    key: Key
    items: List[Any]
    lengths: List[int]


def parse_json(body: bytes) -> Any:
    """Return the value that a body holds; Refused where it is no JSON or no UTF-8."""
    try:
        return json.loads(
            body.decode("utf-8"),
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_no_constant,
            object_pairs_hook=_fields,
        )
    except UnicodeDecodeError as error:
        message = f"byte {error.start} of the body is no UTF-8; allowed: JSON in UTF-8"
        raise Refused(400, message) from error
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        message = f"the body is no JSON: {reason}; allowed: an object of JSON"
        raise Refused(400, message) from error


def _fields(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    """Return an object of JSON; ValueError for a field that is there twice: one would be lost."""
    fields: Dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise ValueError(f"the field {shown(name)} is there twice; allowed: once")
        fields[name] = value
    return fields


def _integer(text: str) -> int:
    """Return a number; ValueError for one that no field takes and Python does not read."""
    if len(text) > LONGEST_NUMBER:
        raise ValueError(f"a number of {len(text)} digits; allowed: at most {LONGEST_NUMBER}")
    return int(text)


def _number(text: str) -> Union[int, float]:
    """Return a number with a point or an exponent; 5.0 is an integer of JSON Schema."""
    number = float(text)
    return int(number) if number.is_integer() else number


def _no_constant(name: str) -> None:
    """Raise ValueError for NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(f"{name} is no number of JSON")


class Requests:
    """Reads requests for some models.

    Args:
        models: {name: model}; the first answers requests that name none.
        limits: of the server.
    """

    def __init__(self, models: Mapping[str, ServedModel], limits: Limits):
        self.models = models
        self.schemas: Dict[str, Schema] = request_schemas(limits)

    def work(self, operation: str, body: bytes) -> Work:
        """Return what a request asks for; Refused."""
        value = parse_json(body)
        check(value, self.schemas[operation])
        served = self._model(value.get("model"))
        direction: Optional[str] = value.get("direction")
        model = served.toward(direction)
        served.check(operation, model)
        items, options = self._parts(operation, value, model)
        key = Key(served.name, direction or model.direction, operation, options)
        return Work(key, items, [served.length(model, item) for item in items])

    def _model(self, name: Optional[str]) -> ServedModel:
        """Return the model of a name, or the first."""
        if name is None:
            return next(iter(self.models.values()))
        if name not in self.models:
            allowed = list(self.models)
            raise Refused(404, f"there is no model {name!r:.60}", "$.model", allowed)
        return self.models[name]

    def _parts(
        self, operation: str, value: Dict[str, Any], model: Model
    ) -> Tuple[List[Any], Tuple[Tuple[str, Any], ...]]:
        """Return the items of a request and its options."""
        if operation in ("classify", "perplexity"):
            return [SURROGATES.sub("\ufffd", text) for text in value["texts"]], ()
        if operation == "score":
            sources = self._sources(value["sources"], model, "$.sources")
            targets = [SURROGATES.sub("\ufffd", text) for text in value["targets"]]
            if len(sources) != len(targets):
                message = f"{len(targets)} targets; allowed: as many as sources, {len(sources)}"
                raise Refused(400, message, "$.targets")
            options = (("attention", value.get("attention", False)),)
            return [Pair(*pair) for pair in zip(sources, targets)], options
        default = self.schemas["translate"]["properties"]["beam"]["default"]
        beam, nbest = value.get("beam", default), value.get("nbest", 1)
        if nbest > beam:
            raise Refused(422, f"{nbest}; allowed: at most beam, {beam}", "$.nbest")
        chosen = {"attention": False, "extras": False, "beam": beam}
        no_options = ("sentences", "model", "direction")
        chosen.update({name: v for name, v in value.items() if name not in no_options})
        return self._sources(value["sentences"], model, "$.sentences"), tuple(
            sorted(chosen.items())
        )

    def _sources(self, entries: List[Any], model: Model, path: str) -> List[Any]:
        """Return sources as the model reads them: texts, or tuples of texts."""
        number = len(model.sources)
        sources: List[Any] = []
        for place, entry in enumerate(entries):
            texts = [entry] if isinstance(entry, str) else entry
            if len(texts) != max(number, 1) or isinstance(entry, str) != (number < 2):
                languages = ", ".join(model.sources)
                allowed = "a string" if number < 2 else f"an array of {number} ({languages})"
                what = "a string" if isinstance(entry, str) else f"an array of {len(entry)}"
                raise Refused(400, f"{what}; allowed: {allowed}", f"{path}[{place}]")
            clean = tuple(SURROGATES.sub("\ufffd", text) for text in texts)
            sources.append(clean[0] if number < 2 else clean)
        return sources
