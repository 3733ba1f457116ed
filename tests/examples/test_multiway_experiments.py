"""The experiments of examples/multiway: commands parse and build models, from text to tables."""

import shlex

import pytest
from examples.parse_and_build import build
from experiments.definition import read_experiment
from experiments.execution import Run
from small_experiment import SmallExperiment, values_of

# of each experiment one of each kind of system
TRAINED = {
    "all": (
        "single.de-en",
        "multi",
        "multi.tuned",
        "multi.more",
        "zero",
        "zero.tuned",
        "zero.more",
    ),
    "cut": (
        *("single.5.de-en", "long.5.de-en", "lm.en", "df.5.de-en", "more.5.de-en"),
        *("multi.5", "multi.5.tuned", "multi.5.more"),
    ),
}
SMALL = """
TEST_FILE = "test_2016_flickr"
VOCABULARY = 50
SIZES = "--embed-dim 16 --hidden-size 16 --context-size 16 --readout-size 16"
MAX_TOKENS = 400
LENGTH = '''--max-update 6 --validate-interval-updates 3 --save-interval-updates 3
    --no-epoch-checkpoints'''
SEARCH = "--beam 2 --max-tokens 400"
"""
CUT = """
CUTS = "5+20 10+30 20+35 40+40"
LM_SIZES = "--embed-dim 16 --hidden-size 16"
"""


def line_of(experiment, name, data):
    """The words of the training command of a system."""
    (line,) = Run(experiment.system(name), 1, data, data / "runs").lines("train")
    return shlex.split(line)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """{system: what comes out of its training command, and its words}."""
    commands = {}
    for name, systems in TRAINED.items():
        experiment, data = read_experiment(f"multiway/{name}"), tmp_path_factory.mktemp(name)
        entries = "".join(f"piece{number} 9\n" for number in range(2000))
        for folder in ("all", "5"):
            (data / "bin" / folder).mkdir(parents=True)
            for language in ("de", "en", "fr"):
                path = data / "bin" / folder / f"dict.{language}.txt"
                path.write_text(entries, encoding="utf-8")
        (data / "bin" / "lm.en").mkdir()
        (data / "bin" / "lm.en" / "dict.txt").write_text(entries, encoding="utf-8")
        commands.update({system: line_of(experiment, system, data) for system in systems})
    return {name: {**build(words), "words": words} for name, words in commands.items()}


def pairs(result):
    """The directions that a system is trained on."""
    return result["words"][result["words"].index("--lang-pairs") + 1].split(",")


def option(result, name):
    """Value of an option, the last one as with argparse."""
    words = result["words"]
    return words[len(words) - words[::-1].index(name)]


def test_updates_of_a_direction_are_equal(built):
    for name, systems in {
        2000: ("single.de-en", "multi", "zero"),
        400: ("multi.tuned", "multi.more", "zero.tuned", "zero.more", "multi.5.tuned"),
        1000: ("single.5.de-en", "multi.5"),
        3000: ("long.5.de-en",),
        200: ("df.5.de-en", "more.5.de-en"),
    }.items():
        for system in systems:
            assert built[system]["max_update"] == name * len(pairs(built[system])), system
            total, warmup = (option(built[system], f"--{key}") for key in
                             ("total-num-update", "warmup-updates"))  # fmt: skip
            assert int(total) == built[system]["max_update"] == 10 * int(warmup)


def test_systems_differ_in_pairs_data_and_length_only(built):
    alone = {"fairseq-train", "--lang-pairs", "--save-dir", "--max-update", "--total-num-update"}
    alone |= {"--validate-interval-updates", "--save-interval-updates", "--warmup-updates"}

    def rest(name):
        words = built[name]["words"]
        return [
            word for place, word in enumerate(words) if not alone & {word, words[place - 1]}
        ]  # fmt: skip

    assert rest("single.de-en") == rest("multi") == rest("zero")
    assert rest("single.5.de-en") == rest("multi.5") == rest("long.5.de-en")
    assert "bleu" in rest("multi") and "worst_bleu" in rest("multi.5")


@pytest.mark.parametrize("base", ["multi", "zero", "multi.5"])
def test_tuned_models_and_their_controls_differ_in_what_is_trained(built, base):
    tuned, more = built[f"{base}.tuned"], built[f"{base}.more"]
    for key in ("max_update", "lr", "parameters", "model", "max_tokens"):
        assert tuned[key] == more[key], key
    assert (tuned["clip_norm"], more["clip_norm"]) == (5, 1)
    assert option(tuned, "--train-only") == "shared,output" and "--train-only" not in more["words"]
    start = f"{base}.1/checkpoint_best.pt"
    assert all(option(result, "--finetune-from-model").endswith(start) for result in (tuned, more))


def test_fusion_starts_from_the_single_model_and_a_language_model(built):
    fused, more = built["df.5.de-en"], built["more.5.de-en"]
    assert option(fused, "--translation-model").endswith("single.5.de-en.1/checkpoint_best.pt")
    assert option(fused, "--language-model").endswith("lm.en.1/checkpoint_best.pt")
    assert option(more, "--finetune-from-model") == option(fused, "--translation-model")
    assert option(more, "--train-only") == "output" and more["lr"] == fused["lr"]
    assert built["lm.en"]["task"] == "LanguageModelingTask"
    systems = read_experiment("multiway/cut").systems
    assert systems["df.40.en-de"].needs == ("single.40.en-de", "lm.de")


def test_parameters_grow_with_languages_not_with_pairs(built):
    single, multi = built["single.de-en"]["parameters"], built["multi"]["parameters"]
    # two of six encoders and decoders, and what all share
    assert single < multi < 3 * single
    assert built["zero"]["parameters"] == multi


def test_cuts_are_percentages_of_a_third(built):
    lines = 29000 / 3
    experiment = read_experiment("multiway/cut")
    singles = [name for name in experiment.systems if name.startswith("single")]
    assert singles
    for name in singles:
        percent, remaining = next(
            text.split("pairs kept=")[1].split(")")[0].split("% (")
            for text in experiment.system(name).evaluate
            if "pairs kept=" in text
        )
        assert int(remaining) == round(lines * int(percent) / 100)


@pytest.fixture
def raw(raw3):
    """Raw text in three languages under the names of Multi30k."""
    for path in list(raw3.glob("test_a.*")):
        path.rename(raw3 / f"test_2016_flickr{path.suffix}")
    return raw3


def plain(path):
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.slow
@pytest.mark.timeout(3600)  # many commands, each of which imports fairseq
def test_all_from_raw_text_to_the_page(run, raw, tmp_path):
    small = SmallExperiment(run, tmp_path, "multiway/all", SMALL)
    assert "ready:" in small.step("prepare", "--raw", raw)
    small.train("single.fr-de", "multi", "multi.fr-de", "zero", "zero.fr-de", "zero.fr-en-de")
    lines = small.report()
    bleu = values_of(lines, "BLEU", set="test_2016_flickr", direction="fr-de")
    assert {("Multi", "Single"), ("by en", ""), ("Multi", "by en")} <= set(bleu)
    assert ("Multi", "Single") in values_of(lines, "log-likelihood", set="val")
    assert values_of(lines, "updates", set="")["Single", ""] == 6
    greedy = {line["updates"] for line in lines if line["metric"] == "BLEU, greedy"}
    assert greedy == {"3", "6", "0", "1"}
    used = values_of(lines, "parameters used", set="")
    assert used["Single", ""] < used["Multi", ""]
    assert len(plain(small.runs / "zero.fr-en-de.1" / "test.en")) == 12
    small.check_page("multiway.md")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_cut_from_raw_text_to_the_page(run, raw, tmp_path):
    small = SmallExperiment(run, tmp_path, "multiway/cut", SMALL + CUT)
    assert "ready:" in small.step("prepare", "--raw", raw)
    small.train("single.5.de-en", "df.5.de-en", "multi.5.de-en")
    lines = small.report()
    compared = set(values_of(lines, "BLEU", set="val"))
    assert {("Single+DF", "Single"), ("Multi", "Single+DF"), ("Multi", "Single")} <= compared
    assert {line["pairs kept"] for line in lines} == {"5% (483)"}
    divided = small.data / "divided"
    assert len(plain(divided / "5.de")) == 20
    assert plain(divided / "10.en")[:20] == plain(divided / "5.en")
    # which sentences of the text they are is tested in test_corpora_divide.py
    assert {len(plain(divided / f"{pair}.fr")) for pair in ("de-fr", "en-fr")} == {40}
    small.check_page("multiway.md")
