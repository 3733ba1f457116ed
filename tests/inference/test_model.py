"""``fairseq_ext.load(..)``: what it gives is what fairseq-interactive prints, for every system."""

import concurrent.futures
import copy
import logging
import pickle
import random
import re

import numpy as np
import pytest
import torch
from inference.odd import BY_HAND
from inference.printed import check_same, interactive
from inference.test_subwords import models  # noqa: F401
from options.systems import SYSTEMS

import fairseq_ext

SEARCH = {"beam": 3, "nbest": 2, "max_len_b": 7}
WORDS = ("--beam", 3, "--nbest", 2, "--max-len-b", 7)
LABELS = {"dual_lstm_classifier", "duo_classifier", "duo_classifier_mean_mlp"}
TYPED = [name for name, system in SYSTEMS.items() if system.lines]
SEVERAL = ("--lang-pairs", "xx-yy,zz-yy")
LINES = ["an1 av2 an3", "an4 av5 an6 at1", "an0 av0 an0", "unknown av1 an8 at2", "an1"]
DIRECTIONS = [
    ("dual_transformer", "yy-xx", ()),
    ("dual_supervised_transformer", "yy-xx", ()),
    ("tagged_transformer", "yy-xx", ()),
    ("dual_lstm_classifier", "label-text", ()),
    ("multiway_gru", "xx-zz", ()),
    ("routed_gru", "xx-zz", ()),
]


@pytest.fixture
def typed(data, tmp_path):
    """Function (system, checkpoint, lines, options...) -> what fairseq-interactive prints."""

    def printed(name, checkpoint, lines, *more):
        file = tmp_path / "lines"
        file.write_bytes(b"\n".join(lines) + b"\n")
        return interactive(name, data[SYSTEMS[name].data], checkpoint, file, *more)

    return printed


def texts_of(name):
    return list(SYSTEMS[name].lines) if name in LABELS else LINES


@pytest.mark.parametrize("name", TYPED)
def test_every_system_gives_what_is_printed(name, data, checkpoint_of, typed):
    checkpoint, texts = checkpoint_of(name), texts_of(name)
    model = fairseq_ext.load(checkpoint, data[SYSTEMS[name].data])
    expected = typed(name, checkpoint, [text.encode() for text in texts], *WORDS)
    check_same(model.translate(texts, **SEARCH), expected)


@pytest.mark.parametrize("name, direction, more", DIRECTIONS)
def test_other_directions(name, direction, more, data, checkpoint_of, typed):
    checkpoint = checkpoint_of(name)
    source, target = direction.split("-")
    texts = ["pos", "neg"] if source == "label" else ["un1 uv2 un3", "an1 av2", "unknown"]
    first = fairseq_ext.load(checkpoint, data[SYSTEMS[name].data])
    other = first.toward(direction)
    assert other.direction == direction and direction in first.directions
    assert other.loaded is first.loaded and other.toward(first.direction) is not other
    lines = [text.encode() for text in texts]
    expected = typed(name, checkpoint, lines, "-s", source, "-t", target, *WORDS)
    check_same(other.translate(texts, **SEARCH), expected)
    check_same(
        fairseq_ext.load(checkpoint, data[SYSTEMS[name].data], direction).translate(
            texts, **SEARCH
        ),
        expected,
    )
    again = first.translate(texts, **SEARCH)
    assert [r.text for r in first.translate(texts, **SEARCH)] == [r.text for r in again]
    with pytest.raises(ValueError, match="direction 'xx-qq': .*allowed: .*xx-yy|text-label"):
        first.toward("xx-qq")


def test_several_sources(data, checkpoint_of, typed):
    checkpoint = checkpoint_of("multiway_gru", *SEVERAL)
    pairs = [("an1 av2 an3", "iv2 in3 ko in1"), ("an4 av5", "iv5"), ("an1", "")]
    lines = [" ||| ".join(pair).encode() for pair in pairs]
    model = fairseq_ext.load(checkpoint, data["three"]).toward("xx+zz-yy")
    for more in ({}, {"source_average": "late"}):
        words = [f"--{name.replace('_', '-')}={value}" for name, value in more.items()]
        expected = typed(
            "multiway_gru", checkpoint, lines, "-s", "xx+zz", "-t", "yy", *WORDS, *words
        )
        results = model.translate(pairs, **SEARCH, **more)
        check_same(results, expected)
    assert results[0].source_tokens == [*pairs[0][0].split(), "</s>", *pairs[0][1].split(), "</s>"]
    with pytest.raises(TypeError, match=r"sentence 1: .* allowed: a tuple of 2 texts, in xx, zz"):
        model.translate([pairs[0], ("an1",)])


def test_ensembles(data, checkpoint_of, typed):
    paths = [checkpoint_of("transformer"), checkpoint_of("transformer", "--dropout", 0.3)]
    expected = typed("transformer", ":".join(map(str, paths)), [t.encode() for t in LINES], *WORDS)
    check_same(fairseq_ext.load(paths, data["two"]).translate(LINES, **SEARCH), expected)


@pytest.mark.parametrize("name", ["transformer", "dual_transformer", "routed_gru", "twin_lstm"])
def test_odd_lines_have_one_result_each(name, data, checkpoint_of, typed):
    checkpoint = checkpoint_of(name)
    lines = [line for line in BY_HAND if b"\r" not in line]
    texts = [line.decode("utf-8", errors="surrogateescape") for line in lines]
    model = fairseq_ext.load(checkpoint, data[SYSTEMS[name].data])
    results = model.translate(iter(texts), **SEARCH, batch=8)
    assert [result.source for result in results] == texts
    expected = typed(name, checkpoint, lines, *WORDS)
    for number, result in enumerate(results):
        if not texts[number].strip():  # fairseq-interactive searches, and finds words
            assert (result.text, result.error) == ("", "an empty text")
        elif "\ufeff" not in texts[number] and "\udcff" not in repr(texts[number]):
            best = expected[number][0]
            assert (result.text, result.error is None) == (best.text, best.score > -1e9)
    assert any("more than the model takes" in (result.error or "") for result in results)


@pytest.mark.parametrize(
    "name", ["transformer", "dual_transformer", "duo_transformer", "multiway_gru", "twin_lstm"]
)
def test_attention_is_a_distribution_over_the_source(name, data, checkpoint_of):
    model = fairseq_ext.load(checkpoint_of(name), data[SYSTEMS[name].data])
    for result in model.translate(LINES, **SEARCH):
        for hypothesis in result.hypotheses:
            size = (len(hypothesis.tokens), len(result.source_tokens))
            assert hypothesis.attention.shape == size
            assert np.allclose(hypothesis.attention.sum(axis=1), 1, atol=1e-4)
            assert len(hypothesis.token_scores) == len(hypothesis.tokens)
            assert hypothesis.tokens[-1] == "</s>" == result.source_tokens[-1]


def test_captions_are_joined(data, checkpoint_of, typed, models):  # noqa: F811
    """Sub-words of captions, by --bpe of the training or by a file that the caller names."""
    folder = data["captions"]
    (file, *_) = sorted(folder.rglob("*.npy"))
    path = checkpoint_of("twin_caption_lstm", "--bpe", "characters")
    expected = typed("twin_caption_lstm", path, [str(file).encode()], "--bpe", "characters")
    check_same(fairseq_ext.load(path, folder).translate([file], max_len_b=6), expected)
    named = fairseq_ext.load(checkpoint_of("twin_caption_lstm"), folder, subwords=models["xx"])
    assert type(named.coders().bpe).__name__ == "SentencepieceBPE"


@pytest.mark.parametrize("name", ["twin_caption_attention", "twin_speech_lstm"])
def test_features_and_arrays(name, data, checkpoint_of, typed):
    folder = data[SYSTEMS[name].data]
    files = sorted(folder.rglob("*.npy"))[:4]
    model = fairseq_ext.load(checkpoint_of(name), folder)
    assert model.kind in ("captions", "speech") and model.directions == ()
    expected = typed(name, checkpoint_of(name), [str(file).encode() for file in files],
                     "--beam", 3, "--nbest", 2)  # fmt: skip
    results = model.translate(files, beam=3, nbest=2, max_len_b=6)
    check_same(results, expected)
    arrays = model.translate([np.load(file) for file in files], beam=3, nbest=2, max_len_b=6)
    assert [result.text for result in arrays] == [result.text for result in results]
    with pytest.raises(TypeError, match="input 0: int; allowed: the name of a file"):
        model.translate([3])
    assert "there is no" in model.translate(["nothing.wav", files[0]])[0].error


def test_threads_share_a_model(data, checkpoint_of):
    model = fairseq_ext.load(checkpoint_of("dual_transformer"), data["two"])
    other = model.toward("yy-xx")
    work = [(model, LINES, {"beam": 2}), (other, ["un1 uv2"], {"beam": 3}), (model, LINES, {})] * 4

    def texts(job):
        return [result.text for result in job[0].translate(job[1], max_len_b=7, **job[2])]

    expected = [texts(job) for job in work]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(texts, work)) == expected


def test_nothing_of_the_process_changes(data, checkpoint_of):
    checkpoint = checkpoint_of("routed_gru")

    def state():
        root = logging.getLogger()
        return (torch.random.get_rng_state().tolist(), random.getstate(), root.level,
                list(root.handlers), torch.get_default_dtype(), torch.is_grad_enabled(),
                np.random.get_state()[1].tolist(), np.random.get_state()[2],
                torch.get_num_threads())  # fmt: skip

    before = state()
    model = fairseq_ext.load(checkpoint, data["three"], dtype="bfloat16")
    model.translate(LINES, **SEARCH)
    model.score(LINES, LINES)
    assert state() == before


def test_bad_input_is_named(data, checkpoint_of, tmp_path):
    checkpoint = checkpoint_of("dual_transformer")
    for arguments, error, message in [
        ((tmp_path / "no.pt",), FileNotFoundError, "there is no such checkpoint"),
        ((tmp_path,), FileNotFoundError, "a folder without manifest.json"),
        (([],), ValueError, "an empty list"),
        ((checkpoint, tmp_path / "no"), FileNotFoundError, "there is no such folder"),
        ((checkpoint, tmp_path), FileNotFoundError, "it has no dict.txt"),
        ((checkpoint, data["two"], "xx-qq"), (ValueError, FileNotFoundError), "qq"),
        ((checkpoint, data["two"], ""), ValueError, "'': not of the form SOURCE-TARGET"),
    ]:
        with pytest.raises(error, match=message):
            fairseq_ext.load(*arguments)
    for options, message in [
        ({"device": "nothing"}, "device 'nothing': allowed"),
        ({"dtype": "int8"}, "dtype 'int8': allowed: float32"),
        ({"subwords": tmp_path / "no"}, "there is no file"),
        ({"subwords": {"xx": checkpoint}}, "subwords: no file for yy"),
    ]:
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            fairseq_ext.load(checkpoint, data["two"], **options)
    model = fairseq_ext.load(checkpoint, data["two"])
    for call, error, message in [
        (lambda: model.translate("an1"), TypeError, "sentences: a str"),
        (lambda: model.translate(["an1", None]), TypeError, "sentence 1: NoneType"),
        (lambda: model.translate(["an1"], beams=3), ValueError, "did you mean beam"),
        (lambda: model.translate(["an1"], beam=0), ValueError, "beam 0"),
        (lambda: model.translate(["an1"], batch=0), ValueError, "batch 0"),
        (lambda: model.translate(["an1"], dual_alpha=2), ValueError, "0 to 1"),
        (lambda: model.score(["an1"], []), ValueError, "1 sources, but 0 targets"),
        (lambda: model.classify(["an1"]), ValueError, "allowed: translate, score"),
        (lambda: model.perplexity(["an1"]), ValueError, "allowed: translate, score"),
    ]:
        with pytest.raises(error, match=message):
            call()
    assert model.translate([]) == []


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"data": 5}, "data 5: allowed: the path of a folder"),
        ({"subwords": 5}, "subwords 5: allowed: a path, or {language: path}"),
        ({"subwords": {"xx": None}}, "subwords {'xx': None}: allowed: a path"),
    ],
)
def test_what_is_no_path_is_named(arguments, message, data, checkpoint_of):
    """The error was Python's, which names no argument."""
    with pytest.raises(TypeError, match=re.escape(message)):
        fairseq_ext.load(checkpoint_of("dual_transformer"), **{"data": data["two"], **arguments})


def test_an_alpha_that_is_no_number_is_named(data, checkpoint_of):
    model = fairseq_ext.load(checkpoint_of("dual_transformer"), data["two"])
    with pytest.raises(ValueError, match="dual.alpha .half.: "):
        model.translate(["an1"], dual_alpha="half")


@pytest.mark.parametrize("copied", [copy.deepcopy, pickle.dumps])
def test_a_model_is_not_copied(copied, data, checkpoint_of):
    model = fairseq_ext.load(checkpoint_of("transformer"), data["two"])
    with pytest.raises(TypeError, match="a loaded model cannot be copied or pickled; allowed"):
        copied(model)


def test_a_megabyte_is_answered(data, checkpoint_of):
    model = fairseq_ext.load(checkpoint_of("transformer"), data["two"])
    long, short = model.translate(["an1 " * 250_000, "an1"], beam=1, max_len_b=3)
    assert "more than the model takes" in long.error and short.error is None
