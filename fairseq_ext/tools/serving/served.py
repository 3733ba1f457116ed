"""A model as it is served: its directions, what each of them does, and its computations."""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...inference.extras import routed_members
from ...inference.model import Model
from .answers import of_classification, of_perplexity, of_score, of_translation
from .limits import Limits
from .schemas import Refused

# what a request may ask of a model of a kind
OPERATIONS: Dict[str, Tuple[str, ...]] = {
    "translation": ("translate", "score"),
    "classification": ("classify", "translate"),
    "language_model": ("perplexity",),
}
# directions of several sources are kept up to this number in all
MOST_DIRECTIONS = 256


class Key(NamedTuple):
    """What sentences of one batch have in common; options: sorted pairs of name and value."""

    model: str
    direction: str
    operation: str
    options: Tuple[Tuple[str, Any], ...]


class Pair(NamedTuple):
    """A source, and the target that is scored."""

    source: Any
    target: str


class ServedModel:
    """A model under a name.

    Args:
        name: in requests.
        model: in its first direction.
        limits: of the server.
    """

    engine = "fairseq"

    def __init__(self, name: str, model: Model, limits: Limits):
        if model.kind not in OPERATIONS:
            raise ValueError(
                f"{name}: the model is for {model.kind}; allowed: models that read text "
                f"({', '.join(OPERATIONS)})"
            )
        self.name, self.limits, self.first = name, limits, model
        names = model.directions or ("",)
        self.directions = {
            direction: model.toward(direction) if direction else model for direction in names
        }
        self._add_several_sources()
        for member in self.directions.values():
            member.coders()  # made here: the first request of a direction does not wait for them

    def _add_several_sources(self) -> None:
        """Add, for each target, the direction from all of its sources, where there is one."""
        pairs = [member.pair for member in self.directions.values() if member.pair]
        for target in dict.fromkeys(pair.target for pair in pairs):
            sources = [pair.sources[0] for pair in pairs if pair.target == target]
            direction = f"{'+'.join(dict.fromkeys(sources))}-{target}"
            if direction not in self.directions:
                try:
                    self.directions[direction] = self.first.toward(direction)
                except ValueError:
                    continue  # a model that reads one source

    # ---------------------------------------------------------------- what it is

    def toward(self, direction: Optional[str]) -> Model:
        """Return the model in a direction, or in its first; Refused with those that there are."""
        if direction is None:
            return self.first
        if direction not in self.directions and "+" in direction:
            try:
                # several sources: there are too many of them to list
                other = self.first.toward(direction)
            except ValueError as error:
                raise self._no_direction(str(error)) from error
            if len(self.directions) < MOST_DIRECTIONS:
                self.directions[direction] = other
            return other
        if direction not in self.directions:
            raise self._no_direction(f"{self.name} has no direction {direction!r:.60}")
        return self.directions[direction]

    def _no_direction(self, message: str) -> Refused:
        """Return the error for a direction that there is not."""
        # a copy: another request may add one
        names = [name for name in list(self.directions) if name]
        return Refused(404, message, "$.direction", names)

    def check(self, operation: str, model: Model) -> None:
        """Raise Refused for what a direction does not do."""
        allowed = OPERATIONS[model.kind]
        if operation not in allowed:
            paths = [f"/{name}" for name in allowed]
            message = f"{self.name} is for {model.kind}; allowed: {', '.join(paths)}"
            raise Refused(422, message, None, paths)

    def description(self) -> Dict[str, Any]:
        """Return what GET /models says of it."""
        return {
            "name": self.name,
            "engine": self.engine,
            "device": str(self.first.device),
            "direction": self.first.direction or None,
            "directions": [self._direction(name) for name in list(self.directions)],
            "subwords": self.first.loaded.subwords.kind,
            "has_router": bool(routed_members(self.first.loaded.models)),
            "has_twin": self.first.loaded.twin is not None,
        }

    def summary(self) -> str:
        """Return what the server says of it when it starts."""
        directions = ", ".join(name for name in self.directions if name)
        return f"{self.first.kind} {directions}".strip() + f"; {self.engine}, {self.first.device}"

    def _direction(self, name: str) -> Dict[str, Any]:
        """Return what GET /models says of a direction."""
        model = self.directions[name]
        pair = model.pair
        reverse = f"{pair.target}-{pair.sources[0]}" if pair and len(pair.sources) == 1 else ""
        return {
            "direction": name or None,
            "kind": model.kind,
            "operations": list(OPERATIONS[model.kind]),
            "sources": list(pair.sources) if pair else [],
            "target": pair.target if pair else None,
            "reverse": reverse if reverse and reverse in self.directions else None,
        }

    # ---------------------------------------------------------------- what it computes

    def length(self, model: Model, item: Any) -> int:
        """Return about how many tokens an item has, by which batches are made."""
        if isinstance(item, Pair):
            return self.length(model, item.source) + self.length(model, item.target)
        if isinstance(item, tuple):
            return sum(self.length(model, text) for text in item)
        coder = model.coders().bpe
        return len((coder.encode(item) if coder is not None else item).split()) + 1

    def run(self, key: Key, items: Sequence[Any]) -> List[Dict[str, Any]]:
        """Return the answers of items with the same key; ValueError for options it has not."""
        model, options = self.toward(key.direction or None), dict(key.options)
        return getattr(self, key.operation)(model, items, options)

    def translate(
        self, model: Model, items: Sequence[Any], options: Dict[str, Any]
    ) -> List[Dict[str, Any]]:
        """Return translations."""
        results = model.translate(items, batch=self.limits.batch_sentences, **options)
        return [of_translation(result) for result in results]

    def score(
        self, model: Model, items: Sequence[Pair], options: Dict[str, Any]
    ) -> List[Dict[str, Any]]:
        """Return how probable targets are."""
        sources, targets = [pair.source for pair in items], [pair.target for pair in items]
        results = model.score(sources, targets, batch=self.limits.batch_sentences)
        return [of_score(result, options.get("attention", False)) for result in results]

    def classify(
        self, model: Model, items: Sequence[str], options: Dict[str, Any]
    ) -> List[Dict[str, Any]]:
        """Return labels."""
        results = model.classify(items, batch=self.limits.batch_sentences)
        return [of_classification(result) for result in results]

    def perplexity(
        self, model: Model, items: Sequence[str], options: Dict[str, Any]
    ) -> List[Dict[str, Any]]:
        """Return perplexities."""
        results = model.perplexity(items, batch=self.limits.batch_sentences)
        return [of_perplexity(result) for result in results]
