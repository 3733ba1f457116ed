"""Files of experiments: variables, systems for several values, files like another, errors."""

import re

import pytest
from experiments import UsageError
from experiments.definition import FOLDER, commands_of, names, read_experiment

FILE = """
title = "a test"
compare = [["small", "large"]]
[variables]
SOURCE = "de"
WIDTH = 8
SIZES = "--width $WIDTH --from ${SOURCE}x"
[data]
raw = ["train.$SOURCE"]
commands = '''
cp $RAW/train.$SOURCE
    $DATA
# a remark
echo $$HOME
'''
[systems.small]
train = "fairseq-train $DATA $SIZES --seed $SEED"
evaluate = "echo $RUN"
[systems.large]
like = "small"
needs = ["small"]
WIDTH = 16
[systems."pair.$FROM-$TO@$DEPTH"]
label = "pair"
each = { "FROM-TO" = ["$SOURCE-en", "en-$SOURCE"], DEPTH = [1, 2] }
train = "echo $FROM $TO $DEPTH"
"""


@pytest.fixture
def define(tmp_path):
    """Function (content, name) -> file of an experiment."""

    def write(content, name="test"):
        path = tmp_path / f"{name}.toml"
        path.write_text(content, encoding="utf-8")
        return str(path)

    return write


def test_variables_fill_commands_and_places_stay(define):
    experiment = read_experiment(define(FILE))
    assert experiment.name == "test" and experiment.raw == ("train.de",)
    assert experiment.prepare == ("cp $RAW/train.de $DATA", "echo $$HOME")
    small, large = (experiment.system(name) for name in ("small", "large"))
    assert small.train == ("fairseq-train $DATA --width 8 --from dex --seed $SEED",)
    assert large.train == ("fairseq-train $DATA --width 16 --from dex --seed $SEED",)
    assert large.evaluate == small.evaluate and large.needs == ("small",)
    assert (small.label, large.label) == ("small", "large")


def test_a_name_stands_for_every_combination_of_values(define):
    systems = read_experiment(define(FILE)).systems
    pairs = {name: system.train for name, system in systems.items() if system.label == "pair"}
    assert pairs == {
        "pair.de-en@1": ("echo de en 1",),
        "pair.de-en@2": ("echo de en 2",),
        "pair.en-de@1": ("echo en de 1",),
        "pair.en-de@2": ("echo en de 2",),
    }


def test_a_file_like_another_changes_only_what_it_names(define):
    define(FILE)
    content = 'like = "test"\ntitle = "other"\n[variables]\nWIDTH = 4\n'
    content += '[systems.more]\nlike = "small"\n'
    experiment = read_experiment(define(content, "other"))
    assert experiment.title == "other" and experiment.compare == (("small", "large"),)
    assert "--width 4 " in experiment.system("more").train[0]
    assert "--width 16 " in experiment.system("large").train[0]


def test_a_file_anywhere_may_be_like_an_experiment(define):
    content = 'like = "dual/own"\n[variables]\nSOURCE = "cs"\n'
    experiment, changed = read_experiment(define(content, "mine")), read_experiment("dual/own")
    assert experiment.name == "mine" and experiment.raw[0] == "train.cs"
    assert experiment.systems.keys() > {name for name in changed.systems if "de" not in name}


def test_a_variable_that_nothing_uses_is_refused(define):
    """A typing error would train with the default, without a message."""
    with pytest.raises(UsageError, match=r"mine\.toml: \[variables\]: DROPUOT: .*allowed: DROPOUT"):
        read_experiment(define('like = "dual/own"\n[variables]\nDROPUOT = 0.1\n', "mine"))


def test_a_system_may_be_like_one_that_is_like_another(define):
    content = FILE + '[systems.huge]\nlike = "large"\n'
    huge, large = (read_experiment(define(content)).system(name) for name in ("huge", "large"))
    assert (huge.train, huge.needs, huge.label) == (large.train, large.needs, "huge")


def test_empty_commands_are_left_out(define):
    content = FILE.replace('evaluate = "echo $RUN"', "evaluate = '''\n$MORE\necho $RUN\n'''")
    content = content.replace("WIDTH = 8", 'WIDTH = 8\nMORE = ""')
    experiment = read_experiment(define(content + '[systems.more]\nlike = "small"\nMORE = "ls"\n'))
    assert experiment.system("small").evaluate == ("echo $RUN",)
    assert experiment.system("more").evaluate == ("ls", "echo $RUN")


def test_labels_fields_and_comparisons_have_variables(define):
    content = FILE.replace('"large"]', '"pair.$SOURCE"]').replace('"pair"', '"pair.$SOURCE"')
    content += 'fields = { layers = "$DEPTH or $WIDTH" }\n'
    with pytest.raises(UsageError, match=r"pair\.de-en@1 has others and the same label"):
        read_experiment(define(content))
    experiment = read_experiment(define(content.replace("$DEPTH or", "some or")))
    assert experiment.compare == (("small", "pair.de"),)
    assert experiment.system("pair.de-en@2").fields == {"layers": "some or 8"}


def test_a_system_like_several_is_several(define):
    content = FILE + '[systems."more.$FROM-$TO@$DEPTH"]\nlike = "pair.$FROM-$TO@$DEPTH"\n'
    content += 'each = { DEPTH = [3] }\n[systems.one]\nlike = "pair.$FROM-$TO@$DEPTH"\n'
    content += 'FROM = "x"\nTO = "y"\nDEPTH = 9\n'
    systems = read_experiment(define(content)).systems
    more = [name for name in systems if name.startswith("more")]
    assert more == ["more.de-en@3", "more.en-de@3"]
    assert systems["one"].train == ("echo x y 9",)


def test_a_variable_may_hold_several_commands(define):
    content = FILE.replace("[data]", 'BLOCK = """\n    echo $WIDTH\n    more\necho b\n"""\n[data]')
    content = content.replace('evaluate = "echo $RUN"', "evaluate = '''\n$BLOCK\necho $RUN\n'''")
    large = read_experiment(define(content)).system("large")
    assert large.evaluate == ("echo 16 more", "echo b", "echo $RUN")


def test_a_sign_that_the_name_does_not_have_is_part_of_the_value(define):
    content = '[systems."$KIND"]\nlabel = "$LABEL"\neach = { "KIND+LABEL" = ["a+A-shot, more"] }\n'
    (system,) = read_experiment(define(content)).systems.values()
    assert (system.name, system.label) == ("a", "A-shot, more")


def test_values_of_a_paper(define):
    content = FILE.replace("[variables]", 'published = [["small", "BLEU", 1.5]]\n[variables]', 1)
    assert read_experiment(define(content)).published == (("small", "BLEU", 1.5),)


def test_indented_lines_continue_a_command():
    assert commands_of("one\n  two\n\n# not this\nthree\n\tfour") == ["one two", "three four"]


@pytest.mark.parametrize(
    "before, after, message",
    [
        ("title =", "titel =", r"test\.toml: titel; allowed: .*title"),
        ("[data]\n", "[data]\nraws = 1\n", r"\[data\]: raws; allowed: commands, raw"),
        ('like = "small"', 'lik = "small"', r"\[systems\.large\]: lik; allowed"),
        ('like = "small"', 'like = "tall"', r"like = 'tall'"),
        ('like = "small"', 'like = "large"', r"like = 'large': allowed: another system"),
        ("$SIZES --seed", "$SIZE --seed", r"\$SIZE\.\.\.: allowed: RAW, DATA"),
        ("WIDTH = 8", 'WIDTH = "$SIZES"', r"\$(SIZES|WIDTH) contains itself"),
        ('needs = ["small"]', 'needs = ["none"]', r"needs none, which is none; allowed: small, la"),
        (
            'needs = ["small"]',
            'needs = ["large"]',
            r"\[systems\.large\] needs large, which needs it",
        ),
        ("evaluate =", 'needs = ["large"]\nevaluate =', r"needs (small|large), which needs it"),
        ('needs = ["small"]', 'needs = "small"', r"large\]: needs = 'small'; allowed: a list of n"),
        (
            '[["small", "large"]]',
            '[["a"]]',
            r"compare = \[\['a'\]\]; allowed: a list of pairs of la",
        ),
        ('title = "a test"', "title = 1", r"test\.toml: title = 1; allowed: text"),
        (
            'title = "a test"',
            "published = [['a', 'b', 'c']]",
            r"published = .*allowed: a list of v",
        ),
        ('title = "a test"', "like = ['a']", r"like = \['a'\]; allowed: text"),
        ("WIDTH = 8", "WIDTH = [8]", r"\[variables\]: WIDTH = \[8\]; allowed: text or a number"),
        ("WIDTH = 16", "WIDTH = true", r"\[systems\.large\]: WIDTH = True; allowed: text or a num"),
        (
            'raw = ["train.$SOURCE"]',
            "raw = 'a'",
            r"\[data\]: raw = 'a'; allowed: a list of names of",
        ),
        (
            'evaluate = "echo $RUN"',
            'evaluate = ["a"]',
            r"small\]: evaluate = \['a'\]; allowed: text w",
        ),
        (
            "evaluate =",
            "fields = {a = 1}\nevaluate =",
            r"small\]: fields = .*allowed: a table of te",
        ),
        (
            "DEPTH = [1, 2]",
            'DEPTH = "12"',
            r"each = .*allowed: a table of lists of texts or numbers",
        ),
        ('"large"]]', '"huge"]]', r"compare: 'huge'; allowed: large, pair, small"),
        ('"en-$SOURCE"', '"en"', r"FROM-TO = 'en' has 1 parts"),
        (
            'SOURCE = "de"',
            'SOURCE = "pt-BR"',
            r"FROM-TO = 'pt-BR-en' has 3 parts; allowed: 2, with - between them and in none of "
            r"them \(a language has no dash: pt_BR, not pt-BR\)",
        ),
        ("@$DEPTH", "", r"there is already a system pair\.de-en"),
        ("[variables]", "[variables", r"test\.toml: "),
        ("[variables]", "[variables]\nSEED = 3", r"SEED is set by run\.py"),
        (
            "WIDTH = 8",
            "WIDTH = 8\nWIDHT = 9",
            r"\[variables\]: WIDHT: no .* uses it; allowed: WIDTH",
        ),
        ("WIDTH = 16", "WIDHT = 16", r"\[systems\.large\]: WIDHT: no .* uses it; allowed: WIDTH"),
    ],
)
def test_errors_name_file_and_key(define, before, after, message):
    assert before in FILE
    with pytest.raises(UsageError, match=message):
        read_experiment(define(FILE.replace(before, after, 1)))


def test_unknown_experiments_and_systems(define, tmp_path):
    with pytest.raises(UsageError, match=r"dual/multi30k"):
        read_experiment("dual/none")
    with pytest.raises(UsageError, match="no such file"):
        read_experiment(str(tmp_path / "none.toml"))
    with pytest.raises(UsageError, match=r"allowed: small, large"):
        read_experiment(define(FILE)).system("none")
    with pytest.raises(UsageError, match=r"like = 'none': allowed: .*'dual/own'"):
        read_experiment(define('like = "none"\n'))


@pytest.mark.parametrize("content", ['systems = "x"', "variables = 1", "data = []"])
def test_what_is_to_be_a_table_is_named(define, content):
    key, _, value = content.partition(" = ")
    value = value.replace('"', "'")
    with pytest.raises(
        UsageError, match=rf"test\.toml: {key} = {re.escape(value)}; allowed: a table"
    ):
        read_experiment(define(content))
    with pytest.raises(UsageError, match=r"\[systems\]: a = 1; allowed: a table"):
        read_experiment(define("[systems]\na = 1"))


def test_files_that_are_like_each_other(define):
    define('like = "b"\n', "c")
    define('like = "c"\n', "b")
    with pytest.raises(
        UsageError, match=r"c\.toml: like = 'b': .*b\.toml is itself like .*c\.toml"
    ):
        read_experiment(define('like = "b"\n', "a"))
    with pytest.raises(
        UsageError, match=r"a\.toml: like = 'a': allowed: another file of its folder"
    ):
        read_experiment(define('like = "a"\n', "a"))


def test_an_error_names_the_file_that_has_it(define):
    define("[data]\nraws = 1\n", "other")
    with pytest.raises(UsageError, match=r"other\.toml: \[data\]: raws; allowed: commands, raw"):
        read_experiment(define('like = "other"\n'))


@pytest.mark.parametrize("name", names())
def test_every_experiment_can_be_read(name):
    experiment = read_experiment(name)
    assert experiment.raw and experiment.prepare and experiment.title
    assert any(system.evaluate for system in experiment.systems.values())
    lines = (FOLDER / f"{name}.toml").read_text(encoding="utf-8").splitlines()
    assert max(map(len, lines)) <= 100


def test_a_variable_that_is_there_twice_is_named_so(define):
    with pytest.raises(UsageError, match=r"a name that has a value already \(at line 7"):
        read_experiment(define(FILE.replace("WIDTH = 8", "WIDTH = 8\nWIDTH = 9")))
