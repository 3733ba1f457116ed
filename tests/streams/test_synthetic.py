"""Options of synthetic streams work or are refused by name; when streams begin."""

import copy
import shutil

import pytest
from fairseq.logging.meters import AverageMeter, MetersDict
from streams.folders import random_lines, write_pair
from streams.monolingual_runs import MULTIWAY, SYSTEMS, Run, write_data

from fairseq_ext.streams.config import StreamsConfig
from fairseq_ext.streams.state import RunState
from fairseq_ext.streams.synthetic import LossThreshold, check_synthetic

LINES = ["--monolingual", "yy"]
STREAM = "xx-yy@mono"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = write_data(tmp_path_factory.mktemp("synthetic"))
    lines = {lang: random_lines(lang, 20, seed=8) for lang in ("xx", "yy")}
    write_pair(folder / "bt", "train", "xx-yy", **lines)
    lines = {lang: random_lines(lang, 20, seed=9) for lang in ("yy", "zz")}
    write_pair(folder / "pivot", "train", "yy-zz", **lines)
    return folder


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--synthetic-tag"], "--synthetic-tag does nothing without --monolingual or a pair with"),
        (["--synthetic-share", "0.3"], "--synthetic-share 0.3 does nothing without --monolingual"),
        (["--synthetic-sources", "sampling"], "--synthetic-sources sampling does nothing"),
        (["--synthetic-after-loss", 3], "--synthetic-after-loss 3.0 does nothing without --mono"),
        (["--monolingual-max-len", 3], "--monolingual-max-len 3 does nothing without"),
        ([*LINES, "--synthetic-share", "1.5"], "--synthetic-share '1.5'"),
        ([*LINES, "--synthetic-share", "0=0,9=0"], "--synthetic-share 0=0,9=0: no update would"),
        ([*LINES, "--monolingual-max-len", -1], "--monolingual-max-len -1: at least 0"),
        ([*LINES, "--synthetic-beam", 3], "--synthetic-beam 3 does nothing with --synthetic-sour"),
        (
            [*LINES, "--synthetic-beam", 0, "--synthetic-sources", "noised_beam"],
            "--synthetic-beam 0: must be at least 1",
        ),
        ([*LINES, "--synthetic-ema"], "--synthetic-ema: needs the average that --store-ema keeps"),
        ([*LINES, "--pair-parallel"], "--pair-parallel does not go together with --monolingual yy"),
        (
            [*LINES, "--num-batch-buckets", 2, "--max-tokens", 99],
            "--num-batch-buckets 2 does not go together",
        ),
        ([*LINES, "--synthetic-tag", "--truncate-source"], "--synthetic-tag does not go together"),
        ([*LINES, "--max-target-positions", 2], "leave no room for words"),
        ([*LINES, "--max-source-positions", 3], "leave no room for words"),
        (
            [*LINES, "--synthetic-after-loss", 3, "--disable-validation"],
            "--synthetic-after-loss 3.0: needs what --disable-validation leaves out",
        ),
        ([*LINES, "--synthetic-after-loss", "nan"], "--synthetic-after-loss nan: must be finite"),
        (
            [*LINES, "--synthetic-after-loss", 3, "--join-at", f"{STREAM}=4"],
            "--synthetic-after-loss 3.0 does not go together with --join-at xx-yy@mono=4",
        ),
        ([*LINES, "--join-at", "yy-xx@mono=4"], "'yy-xx@mono' is none of xx-yy, yy-xx, xx-yy@mono"),
        (["--monolingual", "zz"], "--monolingual 'zz': 'zz' is none of xx, yy"),
        (["--monolingual", "yy,yy"], "'yy' is named twice"),
        (["--monolingual", ","], "names no language"),
        ([*LINES, "--one-way"], "by yy-xx, which is not trained; add it to --lang-pairs .*one-way"),
    ],
)
def test_what_cannot_work_is_refused(flags, message, data):
    with pytest.raises(ValueError, match=message):
        Run(data, *SYSTEMS["dual"], *flags)


@pytest.mark.parametrize(
    "flags, message",
    [
        ([*MULTIWAY, "--lang-pairs", "xx-yy", *LINES], "by yy-xx, which is not trained"),
        (
            [*MULTIWAY, "--lang-pairs", "xx-yy,yy-xx,xx-zz", "--monolingual", "zz"],
            "by zz-xx, which is not trained",
        ),
        ([*SYSTEMS["routed"], "--monolingual", "zz"], "translates into zz; the pairs are xx-yy, "),
        (
            [*MULTIWAY, "--lang-pairs", "xx-yy,xx-zz,yy-zz@pivot"],
            "yy-zz@pivot: a model of xx-yy, xx-zz does not translate yy-zz; allowed: a direction",
        ),
        (
            [*SYSTEMS["routed"][:-1], "xx-yy,xx-zz", *LINES],
            "--monolingual yy: the sources of xx-yy would be translations from yy by yy-xx",
        ),
    ],
)
def test_directions_without_a_model_are_refused(flags, message, data):
    with pytest.raises(ValueError, match=message):
        Run(data, *flags)


def test_routed_lines_need_a_main_pair(data):
    flags = [word for word in SYSTEMS["routed"] if word not in ("--main-pair",)]
    flags.remove("xx-yy")
    with pytest.raises(ValueError, match="--monolingual yy: the lines are for --main-pair"):
        Run(data, *flags, "--schedule", "cycle", *LINES)


def test_which_streams_there_are(data):
    both = Run(data, *SYSTEMS["dual"][:-1], "xx-yy,xx-zz", "--monolingual", "yy,xx")
    assert both.task.synthetic == ["xx-yy@mono", "yy-xx@mono", "zz-xx@mono"]
    routed = Run(data, *SYSTEMS["routed"], "--monolingual", "xx,yy")
    assert routed.task.synthetic == ["yy-xx@mono", "xx-yy@mono"]


# ------------------------------------------------------------------ pairs with a label


def labelled(data, pairs, *flags):
    return Run(data, *SYSTEMS["dual"][:-1], pairs, *flags)


def test_a_pair_with_a_label_is_read_from_its_folder(data):
    run = labelled(data, "xx-yy,xx-yy@bt", "--schedule", "cycle", "--synthetic-share", "0.5")
    assert run.task.pairs == ["xx-yy", "yy-xx"] and run.task.synthetic == ["xx-yy@bt"]
    dataset = run.task.dataset("train").datasets["xx-yy@bt"]
    words = run.task.dictionaries["xx"]
    lines = [words.string(dataset[number]["source"]) for number in range(20)]
    assert lines == random_lines("xx", 20, seed=8)
    batches = run.batches()
    assert [list(batch)[0] for batch in batches[:4]] == ["xx-yy", "xx-yy@bt", "yy-xx", "xx-yy@bt"]
    assert batches[1]["xx-yy@bt"]["net_input"]["pair"] == "xx-yy"


def test_all_files_in_the_folder_of_a_label_are_read(data, tmp_path):
    folder = shutil.copytree(data, tmp_path / "data")
    lines = {lang: random_lines(lang, 3, seed=4) for lang in ("xx", "yy")}
    write_pair(folder / "bt", "train1", "xx-yy", **lines)
    dataset = labelled(folder, "xx-yy,xx-yy@bt").task.dataset("train").datasets["xx-yy@bt"]
    assert len(dataset) == 20 + 3


def test_the_training_set_is_validated_without_synthetic_pairs(data):
    """--valid-subset train takes a copy of it; synthetic pairs have no references."""
    run = labelled(data, "xx-yy,xx-yy@bt", "--monolingual", "xx,yy")
    copied = copy.copy(run.task.dataset("train"))
    batches = run.task.get_batch_iterator(copied, max_sentences=6, seed=3).next_epoch_itr()
    sizes = {}
    for batch in batches:
        for name, part in batch.items():
            sizes[name] = sizes.get(name, 0) + len(part["id"])
    assert sizes == {"xx-yy": 30, "yy-xx": 30}


def test_the_tag_is_for_pairs_with_a_label_as_well(data):
    for system in ("dual", "routed"):
        pairs = SYSTEMS[system][-1] + ",xx-yy@bt"
        run = Run(data, *SYSTEMS[system][:-1], pairs, "--synthetic-tag")
        marks = [*run.task.source_marks("xx-yy"), run.task.dictionaries["xx"].bos()]
        parts = run.task.dataset("train").datasets
        plain, tagged = (parts[name][0]["source"].tolist() for name in ("xx-yy", "xx-yy@bt"))
        assert tagged[: len(marks)] == marks and plain[: len(marks)] != marks


def test_a_direction_without_data_of_its_own(data):
    """Zero-resource: yy-zz is trained on synthetic pairs alone."""
    run = labelled(data, "xx-yy,xx-zz,yy-zz@pivot")
    assert "yy-zz" not in run.task.pairs
    batch = next(batch for batch in run.batches() if "yy-zz@pivot" in batch)
    assert batch["yy-zz@pivot"]["net_input"]["pair"] == "yy-zz"
    loss, _, log = run.criterion(run.model, batch["yy-zz@pivot"])
    assert loss > 0


@pytest.mark.parametrize(
    "pairs, flags, message",
    [
        ("xx-yy@bt", [], "--lang-pairs 'xx-yy@bt': names no pair"),
        ("xx-yy,xx-yy@", [], "'xx-yy@' is not of the form SOURCE-TARGET@LABEL"),
        ("xx-yy,xx-yy@a/b", [], "not of the form SOURCE-TARGET@LABEL"),
        ("xx-yy,xx-yy@mono", [], "the label mono is that of pairs made in training"),
        ("xx-yy,xx-yy@bt,xx-yy@bt", [], "'xx-yy@bt' is named twice"),
        ("xx-yy,xx-yy@no", [], "xx-yy@no: there is no folder .*no; allowed: the label"),
        ("xx-yy,yy-zz@pivot", [], "yy-zz@pivot: a model of xx-yy, yy-xx does not translate yy-zz"),
        ("xx-yy,xx-yy@bt", ["--synthetic-ema"], "--synthetic-ema True does nothing|does nothing"),
        ("xx-yy,xx-yy@bt", ["--pair-parallel"], "--pair-parallel does not go together with a pair"),
    ],
)
def test_labels_that_cannot_be_are_refused(pairs, flags, message, data):
    with pytest.raises(ValueError, match=message):
        labelled(data, pairs, *flags)


@pytest.mark.parametrize("lang", ["xx", "yy"])
def test_other_dictionaries_in_the_folder_of_a_label_are_refused(lang, data, tmp_path):
    """Also where size and time of the file are the same, as of an unpacked archive."""
    folder = shutil.copytree(data, tmp_path / "data")
    name, other = f"dict.{lang}.txt", folder / "bt" / f"dict.{lang}.txt"
    lines = (folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
    other.write_text("".join([lines[1], lines[0], *lines[2:]]), encoding="utf-8")
    shutil.copystat(folder / name, other)
    with pytest.raises(ValueError, match=f"bt/{name}: must be .*{name}, word by word"):
        labelled(folder, "xx-yy,xx-yy@bt")


# ------------------------------------------------------------------ when streams begin


def meters(**losses):
    by_name = MetersDict()
    for name, value in losses.items():
        meter = AverageMeter()
        meter.update(value)
        by_name.add_meter(name.replace("_", "-", 1), meter, priority=1)
    return by_name


def test_streams_join_when_the_translating_direction_is_good_enough():
    state = RunState()
    threshold = LossThreshold(3.0, ["xx-yy@mono", "yy-xx@mono"], state)
    threshold.judge(4, meters(yy_xx_loss=3.1, xx_yy_loss=2.0))
    assert state.joins_in == {"yy-xx@mono": 5}
    threshold.judge(6, meters(yy_xx_loss=3.0, xx_yy_loss=9.0))
    assert state.joins_in == {"yy-xx@mono": 5, "xx-yy@mono": 7}
    threshold.judge(7, meters(yy_xx_loss=float("nan")))
    assert state.joins_in == {"yy-xx@mono": 5, "xx-yy@mono": 7}


def test_nothing_is_judged_without_a_threshold():
    state = RunState()
    threshold = LossThreshold(None, ["xx-yy@mono"], state)
    threshold.judge(1, meters(yy_xx_loss=0.1))
    assert not state.joins_in and not threshold.is_used


def test_options_of_a_checkpoint_are_read_as_those_of_a_command_are():
    """Tools such as router-usage set a task up from options that are no mapping."""
    cfg = StreamsConfig()
    check_synthetic(cfg, [])
    cfg.synthetic_ema = True
    with pytest.raises(ValueError, match="--synthetic-ema does nothing without --monolingual"):
        check_synthetic(cfg, [])
