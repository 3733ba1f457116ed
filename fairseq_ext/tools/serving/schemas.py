"""The shapes of requests and answers as JSON Schema, and the check of a value against one.

One source for both the check and the description at /openapi.json.
"""

from typing import Any, Dict, List, Optional, Tuple

from .limits import Limits

Schema = Dict[str, Any]
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}
SHOWN = 60  # characters of a wrong value


class Refused(Exception):
    """A request that is not answered.

    Attributes:
        status: of HTTP.
        message: what is wrong.
        path: where in the JSON, such as "$.sentences[3]", or None.
        allowed: what is, as a list, or None.
        seconds: after which another attempt may help, or None.
    """

    def __init__(
        self,
        status: int,
        message: str,
        path: Optional[str] = None,
        allowed: Optional[List[str]] = None,
        seconds: Optional[int] = None,
    ):
        super().__init__(message)
        self.status, self.message, self.path = status, message, path
        self.allowed, self.seconds = allowed, seconds


def shown(value: Any) -> str:
    """Return a value for an error, cut if it is long."""
    text = repr(value) if not isinstance(value, (list, dict)) else type(value).__name__
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def is_a(value: Any, kind: str) -> bool:
    """True if a value has a type of JSON Schema; True and False are no numbers."""
    if isinstance(value, bool) and kind in ("integer", "number"):
        return False
    return isinstance(value, TYPES[kind])  # type: ignore[arg-type]


def kinds_of(schema: Schema) -> List[str]:
    """Return the types that a schema allows."""
    kinds = schema.get("type", [])
    return kinds if isinstance(kinds, list) else [kinds]


def check(value: Any, schema: Schema, path: str = "$") -> None:
    """Raise Refused: 400 for another shape, 422 for a value outside the limits."""
    if "anyOf" in schema:
        fitting = [part for part in schema["anyOf"] if any(is_a(value, k) for k in kinds_of(part))]
        if not fitting:
            kinds = " or ".join(kind for part in schema["anyOf"] for kind in kinds_of(part))
            raise Refused(400, f"{shown(value)}; allowed: {kinds}", path)
        return check(value, fitting[0], path)
    types = kinds_of(schema)
    if types and not any(is_a(value, kind) for kind in types):
        raise Refused(400, f"{shown(value)}; allowed: {' or '.join(types)}", path)
    if "enum" in schema and value not in schema["enum"]:
        allowed = [str(entry) for entry in schema["enum"]]
        raise Refused(400, f"{shown(value)}; allowed: {', '.join(allowed)}", path, allowed)
    _check_size(value, schema, path)
    if isinstance(value, dict):
        _check_fields(value, schema, path)
    elif isinstance(value, list) and "items" in schema:
        for number, entry in enumerate(value):
            check(entry, schema["items"], f"{path}[{number}]")


def _check_fields(value: Dict[str, Any], schema: Schema, path: str) -> None:
    """Raise Refused for a missing, an unknown or a wrong field of an object."""
    properties = schema.get("properties", {})
    for name in schema.get("required", []):
        if name not in value:
            raise Refused(400, f"the field {name!r} is missing", path, list(properties))
    for name, entry in value.items():
        if name in properties:
            check(entry, properties[name], f"{path}.{name}")
        elif schema.get("additionalProperties") is False:
            allowed = list(properties)
            message = f"the field {shown(name)} is unknown; allowed: {', '.join(allowed)}"
            raise Refused(400, message, path, allowed)


def _check_size(value: Any, schema: Schema, path: str) -> None:
    """Raise Refused for a number, a text or an array that is too small or too large."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        least, most = schema.get("minimum"), schema.get("maximum")
        if (least is not None and value < least) or (most is not None and value > most):
            raise Refused(422, f"{value}; allowed: {least} to {most}", path)
    units: Dict[type, Tuple[str, str]] = {str: ("Length", "characters"), list: ("Items", "entries")}
    suffix, unit = units.get(type(value), ("", ""))
    least, most = schema.get(f"min{suffix}"), schema.get(f"max{suffix}")
    if suffix and least is not None and len(value) < least:
        raise Refused(422, f"{len(value)} {unit}; allowed: at least {least}", path)
    if suffix and most is not None and len(value) > most:
        raise Refused(422, f"{len(value)} {unit}; allowed: at most {most}", path)


# ---------------------------------------------------------------- requests


def search_options(limits: Limits) -> Dict[str, Schema]:
    """Return the options of a search, by the names of fairseq-generate with underscores."""
    beam = min(5, limits.max_beam)
    return {
        "beam": {"type": "integer", "minimum": 1, "maximum": limits.max_beam, "default": beam},
        "nbest": {"type": "integer", "minimum": 1, "maximum": limits.max_beam, "default": 1},
        "lenpen": {"type": "number", "minimum": -10, "maximum": 10, "default": 1},
        "unkpen": {"type": "number", "minimum": -1000, "maximum": 1000, "default": 0},
        "temperature": {"type": "number", "minimum": 0.01, "maximum": 100, "default": 1},
        "min_len": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 1},
        "max_len_a": {"type": "number", "minimum": 0, "maximum": 10, "default": 0},
        "max_len_b": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 200},
        "no_repeat_ngram_size": {"type": "integer", "minimum": 0, "maximum": 100, "default": 0},
        "dual_alpha": {"type": "number", "minimum": 0, "maximum": 1, "default": 1},
        "source_average": {"enum": ["early", "late"]},
        "well_formed_targets": {"type": "boolean"},
    }


def request_schemas(limits: Limits) -> Dict[str, Schema]:
    """Return {operation: schema of its request}."""
    text = {"type": "string", "maxLength": limits.max_characters}
    several = {"type": "array", "items": text, "minItems": 2}
    source = {"anyOf": [text, several]}
    attention = {"type": "boolean", "default": False}

    def listed(items: Schema) -> Schema:
        return {"type": "array", "items": items, "minItems": 1, "maxItems": limits.max_sentences}

    def fields(required: Dict[str, Schema], more: Dict[str, Schema]) -> Schema:
        choice = {"model": {"type": "string"}, "direction": {"type": "string"}}
        return {
            "type": "object",
            "properties": {**required, **choice, **more},
            "required": list(required),
            "additionalProperties": False,
        }

    flags = {"attention": attention, "extras": {"type": "boolean", "default": False}}
    return {
        "translate": fields({"sentences": listed(source)}, {**flags, **search_options(limits)}),
        "score": fields(
            {"sources": listed(source), "targets": listed(text)}, {"attention": attention}
        ),
        "classify": fields({"texts": listed(text)}, {}),
        "perplexity": fields({"texts": listed(text)}, {}),
    }


# ---------------------------------------------------------------- answers

NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
WORDS: Schema = {"type": "array", "items": {"type": "string"}}
NUMBERS: Schema = {"type": ["array", "null"], "items": NUMBER_OR_NULL}
MATRIX: Schema = {"type": ["array", "null"], "items": NUMBERS}
ERROR: Schema = {"type": ["string", "null"]}
SOURCE: Schema = {"anyOf": [{"type": "string"}, WORDS]}


def record(**properties: Schema) -> Schema:
    """Return the schema of an object that has these fields and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TOKEN_SCORES: Dict[str, Schema] = {
    "tokens": WORDS,
    "score": NUMBER_OR_NULL,
    "token_scores": NUMBERS,
}
HYPOTHESIS = record(
    text={"type": "string"}, **TOKEN_SCORES, attention=MATRIX, extras={"type": "object"}
)
RESULTS = {
    "translate": record(
        source=SOURCE,
        source_tokens=WORDS,
        hypotheses={"type": "array", "items": HYPOTHESIS},
        error=ERROR,
    ),
    "score": record(
        source=SOURCE, target={"type": "string"}, **TOKEN_SCORES, attention=MATRIX, error=ERROR
    ),
    "classify": record(
        source={"type": "string"},
        label={"type": "string"},
        probabilities={"type": "object"},
        tokens=WORDS,
        attention={"type": ["object", "null"]},
        error=ERROR,
    ),
    "perplexity": record(
        source={"type": "string"},
        perplexity=NUMBER_OR_NULL,
        **TOKEN_SCORES,
        extras={"type": "object"},
        error=ERROR,
    ),
}
# the field of an answer that holds the results
LISTS = {
    "translate": "translations",
    "score": "scores",
    "classify": "classifications",
    "perplexity": "perplexities",
}


def answer_schema(operation: str) -> Schema:
    """Return the schema of an answer."""
    results = {"type": "array", "items": RESULTS[operation]}
    name = {"type": "string"}
    return record(model=name, direction={"type": ["string", "null"]}, **{LISTS[operation]: results})


ERROR_ANSWER = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "path": {"type": "string"}, "allowed": WORDS},
    "required": ["error"],
    "additionalProperties": False,
}
