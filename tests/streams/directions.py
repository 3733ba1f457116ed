"""The checks of properties.py for a direction of a model of several languages, and broken twins.

A check takes the direction; a twin takes ``monkeypatch`` first and puts a mistake into what all
systems share or into a part of the same name. Sentences are of words that all dictionaries have.
"""

import copy

import pytest
import torch

from fairseq_ext.common.products import WeightCache
from fairseq_ext.streams import direction as direction_file
from properties import (
    check_batch_mate_invariance,
    check_beam_reorder,
    check_causality,
    check_padding_invariance,
    check_save_load,
    check_sees_everything,
    check_stepwise,
    collate,
    random_sentences,
    shift,
)

PAD, END = 1, 2
WORDS = {"xx": 13, "yy": 15, "zz": 11}  # entries of the dictionaries
FEWEST = min(WORDS.values())


def write_dictionaries(folder):
    """dict.LANG.txt for each language of ``WORDS``."""
    for lang, size in WORDS.items():
        lines = "".join(f"{lang}{number} 1\n" for number in range(size - 4))
        (folder / f"dict.{lang}.txt").write_text(lines, encoding="utf-8")
    return folder


def randomise(model, seed=0):
    """Weights far from their start: with zero biases and embeddings padding could not be seen."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                wide = "energy" in name or "sources" in name or name.endswith("embedding.weight")
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.copy_((1.0 if wide else 0.4) * noise)
    return model


def some_rows(lengths, seed, left=False):
    """Random sentences of a single source, padded: (B, S)."""
    return collate(random_sentences(lengths, FEWEST, END, seed=seed), PAD, left=left)


def sentences(lengths, seed, direction=None):
    """Random sentences; for several sources one after the other, each ending in the end symbol."""
    sources = len(getattr(getattr(direction, "encoder", None), "encoders", [None]))
    parts = [random_sentences(lengths, FEWEST, END, seed=seed + 7 * n) for n in range(sources)]
    return [torch.cat(together) for together in zip(*parts)]


def full(direction):
    """Source and decoder inputs of two sentences without padding."""
    source = collate(sentences([4, 4], 3, direction), PAD)
    return source, collate(shift(sentences([5, 5], 4)), PAD)


def padding(direction, left=True):
    sources, targets = sentences([5, 1, 3], 1, direction), sentences([4, 2, 6], 2)
    check_padding_invariance(direction, sources, targets, PAD, left_pad_source=left)


def right_padding(direction):
    padding(direction, left=False)


def batch_mates(direction):
    sources, targets = sentences([5, 1, 3], 1, direction), sentences([4, 2, 6], 2)
    check_batch_mate_invariance(direction, sources, targets, PAD, words=FEWEST)


def causality(direction):
    """The first input may stand for y_0, whose vector is zero: only later ones are changed."""
    check_causality(direction, *full(direction), PAD, words=FEWEST)


def sees_everything(direction):
    """For directions with one source."""
    source, _ = full(direction)
    check_sees_everything(
        direction, source, PAD, words=FEWEST, states=lambda out: out["encoded"][0][0]
    )


def stepwise(direction):
    source = collate(sentences([4, 2], 3, direction), PAD, left=True)
    check_stepwise(direction, source, full(direction)[1], PAD)


def beam_reorder(direction, lengths=(5, 2, 3), beams=3):
    source = collate(sentences(lengths, 5, direction), PAD, left=True)
    check_beam_reorder(direction, source, END, PAD, words=FEWEST, beams=beams, steps=6)


def save_and_load(direction, build=None):
    """build: makes the same direction with other weights."""
    build = build or (lambda: randomise(copy.deepcopy(direction), seed=1))
    check_save_load(direction, build, *full(direction), PAD)


@torch.no_grad()
def two_in_one_search(direction):
    """An ensemble: what a search keeps of the parameters of a model is of that model."""
    both = direction.eval(), randomise(copy.deepcopy(direction), seed=1).eval()
    source, prev_output = full(direction)

    def steps(model):
        encoder_out, state = model.encoder(source, None), {}
        return [
            model.decoder(prev_output[:, :length], encoder_out, incremental_state=state)[0]
            for length in range(1, 4)
        ]

    alone = [steps(model) for model in both]
    with WeightCache().active():
        torch.testing.assert_close([steps(model) for model in both], alone, rtol=1e-4, atol=1e-5)
    assert all((first - second).abs().max() > 0.1 for first, second in zip(*alone))


CHECKS = [padding, right_padding, batch_mates, causality, stepwise, beam_reorder, two_in_one_search]


def assert_unstored_energy_is_noticed(direction, holder):
    """Make the parameter ``holder(direction).energy`` a plain tensor: loading leaves it alone."""
    energy = holder(direction).energy.detach().clone()
    del holder(direction).energy
    holder(direction).energy = energy

    def build():
        fresh = randomise(copy.deepcopy(direction), seed=1)
        holder(fresh).energy = -energy
        return fresh

    with pytest.raises(AssertionError, match="after save and load"):
        save_and_load(direction, build)


# ---------------------------------------------------------------- twins


def backward_reading_starts_in_the_padding(monkeypatch, module):
    """module: where ``reversal`` is called."""

    def whole_row(pads):
        return torch.arange(pads.size(1) - 1, -1, -1).expand(pads.shape)

    monkeypatch.setattr(module, "reversal", whole_row)


def next_token_is_read(monkeypatch, decoder):
    """decoder: a class whose ``embed`` makes (R, T, D)."""
    real = decoder.embed

    def twin(*inputs, **named):
        vectors = real(*inputs, **named)
        return torch.cat([vectors[:, 1:], vectors[:, :1]], dim=1)

    monkeypatch.setattr(decoder, "embed", twin)


def state_stays_on_the_model(monkeypatch, module):
    """module: where ``decode`` is called; the cache is its last argument."""
    real, remembered = module.decode, {}

    def twin(*inputs):
        *rest, cache = inputs
        return real(*rest, None if cache is None else remembered)

    monkeypatch.setattr(module, "decode", twin)


def sources_are_dropped_from_the_front(monkeypatch):
    """The states follow their hypotheses, but of the sources the wrong ones are kept."""
    real = direction_file.reorder_cache

    def twin(cache, new_order):
        sources = {name: cache[name] for name in cache if "context_" in name}
        real(cache, new_order)
        for name, whole in sources.items():
            cache[name] = whole[-cache[name].size(0) :]

    monkeypatch.setattr(direction_file, "reorder_cache", twin)


def each_with_name(broken):
    """Arguments and ids of a test's parameters: (check, twin or partial of one, message)."""
    names = [getattr(twin, "func", twin).__name__ for _, twin, _ in broken]
    return dict(argvalues=broken, ids=names)


def assert_broken(direction, monkeypatch, check, twin, message):
    """With the twin's mistake the check fails, and says so in ``message``."""
    twin(monkeypatch)
    with pytest.raises(AssertionError, match=message):
        check(direction)
