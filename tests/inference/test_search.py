"""Options of the search: each does what it says, or is refused by name."""

import math

import numpy as np
import pytest
import torch
from inference.stock import ALL

import fairseq_ext
from fairseq_ext.compat.generation.line_translator import Line
from fairseq_ext.inference.search import generation_options, split_options, tokenizer_options

LINES = ["an1 av2 an3", "an4", "an1 av2"]
REFUSED = [
    (dict(beam=0), "beam 0: allowed: a whole number"),
    (dict(beam="five"), "beam 'five': allowed: a whole number"),
    (dict(beam=math.inf), "beam inf: allowed: a whole number"),
    (dict(beam=True), "beam True: allowed"),
    (dict(nbest=0), "nbest 0: allowed"),
    (dict(batch=1.5), "batch 1.5: allowed"),
    (dict(max_tokens=0), "max_tokens 0: allowed"),
    (dict(lenpen=math.nan), "--lenpen nan is not allowed"),
    (dict(lenpen="a"), "lenpen: Value 'a' .* could not be converted to Float"),
    (dict(temperature=0), "--temperature 0.0 is not allowed"),
    (dict(min_len=9, max_len_b=3), "--min-len 9 is more than --max-len-b 3"),
    (dict(min_len=9, max_len_a=0.1, max_len_b=3), "min.len 9: (more words than|allowed: up to 3)"),
    (dict(sampling_topk=3), "--sampling-topk 3: allowed with --sampling"),
    (dict(sampling=True, sampling_topk=3, sampling_topp=0.5), "fairseq reads one; leave one out"),
    (
        dict(sampling=True),
        "sampling with nbest 1 and beam 5, .*; allowed: the same number for both",
    ),
    (dict(sampling=True, beam=3, nbest=2), "sampling with nbest 2 and beam 3"),
    (dict(diverse_beam_groups=3, beam=5), "does not divide --beam 5"),
    (
        dict(diverse_beam_groups=2, beam=4, diversity_rate=0.5),
        "groups 2 with --diversity-rate 0.5, another search",
    ),
    (dict(diverse_beam_strength=0.2), "--diverse-beam-strength does nothing without --diverse-be"),
    (dict(unnormalized=True, lenpen=0.5), "--lenpen does nothing with --unnormalized"),
    (dict(no_early_stop=True), "--no-early-stop does nothing: "),
    (dict(iter_decode_max_iter=3), "iter_decode_max_iter: the model refines nothing in steps"),
    (dict(print_alignment="hard"), "print_alignment: no option of translate; allowed: the atten"),
    (dict(retain_dropout=True), "retain_dropout: no option of translate"),
    (dict(lm_path="lm.pt"), "lm_path: no option of translate; allowed: fairseq-generate"),
    (dict(prefix_size=2), "prefix_size: no option of translate"),
    (dict(sacrebleu=True), "sacrebleu: no option of translate; allowed: fairseq-ext evaluate"),
    (dict(decoding_format="unigram"), "decoding_format: the model refines nothing in steps"),
    (dict(eos_token="x"), "eos_token: models of recordings alone read it"),
    (dict(constraints="ordered"), "constraints: no option of translate; allowed: fairseq-inter"),
    (dict(beams=2), r"beams: no option of the search \(did you mean beam"),
    (dict(replace_unk="nofile"), "--replace-unk nofile: there is no such file"),
    (dict(attention="no"), "attention 'no': allowed: True, False"),
    (dict(extras=2), "extras 2: allowed: True, False"),
    (dict(progress="yes"), "progress 'yes': allowed: True, False"),
    (dict(source_average="late"), "source_average: .* has no such option"),
]
OF_DUAL = [
    (dict(dual_alpha=2), "0 to 1"),
    (dict(dual_alpha=math.nan), "0 to 1"),
    (dict(dual_alpha="a"), "dual_alpha 'a': "),
    (dict(dual_alpha=None), "dual_alpha None: "),
    (dict(dual_alpha=0.5, lenpen=0.6), "--lenpen does nothing with --dual-alpha 0.5"),
    (dict(dual_alpha=0.5, unnormalized=True), "--unnormalized does nothing with --dual-alpha"),
    (dict(dual_alpha=0.5, dual_length_norm="x"), "dual_length_norm 'x': .*tokens, none"),
    (dict(dual_length_norm="none"), "--dual-length-norm none does nothing"),
    (dict(dual_alpha=0.5, dual_path="nowhere"), "--dual-path nowhere"),
]
WORK = [
    dict(beam=1, sampling=True, sampling_topp=0.5),
    dict(beam=3, nbest=3, sampling=True, sampling_topk=3),
    dict(diverse_beam_groups=2, beam=4, nbest=4),
    dict(diversity_rate=0.5, nbest=2),
    dict(match_source_len=True, beam=2),
    dict(unnormalized=True, replace_unk=""),
    dict(beam=1_000_000, no_repeat_ngram_size=1),
]


@pytest.fixture(scope="module", params=["stock lstm", "dual_transformer"])
def model(request, data, checkpoint_of):
    return fairseq_ext.load(checkpoint_of(request.param), data[ALL[request.param].data])


def test_what_is_not_allowed_is_named(model, data, checkpoint_of):
    for options, message in REFUSED:
        with pytest.raises(ValueError, match=message):
            model.translate(LINES, **options)
    if "dual" in type(model.task).__name__.lower():
        for options, message in OF_DUAL:
            with pytest.raises(ValueError, match=message):
                model.translate(LINES, **options)


def test_pairs_of_options_work(model):
    for options in WORK:
        results = model.translate(LINES, **{"max_len_b": 4, **options})
        assert all(len(r.hypotheses) == options.get("nbest", 1) for r in results), options
        assert all(math.isfinite(h.score) for r in results for h in r.hypotheses)
        if "match_source_len" in options:
            lengths = [len(r.hypotheses[0].tokens) for r in results]
            assert lengths == [len(r.source_tokens) for r in results]


@pytest.mark.parametrize("number", [np.int64, np.float32, torch.tensor, str, float])
def test_a_number_is_a_number_of_any_kind(model, number):
    """A grid of values often comes from NumPy, options of a program as text."""
    plain = model.translate(LINES, beam=3, nbest=2, batch=2, max_tokens=40, attention=True)
    counts = {"beam": number(3), "nbest": number(2), "batch": number(2), "max_tokens": number(40)}
    assert texts(model.translate(LINES, attention=np.True_, **counts)) == texts(plain)
    short = model.translate(LINES, max_len_b=number(2))
    assert texts(short) == texts(model.translate(LINES, max_len_b=2))
    if "dual" in type(model.task).__name__.lower():
        chosen = model.translate(LINES, dual_alpha=number(0))
        assert texts(chosen) == texts(model.translate(LINES, dual_alpha=0))


def texts(results):
    return [[hypothesis.text for hypothesis in result.hypotheses] for result in results]


def test_length_of_the_source_wins_over_min_len(model):
    """A short line has the same translation alone and beside longer ones."""
    lines = ["an4", "an1 av2", "an1 av2 an3"]
    for options in (dict(), dict(min_len=3), dict(min_len=3, batch=1)):
        results = model.translate(lines, match_source_len=True, **options)
        assert [len(r.hypotheses[0].tokens) for r in results] == [2, 3, 4]  # with the end symbol
        (alone,) = model.translate(lines[:1], match_source_len=True, **options)
        assert alone.text == results[0].text


def test_more_hypotheses_than_the_beam_are_the_beam(model):
    assert [len(r.hypotheses) for r in model.translate(LINES, beam=2, nbest=5)] == [2, 2, 2]


def test_batches_by_tokens(model):
    """They change nothing but the size of batches; what is longer than one has an error."""
    sizes, translator = [], model.translator(64, {"max_tokens": 6})
    sources = [translator.source(Line(number, text)) for number, text in enumerate(LINES)]
    for batch in translator.batches(translator.dataset(sources)):
        sizes.append(batch["net_input"]["src_tokens"].numel())
    assert max(sizes) <= 6 and len(sizes) > 1
    first = model.translate(LINES, max_len_b=4)
    again = model.translate(LINES, max_len_b=4, max_tokens=6)
    assert [r.text for r in again] == [r.text for r in first]
    long = model.translate(["an1 " * 9, "an4"], max_len_b=4, max_tokens=6)
    assert "10 tokens, more than --max-tokens 6" in long[0].error and long[1].error is None


@pytest.mark.parametrize("name", ["stock lstm", "dual_transformer", "routed_gru"])
def test_batches_change_no_translation(name, data, sharp):
    """With max_len_a fairseq's limit of all is that of the longest source of the batch."""
    model = fairseq_ext.load(sharp(name), data[ALL[name].data])
    texts = [*LINES, "an1 av2 an3 at1 an4 av5 an6"]
    for options in (dict(max_len_a=0.5, max_len_b=1), dict(max_len_a=1.5, max_len_b=2, beam=2)):
        together = model.translate(texts, **options)
        alone = [model.translate([text], **options)[0] for text in texts]
        assert [r.text for r in together] == [r.text for r in alone]
        lengths = [len(r.text.split()) for r in together]
        marks = int(name == "routed_gru")  # the task token is no word
        limits = [options["max_len_a"] * (len(r.source_tokens) - marks) for r in together]
        assert all(n <= int(limit + options["max_len_b"]) for n, limit in zip(lengths, limits))


def test_rankings_of_ensembles(data, checkpoint_of):
    """Dual inference with an ensemble, in both directions, has all hypotheses of the beam."""
    paths = [checkpoint_of("dual_transformer")] * 2
    model, alone = (fairseq_ext.load(names, data["two"]) for names in (paths, paths[:1]))
    options = dict(beam=3, nbest=3, dual_alpha=0.5, max_len_b=4)
    for both, single, text in [
        (model, alone, "an1 av2"),
        (model.toward("yy-xx"), alone.toward("yy-xx"), "un1"),
    ]:
        (result,), (other,) = (entry.translate([text], **options) for entry in (both, single))
        # twice the same model is that model
        assert [h.text for h in result.hypotheses] == [h.text for h in other.hypotheses]
        assert sorted(h.extras["dual"]["rank"] for h in result.hypotheses) == [0, 1, 2]


def test_pieces():
    assert split_options({"beam": 1, "dual_alpha": 0}) == ({"beam": 1}, {"dual_alpha": 0})
    assert generation_options({"lenpen": 2}).lenpen == 2
    assert tokenizer_options({"_name": "space"}, "xx", "yy") == {"_name": "space"}
    moses = {"_name": "moses", "source_lang": "xx", "target_lang": "yy"}
    assert tokenizer_options({"_name": "moses"}, "xx", "yy") == moses
    stored = {**moses, "source_lang": "en", "moses_no_escape": True}
    assert tokenizer_options(stored, "xx", "yy") == {**moses, "moses_no_escape": True}
    with pytest.raises(ValueError, match="tokenizer 'none': allowed: .*moses"):
        tokenizer_options({"_name": "none"}, "xx", "yy")
