"""The patches that docs/other-numbers.md names, and that they leave an ordinary training alone."""

import re
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils

from fairseq_ext import compat

PAGE = Path(__file__).resolve().parents[2] / "docs" / "other-numbers.md"
TRAIN = """--arch transformer_iwslt_de_en --encoder-layers 2 --decoder-layers 2
--encoder-embed-dim 32 --decoder-embed-dim 32 --encoder-ffn-embed-dim 64 --decoder-ffn-embed-dim 64
--share-all-embeddings --dropout 0.2 --criterion label_smoothed_cross_entropy --label-smoothing 0.1
--optimizer adam --lr 2e-2 --lr-scheduler inverse_sqrt --warmup-updates 10 --clip-norm 1
--max-tokens 200 --max-epoch 40 --update-freq 2 --eval-bleu --eval-bleu-print-samples --seed 3
--log-format json --log-interval 2 --no-epoch-checkpoints""".split()
BLEU = r'"valid_bleu": "([0-9.]+)"'
TIMES = r'"[a-z_]*(?:wps|ups|wall)[a-z_]*": "[^"]*"'


def named_patches():
    """The names in the last column of the tables, but for the line that names a section."""
    cells = re.findall(r"(?m)^\|.*\| ([^|]*) \|$", PAGE.read_text(encoding="utf-8"))
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


def test_the_page_names_patches():
    assert len(named_patches()) > 100
    assert not set(named_patches()) - {row.name for row in compat.status()}


def numbers_of(run, corpus, folder, **environment):
    """What a training logs and saves, and what its model translates."""
    words = ["-s", "xx", "-t", "yy"]
    log = run("fairseq-train", corpus, *words, *TRAIN, "--save-dir", folder, env=environment)
    checkpoint = folder / "checkpoint_last.pt"
    search = ["--path", checkpoint, "--beam", 5, "--nbest", 2, "--batch-size", 7]
    translated = run("fairseq-generate", corpus, *words, *search, env=environment)
    return (
        [re.sub(TIMES, "", line) for line in re.findall(r'(?m)\{".*\}$', log)],
        checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint))["model"],
        re.findall(r"(?m)^(?:[STHDP]-.*|Generate .*)$", translated),
    )


@pytest.mark.slow
def test_an_ordinary_training_is_that_of_stock(run, toy_corpus, tmp_path):
    off = {"FAIRSEQ_EXT_COMPAT_OFF": ",".join(named_patches())}
    log, parameters, translations = numbers_of(run, toy_corpus.two, tmp_path / "on")
    stock = numbers_of(run, toy_corpus.two, tmp_path / "off", **off)
    assert len(log) > 100
    assert max(float(score) for line in log for score in re.findall(BLEU, line)) > 5
    assert log == stock[0]
    assert parameters.keys() == stock[1].keys()
    for name, values in parameters.items():
        # this buffer tells the device alone; its value is what the memory held
        if not name.endswith("._float_tensor"):
            assert torch.equal(values, stock[1][name]), name
    assert len(translations) > 100
    assert translations == stock[2]
