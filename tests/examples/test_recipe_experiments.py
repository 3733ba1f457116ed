"""The recipe for few pairs and other text, on Multi30k and on files of one's own."""

import shutil

import pytest
from experiments.definition import read_experiment
from small_experiment import SmallExperiment, values_of

SMALL = """
VOCABULARY = "--vocabulary 70"
LAYERS = 1
WIDTH = 16
FEED_FORWARD = 16
HEADS = 2
TOKENS = 400
TOKENS_BOTH = 1600
AT_MOST = 24
ANNEALED = 60
SAVED = 5
LONGER = 48
JOIN = 2
SEARCH = "--beam 2 --max-tokens 400"
"""


def training(name):
    """The words of the training, without the names of folders."""
    commands = read_experiment(f"dual/{name}").systems["tagged.online"].train
    return next(line for line in commands if line.startswith("fairseq-train")).split()


def differing(name, recipe="recipe"):
    """The options of a training that the recipe has another value of."""
    recipe, other = training(recipe), training(name)
    return {recipe[place - 1] for place in range(len(recipe)) if recipe[place] != other[place]}


def test_files_of_ones_own_are_trained_on_as_multi30k_is():
    assert differing("own") == set()


def test_half_of_the_pairs_has_other_moments_of_validation_and_translation():
    assert differing("recipe_1450") == {"--join-at", "--validate-interval"}


def test_fewer_pairs_or_less_text_are_all_that_differs():
    assert differing("recipe_500", "recipe_1450") == {"--join-at", "--validate-interval"}
    assert differing("recipe_1450_less_text", "recipe_1450") == set()
    pairs, text, both = (
        " ".join(read_experiment(f"dual/{name}").prepare)
        for name in ("recipe_1450", "recipe_1450_less_text", "recipe_500")
    )
    assert pairs.replace("15225p", "4894p").replace("29000p", "18669p").split() == text.split()
    assert pairs.replace("--train-lines 1450", "--train-lines 500").split() == both.split()


def test_without_other_text_the_pairs_alone_make_the_vocabulary():
    alone, text = (
        read_experiment(f"dual/{name}").prepare
        for name in ("diversified", "recipe_1450_pair_subwords")
    )
    (dictionary,) = (line for line in alone if line.startswith("cat "))
    assert dictionary.split() == "cat $DATA/text/train.* > $DATA/text/all.de".split()
    assert not [line for line in alone if "sed " in line]
    learnt = [next(line for line in lines if "learn-subwords" in line) for lines in (alone, text)]
    assert learnt[0].split() == learnt[1].split()


FIRST, SECOND = ("$RUNS/tagged.$SEED_1/average.pt", "$RUNS/tagged.$SEED_2/average.pt")


@pytest.mark.parametrize(
    ("system", "teachers"),
    [
        ("tagged.diversified", ["$RUNS/tagged.$SEED/average.pt"]),
        ("tagged.diversified.two", [FIRST, SECOND]),
        ("tagged.distilled", [f"{FIRST}:{SECOND}"]),
    ],
)
def test_translations_of_the_pairs_are_all_that_is_added(system, teachers):
    systems = read_experiment("dual/diversified").systems
    (plain,) = (line for line in systems["tagged"].train if line.startswith("fairseq-train"))
    *commands, training, _ = systems[system].train
    changed = training.replace("--validate-interval 1", "--validate-interval 3")
    assert changed.replace("$RUN/bin", "$DATA/bin", 1).split() == plain.split()
    translations = [line.split() for line in commands if "back-translate" in line]
    assert len({words[-1] for words in translations}) == len(translations)  # --output
    ends = (
        "-s de -t en --monolingual $DATA/text/train.en",
        "-s en -t de --monolingual $DATA/text/train.de",
    )
    assert [" ".join(words[2:-2]) for words in translations] == [
        f"{teacher} $DATA/bin {end}" for teacher in teachers for end in ends
    ]


def test_text_of_another_kind_is_all_that_differs():
    assert differing("recipe_1450_tatoeba", "recipe_1450") == set()
    captions, tatoeba = (
        read_experiment(f"dual/{name}") for name in ("recipe_1450", "recipe_1450_tatoeba")
    )
    assert captions.raw + ("deu-eng.zip",) == tatoeba.raw
    commands = [line for line in tatoeba.prepare if line not in captions.prepare]
    assert [line.split()[0] for line in commands] == ["python", "sed", "sed"]
    source, target = (line.split() for line in commands[1:])
    assert source[2:4] == ['"1,22500p"', "$DATA/tatoeba/train.de"]
    assert target[2:4] == ['"22501,45000p"', "$DATA/tatoeba/train.en"]


@pytest.mark.parametrize(
    ("name", "recipe"),
    [
        ("recipe_1450_pairs", "recipe_1450_tatoeba"),
        ("recipe_1450_pair_subwords", "recipe_1450"),
    ],
)
def test_sub_words_of_the_pairs_alone_are_all_that_differs(name, recipe):
    assert differing(name, recipe) == set()
    of_pairs, of_all = (read_experiment(f"dual/{name}").prepare for name in (name, recipe))
    text = [" $DATA/raw/mono.de", " $DATA/raw/mono.en"]
    (place,) = (
        place for place, line in enumerate(of_all) if line.split() != of_pairs[place].split()
    )
    assert "learn-subwords" in of_all[place]
    assert all(file in of_all[place] for file in text)
    assert of_all[place].replace("".join(text), "").split() == of_pairs[place].split()


def test_a_stopped_annealing_goes_on_where_it_was():
    """--restore-file would begin it anew with the checkpoint of the training before."""
    commands = read_experiment("dual/recipe").systems["tagged.online.annealed"].train
    (line,) = (line for line in commands if line.startswith("fairseq-train"))
    assert "--continue-once $RUNS/tagged.online.$SEED/checkpoint_last.pt" in line
    assert "--restore-file" not in line


def test_a_language_without_blanks_is_counted_otherwise(tmp_path):
    """Sub-words by validations, which have no tokeniser, and words in the report."""
    path = tmp_path / "mine.toml"
    variables = 'BLEU_OF = "--eval-tokenized-bleu"\nMETRICS = "bleu --tokenize zh=zh"\n'
    path.write_text(f'like = "dual/own"\n[variables]\n{variables}')
    system = read_experiment(str(path)).systems["tagged.online"]
    for line in system.train:
        if line.startswith("fairseq-train"):
            assert "--eval-tokenized-bleu" in line and "--eval-bleu-remove-bpe" not in line
    scored = [line for line in system.evaluate if "score.py text" in line]
    assert scored and all("--tokenize zh=zh" in line for line in scored)


def test_text_of_one_language_is_translated_into_the_other_alone():
    systems = read_experiment("dual/own").systems
    for name in ("tagged.online.en", "tagged.online.en.annealed"):
        (line,) = (line for line in systems[name].train if line.startswith("fairseq-train"))
        assert "--monolingual en " in line and "--join-at de-en@mono=570 " in line
    assert "--continue-once $RUNS/tagged.online.en.$SEED/checkpoint_last.pt" in line


def test_what_is_averaged_does_not_depend_on_the_number_of_pairs():
    training, average = read_experiment("dual/own").systems["tagged.online.annealed"].train
    assert "--save-interval-updates 100 --keep-interval-updates 3 " in training.replace("\n", " ")
    assert "--last 3 --by updates" in average


def test_own_text_comes_without_the_lines_of_the_sets():
    commands = [line for line in read_experiment("dual/own").prepare if " monolingual " in line]
    for language, command in zip(("de", "en"), commands):
        assert f"--text $RAW/mono.{language} " in command
        assert command.endswith(f"$DATA/raw/valid.{language} $DATA/raw/test.{language}")
    assert len(commands) == 2


@pytest.mark.slow
@pytest.mark.timeout(3600)  # many commands, each of which imports fairseq
def test_the_recipe_from_own_files_to_scores(run, raw, tmp_path):
    for language in ("de", "en"):
        for old, new in (("val", "valid"), ("test_a", "test")):
            (raw / f"{old}.{language}").rename(raw / f"{new}.{language}")
        shutil.copy(raw / f"train.{language}", raw / f"mono.{language}")
    small = SmallExperiment(run, tmp_path, "dual/own", SMALL)
    output = small.step("tagged.online.annealed", 1, "--raw", raw)
    assert "ready:" in output and "done:" in output
    log = (small.runs / "tagged.online.annealed.1" / "train.log").read_text(encoding="utf-8")
    assert "@ 24 updates)" in log and "num_updates: 60 >= max_update: 60" in log
    small.train("tagged.online", "tagged.online.inference", "both", "both.longer")
    count = len((raw / "train.de").read_text(encoding="utf-8").splitlines())
    copies = {"tagged.diversified": 3, "tagged.diversified.two": 5, "tagged.distilled": 3}
    small.train(*copies, "tagged.ensemble")
    for system, times in copies.items():
        pairs = (small.runs / f"{system}.1" / "text" / "train.de").read_text(encoding="utf-8")
        assert len(pairs.splitlines()) == times * count
    bleu = values_of(small.report(), "BLEU", set="test", direction="en-de")
    assert {("tagged.online.inference", ""), ("tagged.online.annealed", "both.longer")} <= set(bleu)
