"""What every sequence-to-sequence model must satisfy, as checks that any test can call.

A check takes a fairseq encoder-decoder model (``encoder``, ``decoder``) and raises AssertionError
with what was violated. It puts the model into evaluation mode, so that dropout does not interfere.
The broken twins in tests/common/test_properties.py show for each check that it can fail.

Legend: B sentences, S source positions, T target positions, K beams, V words.
Token rows are LongTensors; real sentences end with ``end``; rows are filled up with ``pad``.
"""

import io

import torch

TOLERANCE = 2e-5


def random_sentences(lengths, words, end, *, first_word=4, seed=0):
    """One LongTensor per length: random words from ``first_word`` on, ``end`` as the last."""
    generator = torch.Generator().manual_seed(seed)
    sentences = []
    for length in lengths:
        body = torch.randint(first_word, words, (length - 1,), generator=generator)
        sentences.append(torch.cat([body, torch.tensor([end])]))
    return sentences


def collate(sentences, pad, *, left=False, width=None):
    """Sentences of several lengths -> (B, width), padded on the right or on the left."""
    width = width or max(len(sentence) for sentence in sentences)
    rows = torch.full((len(sentences), width), pad)
    for row, sentence in zip(rows, sentences):
        if left:
            row[width - len(sentence) :] = sentence
        else:
            row[: len(sentence)] = sentence
    return rows


def shift(sentences):
    """The decoder's inputs: the end symbol comes first, the last token is dropped."""
    return [torch.cat([sentence[-1:], sentence[:-1]]) for sentence in sentences]


def check_same_numbers(computed, expected, tolerance):
    """{name: array} of two paths; the tolerance is of the largest number of each array."""
    assert computed.keys() == expected.keys()
    for name, expected_tensor in expected.items():
        error = (computed[name] - expected_tensor).abs().max().item()
        scale = max(expected_tensor.abs().max().item(), 1e-3)
        assert error <= tolerance * scale, f"{name}: {error:.3g} of {scale:.3g}"


def _lengths(tokens, pad):
    return (tokens != pad).sum(dim=1)  # (B,)


def _encode(model, source, pad):
    return model.encoder(source, src_lengths=_lengths(source, pad))


def _logits(model, source, prev_output, pad):
    """Teacher-forced scores (B, T, V)."""
    return model.decoder(prev_output, encoder_out=_encode(model, source, pad))[0]


def _assert_close(actual, expected, what, tolerance=TOLERANCE):
    assert actual.shape == expected.shape, f"{what}: {actual.shape} instead of {expected.shape}"
    error = (actual - expected).abs().max().item()
    assert error <= tolerance, f"{what}: differs by {error:.3g}, more than {tolerance:g}"


@torch.no_grad()
def check_padding_invariance(model, sources, targets, pad, *, left_pad_source, extra=3):
    """A sentence's scores are the same alone and among longer, differently padded mates.

    sources, targets: sentences of several lengths, ending with the end symbol.
    """
    model.eval()
    inputs = shift(targets)
    source = collate(
        sources, pad, left=left_pad_source, width=extra + max(len(sentence) for sentence in sources)
    )
    prev_output = collate(inputs, pad, width=extra + max(len(sentence) for sentence in inputs))
    together = _logits(model, source, prev_output, pad)  # (B, T, V)
    for number, (sentence, prev) in enumerate(zip(sources, inputs)):
        alone = _logits(model, sentence.unsqueeze(0), prev.unsqueeze(0), pad)[0]  # (T, V)
        _assert_close(together[number, : len(prev)], alone, f"padding of sentence {number}")


@torch.no_grad()
def check_batch_mate_invariance(model, sources, targets, pad, *, words, first_word=4):
    """Scores of sentence 0 do not depend on the words of the other sentences in the batch."""
    model.eval()
    source, prev_output = collate(sources, pad), collate(shift(targets), pad)
    before = _logits(model, source, prev_output, pad)[0]
    for rows in (source, prev_output):
        mates = rows[1:]
        changed = first_word + (mates + 1 - first_word) % (words - first_word)
        mates.copy_(torch.where(mates >= first_word, changed, mates))
    after = _logits(model, source, prev_output, pad)[0]
    _assert_close(after, before, "scores after the words of the batch mates changed")


def _exchange(tokens, position, words, first_word=4):
    """Other words at ``position`` of every row."""
    changed = tokens.clone()
    old = tokens[:, position]
    changed[:, position] = first_word + (old + 1 - first_word) % (words - first_word)
    return changed


@torch.no_grad()
def check_causality(model, source, prev_output, pad, *, words):
    """Scores at position t depend on the inputs up to t, on all of them, and on no later one.

    prev_output: (B, T) without padding, T > 1.
    """
    model.eval()
    before = _logits(model, source, prev_output, pad)
    for position in range(1, prev_output.shape[1]):
        after = _logits(model, source, _exchange(prev_output, position, words), pad)
        _assert_close(
            after[:, :position], before[:, :position], f"scores before changed input {position}"
        )
        moved = (after - before)[:, position:].abs().amax(dim=-1)  # (B, T - position)
        assert (moved > TOLERANCE).all(), f"input {position} does not reach every later score"


@torch.no_grad()
def check_sees_everything(model, source, pad, *, words, states=None):
    """Every state of the encoder depends on every word of its sentence, later ones included.

    source: (B, S) without padding. states: how to get (B, S, D) from the encoder's output; by
    default fairseq's ``encoder_out``.
    """
    model.eval()

    def encoded(tokens):
        out = _encode(model, tokens, pad)
        return states(out) if states else out["encoder_out"][0].transpose(0, 1)

    before = encoded(source)
    for position in range(source.shape[1]):
        moved = (encoded(_exchange(source, position, words)) - before).abs().amax(dim=-1)  # (B, S)
        assert (moved > TOLERANCE).all(), f"source word {position} does not reach every state"


@torch.no_grad()
def check_stepwise(model, source, prev_output, pad):
    """Decoding word by word with ``incremental_state`` gives the teacher-forced scores.

    Twice over the same encoder output with fresh states: nothing may stay on the model.
    """
    model.eval()
    expected = _logits(model, source, prev_output, pad)
    encoder_out = _encode(model, source, pad)
    for attempt in ("first", "second"):
        state = {}
        for step in range(prev_output.shape[1]):
            scores = model.decoder(
                prev_output[:, : step + 1], encoder_out=encoder_out, incremental_state=state
            )[0]
            _assert_close(scores[:, -1], expected[:, step], f"{attempt} pass, step {step}")


@torch.no_grad()
def check_beam_reorder(model, source, end, pad, *, words, beams=3, steps=5, seed=0, first_word=4):
    """Stepwise scores stay those of the hypotheses while beams are re-ordered and sentences end.

    This is the protocol of fairseq's SequenceGenerator: the encoder output is repeated for each
    beam; before each step both it and the states follow the surviving hypotheses; a finished
    sentence leaves the batch (here: the last one, half-way).
    """
    model.eval()
    generator = torch.Generator().manual_seed(seed)
    sentences = source.shape[0]
    owners = torch.arange(sentences).repeat_interleave(beams)  # (B * K,)
    encoder_out = model.encoder.reorder_encoder_out(_encode(model, source, pad), owners)
    prefixes, state = torch.full((sentences * beams, 1), end), {}
    for step in range(steps):
        scores = model.decoder(prefixes, encoder_out=encoder_out, incremental_state=state)[0]
        expected = _logits(model, source[owners], prefixes, pad)[:, -1]
        _assert_close(scores[:, -1], expected, f"scores of step {step} after re-ordering")
        if step == steps // 2 and sentences > 1:
            sentences -= 1
        parents = torch.randint(beams, (sentences, beams), generator=generator)
        order = (parents + beams * torch.arange(sentences).unsqueeze(1)).view(-1)  # (B * K,)
        nexts = torch.randint(first_word, words, (sentences * beams, 1), generator=generator)
        owners, prefixes = owners[order], torch.cat([prefixes[order], nexts], dim=1)
        model.decoder.reorder_incremental_state_scripting(state, order)
        encoder_out = model.encoder.reorder_encoder_out(encoder_out, order)


def gradients(loss, named_parameters):
    """{name: gradient or None} of ``loss``, leaving ``.grad`` of the parameters alone."""
    named = dict(named_parameters)
    assert named, "no parameters to check"
    tensors = torch.autograd.grad(loss, list(named.values()), allow_unused=True, retain_graph=True)
    return dict(zip(named, tensors))


def check_no_gradient(loss, named_parameters):
    """``loss`` reaches none of the parameters: gradients are absent or zero to the last bit."""
    by_name = gradients(loss, named_parameters)
    reached = [name for name, grad in by_name.items() if grad is not None and grad.any()]
    assert not reached, f"the loss moves {reached}"


def check_gradient_everywhere(loss, named_parameters):
    """``loss`` reaches each of the parameters."""
    by_name = gradients(loss, named_parameters)
    missed = [name for name, grad in by_name.items() if grad is None or not grad.any()]
    assert not missed, f"the loss does not move {missed}"


@torch.no_grad()
def check_save_load(model, build, source, prev_output, pad):
    """State written to a file and loaded into a newly built model gives the same scores.

    build: makes a model of the same configuration with other random weights.
    """
    model.eval()
    stored = io.BytesIO()
    torch.save(model.state_dict(), stored)
    stored.seek(0)
    fresh = build().eval()
    expected = _logits(model, source, prev_output, pad)
    distance = (_logits(fresh, source, prev_output, pad) - expected).abs().max()
    assert distance > TOLERANCE, "the new model has the same weights before they are loaded"
    fresh.load_state_dict(torch.load(stored, weights_only=True), strict=True)
    actual = _logits(fresh, source, prev_output, pad)
    _assert_close(actual, expected, "scores after save and load", tolerance=0.0)
