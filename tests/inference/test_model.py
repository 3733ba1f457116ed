"""``fairseq_ext.load(..)``: what it gives is what fairseq-interactive prints, for every system."""

import pytest
from inference.odd import BY_HAND
from inference.printed import check_same, interactive
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
    check_same(fairseq_ext.load(checkpoint, data[SYSTEMS[name].data], direction).translate(
        texts, **SEARCH), expected)
    again = first.translate(texts, **SEARCH)
    assert [r.text for r in first.translate(texts, **SEARCH)] == [r.text for r in again]
    with pytest.raises(ValueError, match="direction 'xx-qq': .*allowed: .*xx-yy|text-label"):
        first.toward("xx-qq")
