"""What can be trained: the names of the systems and what each is.

multi                  every direction in one model, all sentences
single.DIRECTION       one direction, all sentences
zero-shot              like multi, without both directions of one pair
multi.PERCENT.PAIR     every direction, one pair (both directions of it) cut to PERCENT
single.PERCENT.DIRECTION   one direction of the cut pair
long.PERCENT.DIRECTION     the same with more updates
lm.DIRECTION           language model of the target side of the other pairs
df.PERCENT.DIRECTION   deep fusion of single.PERCENT.DIRECTION and lm.DIRECTION
more.PERCENT.DIRECTION     single.PERCENT.DIRECTION with the updates of df, no language model
... .tuned             after training: what is shared and the output layers once more
"""

from dataclasses import dataclass
from typing import Tuple

from recipe_tools import RecipeError

from .settings import reverse


@dataclass(frozen=True)
class System:
    """One trainable system.

    folder: name of its training data below DATA/bin. pairs: the directions it is trained on.
    directions: those it is evaluated on. section: of the settings, for the length of training and
    the options that win. starts_from: the systems of the same seed that must be there before.
    pivoted: directions that are also translated through the pivot language.
    """

    name: str
    folder: str
    pairs: Tuple[str, ...]
    directions: Tuple[str, ...]
    section: str = "train"
    starts_from: Tuple[str, ...] = ()
    pivoted: Tuple[str, ...] = ()

    @property
    def kind(self):
        """Return the kind: multi, single, long, more, zero-shot, lm or df."""
        return self.name.split(".")[0]

    @property
    def tuned(self):
        return self.section == "tune"

    @property
    def sections(self):
        """Return the sections of the settings that matter to it beside those that matter to all."""
        names = [] if self.section == "train" else [self.section]
        if self.kind == "zero-shot":
            names.append("zero_shot")
        if self.kind in ("df", "lm") or "." in self.folder:
            names.append("low_resource")
        if self.kind == "df":
            names.append("language_model")
        return tuple(dict.fromkeys(names))


def cut_folder(pair, percent):
    """Name of the training data with one cut pair."""
    return f"{pair}.{percent}"


def low_resource_systems(settings, pair, percent):
    """Return a model of all directions, and the baselines for each direction of the cut pair."""
    folder, both = cut_folder(pair, percent), (pair, reverse(pair))
    yield System(f"multi.{percent}.{pair}", folder, settings.directions, both, "low_resource")
    for direction in both:
        name = f"single.{percent}.{direction}"
        yield System(name, folder, (direction,), (direction,), "low_resource")
        yield System(f"long.{percent}.{direction}", folder, (direction,), (direction,), "long")
        # what deep fusion trains, as long as it does
        more = f"more.{percent}.{direction}"
        yield System(more, folder, (direction,), (direction,), "fusion", (name,))
        before = (name, f"lm.{direction}")
        name = f"df.{percent}.{direction}"
        yield System(name, folder, (direction,), (direction,), "fusion", before)


def trainable(settings):
    """Yield all systems but the tuned ones."""
    yield System("multi", "all", settings.directions, settings.directions)
    for direction in settings.directions:
        yield System(f"single.{direction}", "all", (direction,), (direction,))
    untrained = (settings.zero_pair, reverse(settings.zero_pair))
    pairs = tuple(pair for pair in settings.directions if pair not in untrained)
    share = settings.share["zero_shot"]
    yield System("zero-shot", share, pairs, untrained, pivoted=untrained)
    for direction in settings.low_directions:
        yield System(f"lm.{direction}", f"lm.{direction}", (), (), "language_model")
    for pair in settings.low_pairs:
        for percent in settings.percents:
            yield from low_resource_systems(settings, pair, percent)


def all_systems(settings):
    """Return {name: System}."""
    systems = {}
    for system in trainable(settings):
        systems[system.name] = system
        if len(system.pairs) > 1:
            tuned = System(
                f"{system.name}.tuned",
                system.folder,
                system.pairs,
                system.directions,
                "tune",
                (system.name,),
                system.pivoted,
            )
            systems[tuned.name] = tuned
    return systems


def find_system(settings, name):
    """Return the System called `name`. Raises RecipeError with all that is allowed."""
    systems = all_systems(settings)
    if name not in systems:
        percents = "|".join(map(str, settings.percents))
        low = "|".join(settings.low_directions)
        raise RecipeError(
            f"SYSTEM {name!r} is unknown; allowed: multi, zero-shot, "
            f"single.({'|'.join(settings.directions)}), "
            f"multi.({percents}).({'|'.join(settings.low_pairs)}), "
            f"(single|long|more|df).({percents}).({low}), lm.({low}); multi and zero-shot also "
            "with .tuned at the end"
        )
    return systems[name]
