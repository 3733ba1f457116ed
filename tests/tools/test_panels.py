"""Which curves `fairseq-ext plot` and `compare` draw, and what they call them."""

from pathlib import Path

from tools.sample_logs import simple_lines
from tools.translations import write

from fairseq_ext.tools.curves import panels
from fairseq_ext.tools.curves.plot import DEFAULT_METRICS
from fairseq_ext.tools.curves.training_log import read_run


def test_default_panels_are_those_the_log_has(tmp_path):
    run = read_run(write(tmp_path / "run.log", simple_lines(True)), "run")
    assert panels.select([run], None, DEFAULT_METRICS) == [("loss", {"loss": ""})]
    assert panels.select([run], None, DEFAULT_METRICS, per_pair=True) == [
        ("loss", {"a-b_loss": "a-b"}),
        ("bleu", {"a-b_bleu": "a-b"}),
    ]


def test_per_pair_takes_the_metric_itself_and_not_a_longer_one():
    names = ["loss", "nll_loss", "de-zh_CN_loss", "de-zh_CN_nll_loss", "worst_loss"]
    assert panels.pairs_of("loss", names) == ["de-zh_CN_loss"]
    assert panels.pairs_of("nll_loss", names) == ["de-zh_CN_nll_loss"]
    assert panels.pairs_of("bleu", names) == []


def test_labels_name_the_folder_where_file_names_are_the_same():
    paths = [Path("runs/one/train.log"), Path("runs/two/train.log")]
    assert panels.default_labels(paths) == ["one/train", "two/train"]
    assert panels.default_labels(paths[:1]) == ["train"]
    paths = [Path("one/dual/train.log"), Path("two/dual/train.log"), Path("two/dual/valid.log")]
    assert panels.default_labels(paths) == ["one/dual/train", "two/dual/train", "two/dual/valid"]
    paths = [Path("logs/lr0.1"), Path("logs/lr0.2")]
    assert panels.default_labels(paths) == ["lr0.1", "lr0.2"]
