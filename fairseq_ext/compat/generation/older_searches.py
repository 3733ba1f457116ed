"""Searches and scorers as programs and plugins for fairseq 0.9 and 0.10 make and read them."""

from __future__ import annotations

import functools
import logging
import math
import re
from typing import Any, Callable, Iterator, NamedTuple

from ..computed_attributes import AttributeUntilSet
from ..patch_registry import PatchedModule, patch
from ..versions.dataclass_defaults import noted_places, sources_in

logger = logging.getLogger(__name__)
# how searches for 0.9 put the state of a decoder in the order of the hypotheses that survive
REORDERING = re.compile(r"\bmodel\.decoder\.reorder_incremental_state\(")

# what 0.9 gave the search itself, and gives its strategy today, with the defaults of 0.9
STRATEGY = {
    "sampling": False,
    "sampling_topk": -1,
    "sampling_topp": -1.0,
    "diverse_beam_groups": -1,
    "diverse_beam_strength": 0.5,
}
# the arguments of 0.9 by place, after the dictionary
BY_PLACE = (
    *("beam_size", "max_len_a", "max_len_b", "min_len", "normalize_scores", "len_penalty"),
    *("unk_penalty", "retain_dropout", "sampling", "sampling_topk", "sampling_topp", "temperature"),
    *("diverse_beam_groups", "diverse_beam_strength", "match_source_len", "no_repeat_ngram_size"),
)


@patch(
    "fairseq.sequence_generator",
    because="fairseq 0.10 makes searches with the models: programs for 0.9, which give them to "
    "generate alone, fail with \"missing 1 required positional argument: 'tgt_dict'\"",
)
def searches_are_made_without_models(module: PatchedModule) -> None:
    """Make a search without models when it is called with them."""
    searching = module.SequenceGenerator
    make, generate = searching.__init__, searching.generate

    @functools.wraps(make)
    def __init__(self: Any, models: Any, *more: Any, **options: Any) -> None:
        if not hasattr(models, "eos"):  # no dictionary
            make(self, models, *more, **options)
            return
        options = {**dict(zip(BY_PLACE, more)), **options}
        module.nn.Module.__init__(self)
        self.tgt_dict, self.beam_size = models, options.get("beam_size", 1)
        self.older_options = options

    @functools.wraps(generate)
    def generate_with(self: Any, models: Any, sample: Any, **options: Any) -> Any:
        older = vars(self).get("older_options")
        if older is not None and vars(self).get("older_models") is not models:
            make(self, models, self.tgt_dict, **present_options(module, self.tgt_dict, older))
            # nn.Module clears what it has at its making
            vars(self).update(older_options=older, older_models=models)
        return generate(self, models, sample, **options)

    searching.__init__ = __init__
    searching.generate = generate_with


def present_options(
    module: PatchedModule, dictionary: Any, older: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of today for those of a search of fairseq 0.9.

    Raises TypeError for `retain_dropout`, which is another option today.
    """
    options = {name: value for name, value in older.items() if name not in STRATEGY}
    if options.pop("retain_dropout", False):
        raise TypeError("SequenceGenerator(retain_dropout=True) of fairseq 0.9 is --retain-dropout")
    chosen = {**STRATEGY, **{name: older[name] for name in STRATEGY if name in older}}
    search = module.search
    if chosen["sampling"]:
        strategy = search.Sampling(dictionary, chosen["sampling_topk"], chosen["sampling_topp"])
    elif chosen["diverse_beam_groups"] > 0:
        groups, strength = chosen["diverse_beam_groups"], chosen["diverse_beam_strength"]
        strategy = search.DiverseBeamSearch(dictionary, groups, strength)
    elif options.get("match_source_len"):
        strategy = search.LengthConstrainedBeamSearch(dictionary, 1, 0, 1, 0)
    else:
        strategy = search.BeamSearch(dictionary)
    return {**options, "search_strategy": strategy}


def size_of_blocker(search: Any) -> Any:
    """Return the attribute `no_repeat_ngram_size` of a search, read from the module of today."""
    blocker = search.repeat_ngram_blocker
    return 0 if blocker is None else blocker.no_repeat_ngram_size


class RuleOfSearch(NamedTuple):
    """What a search calls in each step, in place of today's module, where it has its own rule."""

    rule: Callable[..., Any]
    no_repeat_ngram_size: int

    def __call__(self, *args: Any) -> Any:
        return self.rule(*args)


def blocker_of(search: Any) -> Any:
    """Return the attribute `repeat_ngram_blocker` of a search, whose class may replace the rule."""
    try:
        blocker = search._modules["repeat_ngram_blocker"]
    except KeyError:  # None is in the search itself, which is asked before this
        raise AttributeError("repeat_ngram_blocker") from None
    rules = (type(search)._no_repeat_ngram, type(search).calculate_banned_tokens)
    if all(rule.__module__ == __name__ for rule in rules):
        return blocker
    return RuleOfSearch(search._no_repeat_ngram, blocker.no_repeat_ngram_size)


@patch(
    "fairseq.sequence_generator",
    because="fairseq 0.12 moved --no-repeat-ngram-size to a module: searches of plugins for 0.10, "
    "with a _generate of their own, fail with \"has no attribute 'no_repeat_ngram_size'\", and a "
    "rule of their own, _no_repeat_ngram or calculate_banned_tokens, is not asked",
)
def searches_forbid_repeats_themselves(module: PatchedModule) -> None:
    """Give a search the attribute and the methods by which it forbade repeated n-grams."""
    searching = module.SequenceGenerator
    searching.no_repeat_ngram_size = AttributeUntilSet(size_of_blocker)
    searching.repeat_ngram_blocker = AttributeUntilSet(blocker_of)

    def _no_repeat_ngram(
        self: Any, tokens: Any, lprobs: Any, bsz: int, beam_size: int, step: int
    ) -> Any:
        """Return `lprobs` (R, V), in which what would repeat an n-gram of `tokens` is -inf."""
        if type(self).calculate_banned_tokens.__module__ == __name__:
            return module.NGramRepeatBlock._no_repeat_ngram(
                self, tokens, lprobs, bsz, beam_size, step
            )
        size = self.no_repeat_ngram_size
        if step + 2 >= size:
            followers = [followers_of(row[: step + 1].tolist(), size) for row in tokens]
            for row in range(bsz * beam_size):
                banned = self.calculate_banned_tokens(tokens, step, followers, size, row)
                lprobs[row, module.torch.tensor(banned, dtype=module.torch.long)] = -math.inf
        return lprobs

    def calculate_banned_tokens(
        self: Any,
        tokens: Any,
        step: int,
        gen_ngrams: list[dict[str, list[int]]],
        no_repeat_ngram_size: int,
        bbsz_idx: int,
    ) -> list[int]:
        """Return what followed the last words of a row before."""
        last = tokens[bbsz_idx, step + 2 - no_repeat_ngram_size : step + 1].tolist()
        return gen_ngrams[bbsz_idx].get(",".join(map(str, last)), [])

    def transpose_list(self: Any, l: list[list[int]]) -> list[list[int]]:  # noqa: E741
        """Return the columns of lists, as many as the shortest has."""
        return [list(column) for column in zip(*l)]

    searching._no_repeat_ngram = _no_repeat_ngram
    searching.calculate_banned_tokens = calculate_banned_tokens
    searching.transpose_list = transpose_list


def followers_of(words: list[int], size: int) -> dict[str, list[int]]:
    """Return {size - 1 words, with commas: the words that follow these} of a row."""
    followers: dict[str, list[int]] = {}
    for end in range(size - 1, len(words)):
        before = ",".join(map(str, words[end - size + 1 : end]))
        followers.setdefault(before, []).append(words[end])
    return followers


@patch(
    "fairseq.scoring.bleu",
    because="fairseq 0.12.2: programs for 0.9 and 0.10 that make bleu.Scorer(pad, eos, unk) fail "
    "with 'takes 2 positional arguments but 4 were given', those that make bleu.SacrebleuScorer() "
    "with \"missing 1 required positional argument: 'cfg'\"",
)
def scorers_take_numbers(module: PatchedModule) -> None:
    """Let BLEU be made with the numbers of padding, the end and unknown words, or with nothing."""
    scorer, sacre = module.Scorer, module.SacrebleuScorer
    stock, of_sacrebleu = scorer.__init__, sacre.__init__

    @functools.wraps(of_sacrebleu)
    def with_defaults(self: Any, cfg: Any = None) -> None:
        of_sacrebleu(self, module.SacrebleuConfig() if cfg is None else cfg)

    @functools.wraps(stock)
    def __init__(self: Any, *numbers: Any, **named: Any) -> None:
        older = set(named) & {"pad", "eos", "unk"}
        if len(numbers) == 3 or older:
            cfg = module.BleuConfig(**dict(zip(("pad", "eos", "unk"), numbers)), **named)
            stock(self, cfg)
        else:
            stock(self, *numbers, **named)

    scorer.__init__ = __init__
    sacre.__init__ = with_defaults


@patch(
    "fairseq.utils",
    because="fairseq 0.10 left decoder.reorder_incremental_state to those that replace it: "
    "searches of plugins for 0.9 that call it go on with the states of other hypotheses, without "
    "a message",
)
def calls_without_effect_are_named(module: PatchedModule) -> None:
    """Warn of each line of a --user-dir that calls the method of a decoder alone."""
    stock = module.import_user_module
    told: set[str] = set()

    @functools.wraps(stock)
    def import_user_module(args: Any) -> None:
        stock(args)
        for place in noted_places():
            if place not in told:
                told.add(place)
                for line in reordering_lines(place):
                    logger.warning(
                        f"{line}: decoder.reorder_incremental_state does nothing since fairseq "
                        "0.10, unless the decoder replaces it: call "
                        "decoder.reorder_incremental_state_scripting with the same arguments"
                    )

    module.import_user_module = import_user_module


def reordering_lines(place: str) -> Iterator[str]:
    """Yield FILE:LINE of each such call in the sources of a folder, or in a single file."""
    for file, text in sources_in(place).items():
        for number, line in enumerate(text.splitlines(), 1):
            if REORDERING.search(line):
                yield f"{file}:{number}"
