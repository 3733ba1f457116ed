"""Every command of every experiment is one that its program understands."""

import pytest
import shell
from experiments.definition import names, read_experiment

# experiments that differ from others in sizes and data
VARIANTS = (
    "dual/monolingual_",
    "dual/recipe_",
    "dual/sampled_",
    "dual/study_",
    "dual/iwslt14",
    "routed/10000",
    "routed/5000",
    "twin/digits_",
    "twin/pixels_",
    "twin/captions_plain",
)


def test_lines_are_taken_apart():
    line = "for a in x; do cp $a 'c d'; done; xargs fairseq-generate -x \"1 2\" < f | tail > g 2>&1"
    assert shell.simple_commands(line) == [
        ["cp", "$a", "c d"],
        ["fairseq-generate", "-x", "1 2"],
        ["tail"],
    ]


@pytest.mark.parametrize(
    "line, message",
    [
        ("fairseq-train DATA --arch lstm --optimizer adam --no-such-option", "--no-such-option"),
        ("fairseq-ext average --inputs a --output b --lust 3", "--lust"),
        ("python examples/score.py text blue --hyp a --ref b --into c", "'blue'"),
        ("python examples/prepare.py parallel", "are required"),
    ],
)
def test_wrong_commands_are_noticed(line, message, capsys):
    with pytest.raises(SystemExit):
        shell.parse(line.split())
    assert message in capsys.readouterr().err


@pytest.fixture(scope="module")
def parsed():
    """Shapes of commands that were parsed, for this or another experiment."""
    return set()


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * name.startswith(VARIANTS)) for name in names()],
)
def test_commands_parse(name, tmp_path, parsed):
    for line in shell.lines_of(read_experiment(name), tmp_path / "data", tmp_path / "raw"):
        for words in shell.simple_commands(line):
            # the shell counts in a loop
            words = ["1" if word == "$number" else word for word in words]
            shape = shell.shape(words)
            if shape not in parsed:
                shell.parse(words)
                parsed.add(shape)
