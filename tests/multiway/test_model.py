"""The fairseq model: numbers of parameters, directions, several sources, errors of bad input.

Legend: B sentences, S source positions, T target positions, V words.
"""

import re
import types
from pathlib import Path

import pytest
import torch
from common.inprocess import configuration
from fairseq import options
from multiway.conftest import SMALL
from streams.directions import PAD, WORDS, some_rows

from fairseq_ext.multiway import model as model_file
from fairseq_ext.multiway import modules
from fairseq_ext.multiway.config import MultiwayConfig
from fairseq_ext.multiway.model import MultiwayModel
from properties import check_no_gradient

# closed formulae: D embedding, H decoder, G encoder, A annotations, O readout, I, J initialiser
PAPER = {"D": 620, "H": 1000, "A": 1200, "O": 1000, "I": 500, "J": 600}
TEST = {"D": 10, "H": 12, "A": 14, "O": 9, "I": 7, "J": 8}


def encoder_parameters(V, G, D, A, **_others):
    """Embedding, two GRUs with one bias each, W_adp and b_adp."""
    gru = 3 * G * D + 3 * G * G + 3 * G
    return V * D + 2 * gru + 2 * G * A + A


def shared_parameters(H, A, I, J, **_others):  # noqa: E741
    """L_enc, b, L_dec, u; P, b_P; W, V."""
    return (A * A + A + A * A + A) + (A * H + H) + (A * I + I * J)


def decoder_parameters(V, D, H, A, O, J, **_others):  # noqa: E741
    """Embedding; U, c; W_y, W_z; the GRU of [E ; c]; the readout; the softmax."""
    gru = 3 * H * (D + H) + 3 * H * H + 3 * H
    readout = O * H + O * D + O * H + O
    return V * D + (J * H + H) + (A * D + A * H) + gru + readout + (V * O + V)


def trained(model):
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def around_a_hub(count):
    """All directions between l0 and each of ``count - 1`` other languages."""
    return ",".join(f"l0-l{n},l{n}-l0" for n in range(1, count))


class Words:
    """The part of fairseq's Dictionary that building a model reads."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def pad(self):
        return PAD


def model_of(pairs, words, cfg=None, **fields):
    """A model whose languages have ``words`` words each, without a task.

    cfg: its configuration; by default TEST's sizes. fields: changes of it.
    """
    if cfg is None:
        sizes = {option[2:].replace("-", "_"): value for option, value in SMALL.items()}
        cfg = MultiwayConfig(**sizes, max_source_positions=50, max_target_positions=50)
    for name, value in fields.items():
        setattr(cfg, name, value)
    langs = {lang for pair in pairs.split(",") for lang in pair.split("-")}
    dictionaries = dict.fromkeys(langs, Words(words))
    task = types.SimpleNamespace(dictionaries=dictionaries, pairs=pairs.split(","))
    return MultiwayModel.build_model(cfg, task)


def test_number_of_parameters_grows_linearly():
    """2, 4, 6 and 10 languages: the closed formula, and the same step for every language."""
    numbers = {count: trained(model_of(around_a_hub(count), 30)) for count in (2, 4, 6, 10)}
    language = encoder_parameters(V=30, G=12, **TEST) + decoder_parameters(V=30, **TEST)
    for count, number in numbers.items():
        assert number == count * language + shared_parameters(**TEST)
    assert numbers[4] - numbers[2] == numbers[6] - numbers[4] == (numbers[10] - numbers[6]) / 2


def test_one_direction_has_one_encoder_and_one_decoder():
    model = model_of("l0-l1", 30)
    assert list(model.encoders) == ["l0"] and list(model.decoders) == ["l1"]
    parts = encoder_parameters(V=30, G=12, **TEST), decoder_parameters(V=30, **TEST)
    assert trained(model) == sum(parts) + shared_parameters(**TEST)


def test_what_is_not_trained_is_the_zero_bias_of_the_recurrence():
    model = model_of("l0-l1", 30)
    frozen = {name: p for name, p in model.named_parameters() if not p.requires_grad}
    assert set(frozen) == {
        f"encoders.l0.recurrence.{side}.bias_hh_l0" for side in ("forwards", "backwards")
    }
    assert not any(parameter.any() for parameter in frozen.values())


def architecture(name, data):
    """The model's configuration that fairseq-train would be given for ``--arch name``."""
    arguments = [data, "--task", "multiway_translation", "--arch", name, "--lang-pairs", "xx-yy"]
    return configuration(options.get_training_parser(), arguments).model


def test_sizes_of_the_paper(dictionaries, monkeypatch):
    """Sec. 5.3, vocabularies of 30k: ten pairs in one model have about half the parameters."""
    for slow_on_meta in ("orthogonal_", "normal_"):
        monkeypatch.setattr(torch.nn.init, slow_on_meta, lambda weight, **_options: weight)
    pairs = ",".join(f"en-{lang},{lang}-en" for lang in ("fr", "cs", "de", "ru", "fi"))
    with torch.device("meta"):
        model = model_of(pairs, 30000, architecture("multiway_gru_wmt15", dictionaries))
    encoder = encoder_parameters(V=30000, G=1000, **PAPER)
    decoder = decoder_parameters(V=30000, **PAPER)
    multi = 6 * (encoder + decoder) + shared_parameters(**PAPER)
    assert trained(model) == multi
    single = encoder + decoder + shared_parameters(**PAPER)
    assert 97e6 < single < 98e6
    assert 10 * single / multi == pytest.approx(1.74, abs=0.01)  # "twice more", Sec. 6
    assert model.encoders["fi"].recurrence.forwards.hidden_size == 1000
    assert tuple(model.decoders["fi"].output.weight.shape) == (30000, 1000)


def written_formula(card, part):
    """The number that a formula of the card, "V D + 2 (3G + O)", has for the paper's sizes."""
    (formula,) = re.findall(rf"^    {part} +(.*)$", card, re.MULTILINE)
    python = re.sub(r"(?<=[\w)]) (?=[\w(])", "*", re.sub(r"(\d)([A-Z])", r"\1*\2", formula))
    names = {**PAPER, "V": 30000, "G": 1000, "I_h": PAPER["I"], "I": PAPER["J"]}
    return eval(python, {}, names)


def test_the_card_has_the_formula_and_its_numbers():
    card = Path(model_file.__file__).with_name("README.md").read_text(encoding="utf-8")
    encoder = encoder_parameters(V=30000, G=1000, **PAPER)
    decoder = decoder_parameters(V=30000, **PAPER)
    shared = shared_parameters(**PAPER)
    for part, number in (("encoder", encoder), ("decoder", decoder), ("shared", shared)):
        assert written_formula(card, part) == number
    rows = re.findall(r"^\| (\d+) \| ([\d,]+) \| ([\d,]+) \|$", card, re.MULTILINE)
    assert [int(languages) for languages, _, _ in rows] == [2, 4, 6, 10]
    for row in rows:
        languages, multi, singles = (int(number.replace(",", "")) for number in row)
        assert multi == languages * (encoder + decoder) + shared
        assert singles == languages * (languages - 1) * (encoder + decoder + shared)


def test_tiny_architecture(dictionaries):
    tiny = model_of("xx-yy", 20, architecture("multiway_gru_tiny", dictionaries))
    sizes = {"D": 64, "H": 96, "A": 96, "O": 96, "I": 48, "J": 48}
    encoder, decoder = encoder_parameters(V=20, G=96, **sizes), decoder_parameters(V=20, **sizes)
    assert trained(tiny) == encoder + decoder + shared_parameters(**sizes)


@pytest.mark.parametrize(
    "option, expected",
    [
        ("yy=5", {"xx": 12, "yy": 5, "zz": 12}),
        ("6", {"xx": 6, "yy": 6, "zz": 6}),
        ("6,zz=4, yy=3", {"xx": 6, "yy": 3, "zz": 4}),
        ("zz=4,yy=3,6", {"xx": 6, "yy": 3, "zz": 4}),
    ],
)
def test_encoder_sizes_by_language(option, expected):
    model = model_of("xx-yy,yy-xx,zz-xx", 11, encoder_hidden_size=option)
    for lang, hidden in expected.items():
        encoder = model.encoders[lang]
        assert encoder.recurrence.forwards.hidden_size == hidden
        assert encoder.recurrence.backwards.hidden_size == hidden
        assert trained(encoder) == encoder_parameters(V=11, G=hidden, **TEST)
    source, prev = some_rows([4, 2], 1), some_rows([3, 3], 2)
    for pair in model.pairs:
        assert model(source, None, prev, pair=pair)[0].shape == (2, 3, 11)


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("encoder_hidden_size", "qq=5", "'qq' is not a source language.*: xx"),
        ("encoder_hidden_size", "yy=5", "'yy' is not a source language.*: xx"),
        ("encoder_hidden_size", "xx=0", "--encoder-hidden-size 'xx=0'"),
        ("encoder_hidden_size", "xx=many", "'xx=many' is neither a positive"),
        ("encoder_hidden_size", "xx=", "'xx=' is neither a positive"),
        ("encoder_hidden_size", "-4", "--encoder-hidden-size '-4'"),
        ("embed_dim", 0, "--embed-dim 0: must be at least 1"),
        ("context_size", -1, "--context-size -1"),
        ("dropout", 1.0, r"--dropout 1.0: must be in \[0, 1\)"),
    ],
)
def test_bad_sizes_name_their_option(field, value, message):
    with pytest.raises(ValueError, match=message):
        model_of("xx-yy", 9, **{field: value})


@pytest.mark.parametrize(
    "flags, pairs, message",
    [
        (["--encoder-hidden-size", "yy=5"], "xx-yy", "--encoder-hidden-size 'yy=5': 'yy'"),
        ([], "xx-qq", r"dict\.qq\.txt: no dictionary for language 'qq'"),
        (["-s", "xx", "-t", "yy"], "xx-yy", "training takes one or the other"),
    ],
)
def test_bad_options_name_themselves(multiway_task, flags, pairs, message):
    with pytest.raises(ValueError, match=message):
        multiway_task(*flags, pairs=pairs)


@pytest.mark.parametrize("pair", ["xx-yy", "zz-xx", "yy-zz", "zz-yy", "xx-xx"])
@pytest.mark.parametrize("left", [False, True], ids=["right-padded", "left-padded"])
def test_any_encoder_goes_with_any_decoder(model, pair, left):
    """forward(pair=...) is the direction, trained for or not."""
    source, prev = some_rows([4, 2], 1, left), some_rows([3, 3], 2)
    target = pair.split("-")[1]
    direction = model.direction(pair)
    assert direction.encoder.module is model.encoders[pair.split("-")[0]]
    assert direction.decoder.module.decoder is model.decoders[target]
    with torch.no_grad():
        ours = model(source, None, prev, pair=pair)[0]
        theirs = direction(source, None, prev)[0]
    assert ours.shape == (2, 3, WORDS[target])
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_left_padding_is_moved(model, monkeypatch):
    """The same scores for both kinds of padding; not so without ``align_left``."""
    sides = [some_rows([5, 2], 1, left) for left in (False, True)]
    prev = some_rows([3, 3], 2)

    def distance():
        right, left = (model(source, None, prev, pair="xx-yy")[0] for source in sides)
        return (right - left).abs().max().item()

    assert distance() < 1e-5
    monkeypatch.setattr(modules, "align_left", lambda tokens, padding_index: tokens)
    assert distance() > 1e-3


def test_pair_is_the_first_by_default(model):
    source, prev = some_rows([4, 2], 1), some_rows([3, 3], 2)
    with torch.no_grad():
        default = model(source, None, prev)[0]
        assert torch.equal(default, model(source, None, prev, pair="xx-yy")[0])
    probs = model.get_normalized_probs((default, {}), log_probs=False)
    torch.testing.assert_close(probs.sum(dim=-1), torch.ones(2, 3))


@pytest.mark.parametrize(
    "pair, message",
    [
        ("qq-xx", "source 'qq': the model has encoders for xx, yy"),
        ("xx-qq", "target 'qq': the model has decoders for yy, xx"),
        ("xx+qq-yy", "source 'qq'"),
        ("zz-xx", "source 'zz'"),
    ],
)
def test_direction_of_an_unknown_language_is_refused(pair, message):
    model = model_of("xx-yy,yy-xx", 9)
    with pytest.raises(ValueError, match=message):
        model.direction(pair)
    with pytest.raises(ValueError, match=message):
        model.directions(pair)


def test_languages_that_only_one_side_knows():
    model = model_of("xx-yy,zz-yy", 9)
    with pytest.raises(ValueError, match="source 'yy': the model has encoders for xx, zz"):
        model.direction("yy-yy")
    with pytest.raises(ValueError, match="target 'xx': the model has decoders for yy"):
        model.direction("zz-xx")


def test_task_translates_from_any_encoder_to_any_decoder(multiway_task):
    task, _ = multiway_task(pairs="xx-yy,zz-xx")
    possible = ["xx-yy", "zz-xx", "zz-yy", "xx+zz-yy"]
    impossible = ["xx-xx", "yy-xx", "xx-zz", "xx+zz-xx", "xx+xx-yy", "xx+qq-yy"]
    assert all(task.can_translate(pair) for pair in possible)
    assert not any(task.can_translate(pair) for pair in impossible)


@pytest.mark.parametrize("pair", ["xx-yy", "zz-xx"])
def test_a_pair_moves_its_own_components_alone(model, pair):
    source, prev = some_rows([4, 2], 1), some_rows([3, 3], 2)
    model.train()
    model(source, None, prev, pair=pair)[0].log_softmax(dim=-1)[..., 5].sum().backward()
    named = dict(model.named_parameters())
    moved = {name for name, p in named.items() if p.grad is not None and p.grad.any()}
    absent = {name for name, p in named.items() if p.grad is None}
    of_pair = {name for name in model.pair_parameters(pair) if named[name].requires_grad}
    assert moved == of_pair
    assert absent == set(named) - of_pair
    encoder, decoder = pair.split("-")
    assert {name.split(".")[1] for name in moved if name.startswith("encoders")} == {encoder}
    assert {name.split(".")[1] for name in moved if name.startswith("decoders")} == {decoder}


def test_zero_shot_pair_trains_only_its_own_languages(model):
    loss = model(some_rows([4], 1), None, some_rows([3], 2), pair="yy-zz")[0].sum()
    for part in (model.encoders["xx"], model.encoders["zz"], model.decoders["xx"]):
        named = [(name, p) for name, p in part.named_parameters() if p.requires_grad]
        check_no_gradient(loss, named)


def test_groups_of_parameters(model):
    groups = model.parameter_groups()
    languages = [f"{side}.{lang}" for side in ("encoder", "decoder") for lang in WORDS]
    assert set(groups) == {"shared", "output", *languages}
    disjoint = [name for group in ("shared", *languages) for name in groups[group]]
    assert sorted(disjoint) == sorted(name for name, _ in model.named_parameters())
    assert all(name.startswith("attention.") for name in groups["shared"])
    named = dict(model.named_parameters())
    numbers = sum(named[name].numel() for name in groups["shared"])
    assert numbers == shared_parameters(**TEST)
    for lang, words in WORDS.items():
        output = [name for name in groups["output"] if f".{lang}." in name]
        assert set(output) < set(groups[f"decoder.{lang}"])
        width = TEST["O"]
        expected = width * (2 * TEST["H"] + TEST["D"] + 1) + words * (width + 1)
        assert sum(named[name].numel() for name in output) == expected
