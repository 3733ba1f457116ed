"""fairseq-interactive has one answer for each line, in order, whatever the line holds."""

import pytest
from common import inprocess
from fairseq.data import encoders
from inference.odd import BY_HAND, odd_lines
from options.systems import SYSTEMS

# the pairs with which several sources have an encoder each
SEVERAL = ("--lang-pairs", "xx-yy,zz-yy")
TYPED = [name for name, system in SYSTEMS.items() if system.lines]
EVERY = [(name, ()) for name in TYPED] + [
    ("dual_lstm_classifier", ("-s", "label", "-t", "text")),
    ("multiway_gru", ("-s", "xx+zz", "-t", "yy")),
    ("multiway_gru", ("-s", "xx+zz", "-t", "yy", "--source-average", "late")),
]
FAST = ("dual_transformer", "dual_lstm_classifier", "multiway_gru", "routed_gru", "transformer")
FAST += ("duo_transformer", "twin_lstm", "duo_classifier")


def answers(output):
    """Numbers of the lines with an answer, in the order in which they were printed."""
    return [int(line.split("\t")[0][2:]) for line in output.split("\n") if line.startswith("H-")]


def typed(name, data, checkpoint, file, *more):
    """What fairseq-interactive prints for a file."""
    system = SYSTEMS[name]
    words = ["--task", system.task, "--path", checkpoint, "--input", file, "--beam", 2]
    words += ["--max-len-a", 0, "--max-len-b", 6]
    direction = [] if "-s" in more else system.inference.split()
    return inprocess.interactive(data[system.data], *words, *direction, *more)


@pytest.mark.parametrize(
    "name, more",
    [
        pytest.param(*entry, marks=() if entry[0] in FAST else pytest.mark.slow, id=f"{number}")
        for number, entry in enumerate(EVERY)
    ],
)
def test_every_odd_line_has_one_answer(data, checkpoint_of, tmp_path, name, more):
    file = tmp_path / "lines"
    file.write_bytes(b"\n".join(BY_HAND))  # and no line feed at the end
    batches = ("--buffer-size", 16, "--max-tokens", 600)
    checkpoint = checkpoint_of(name, *(SEVERAL if "xx+zz" in more else ()))
    output = typed(name, data, checkpoint, file, *more, *batches)
    assert answers(output) == list(range(len(BY_HAND)))
    too_long = [number for number, line in enumerate(BY_HAND, 1) if line.count(b" ") > 1_000]
    for number in too_long:
        assert f"{file}: line {number} is not translated: " in output
    assert f"{file}: line {BY_HAND.index(bytes([255, 254]) + b' an1 av2') + 1}: byte 1" in output


def test_buffers_do_not_matter(data, checkpoint_of, tmp_path):
    file = tmp_path / "lines"
    file.write_bytes(b"\n".join(odd_lines(60, seed=3)[30:]) + b"\n")
    checkpoint = checkpoint_of("transformer")

    def hypotheses(*more):
        output = typed("transformer", data, checkpoint, file, *more)
        return {
            number: [(text, round(score, 3)) for score, text in entries]
            for number, entries in inprocess.hypotheses(output).items()
        }

    alone = hypotheses()
    assert sorted(alone) == list(range(30))
    assert hypotheses("--buffer-size", 64, "--batch-size", 8) == alone


def test_words_spelt_like_symbols_are_unknown_words(data, checkpoint_of, tmp_path):
    file, checkpoint = tmp_path / "lines", checkpoint_of("transformer")
    file.write_text("an1 <pad> av2 </s> an3\nan1 nowhere av2 nowhere an3\n")
    first, second = inprocess.hypotheses(typed("transformer", data, checkpoint, file)).values()
    assert first == second


def test_constraints_that_no_translation_has_room_for(data, checkpoint_of, tmp_path):
    """The search would end in an AssertionError, and the session with it."""
    file, checkpoint = tmp_path / "lines", checkpoint_of("dual_transformer")
    file.write_text("an1\tun1 un2\tuv1\nan1\tun1\tun2 uv1 un3\nan1\n")
    output = typed("dual_transformer", data, checkpoint, file, "--constraints", "--max-len-b", 3)
    (_, first), (score, empty), _ = (nbest[0] for nbest in inprocess.hypotheses(output).values())
    assert sorted(first.split()) == ["un1", "un2", "uv1"]
    assert (score, empty) == (-float("inf"), "")
    assert "line 2 is not translated: 4 tokens of constraints, but a translation may have" in output


def test_constraints_are_cut_as_texts_of_the_target(data, checkpoint_of, tmp_path, monkeypatch):
    """By the rules of the source language, "don't" would be other words than in the training."""
    languages = []

    class Moses:
        def __init__(self, cfg):
            languages.append((cfg.source_lang, cfg.target_lang))
            self.between = {"xx": " at1 ", "yy": " ut1 "}[cfg.source_lang]

        def encode(self, text):
            return text.replace("-", self.between)

        def decode(self, text):
            return text

    monkeypatch.setitem(encoders.TOKENIZER_REGISTRY, "moses", Moses)
    file = tmp_path / "lines"
    file.write_text("an1-av2\tun1-uv2\n")
    words = ("dual_transformer", data, checkpoint_of("dual_transformer"), file)
    output = typed(*words, "--tokenizer", "moses", "--constraints")
    assert "S-0\tan1 at1 av2\n" in output and "C-0\tun1 ut1 uv2\n" in output
    assert languages == [("xx", "yy"), ("yy", "yy")]


def test_constraints_of_an_empty_text_are_no_text(data, checkpoint_of, tmp_path):
    file, checkpoint = tmp_path / "lines", checkpoint_of("dual_transformer")
    file.write_text("\tun1\n an1 \tun2 uv1 \n")
    output = typed("dual_transformer", data, checkpoint, file, "--constraints")
    assert "S-0\t\n" in output and "C-0\tun1\n" in output
    assert "S-1\tan1\n" in output and "C-1\tun2 uv1\n" in output
    (_, empty), (_, other) = (nbest[0] for nbest in inprocess.hypotheses(output).values())
    assert "un1" in empty.split() and "un2 uv1" in other
