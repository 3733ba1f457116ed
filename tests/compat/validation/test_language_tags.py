"""BLEU of models whose target sentences bear the tag of their language."""

import re

import pytest
import torch
from common import inprocess
from fairseq.data import Dictionary
from fairseq.scoring.bleu import BleuConfig, Scorer

PAIRS = ("--lang-pairs", "xx-yy,xx-zz", "--langs", "xx,yy,zz", "--decoder-langtok")
MANY = ("--task", "translation_multi_simple_epoch", *PAIRS)


@pytest.fixture
def checkpoint(tiny_training, toy_corpus, tmp_path):
    words = tiny_training[5:]  # without data and languages
    options = ("--disable-validation", "--max-update", 1, "--save-dir", tmp_path)
    inprocess.train(toy_corpus.three, *MANY, *words, *options)
    return tmp_path / "checkpoint_last.pt"


def test_tokens_are_scored_as_the_printed_words(checkpoint, toy_corpus):
    """No word has pieces: joining them, for which fairseq scores the printed line, is no change."""

    def scored(*more):
        output = inprocess.generate(
            *(toy_corpus.three, *MANY, "-s", "xx", "-t", "zz", "--path", checkpoint),
            *("--gen-subset", "valid", "--beam", 2, "--max-len-b", 8, *more),
        )
        return re.search(r"BLEU4 = .*", output).group()

    assert scored() == scored("--remove-bpe")
    assert scored("--keep-inference-langtok") != scored()  # a tag that is printed is scored


def test_the_scorer_itself_counts_all_symbols():
    """Outside fairseq-generate nothing is hidden."""
    scorer = Scorer(BleuConfig(pad=1, eos=2, unk=3))
    scorer.add(torch.tensor([9, 5, 6, 2]).int(), torch.tensor([9, 5, 2]).int())
    assert (scorer.stat.reflen, scorer.stat.predlen, scorer.stat.match1) == (3, 2, 2)


class Copies:
    """A generator whose hypotheses are given."""

    def __init__(self, *hypotheses):
        self.hypotheses = hypotheses

    def generate(self, models, sample, **options):
        return [[{"tokens": torch.tensor(tokens)}] for tokens in self.hypotheses]


def test_bart_is_validated_by_its_words(toy_corpus):
    """Of two words one is right; the tag after them is no third one."""
    from fairseq import options
    from fairseq.tasks import setup_task

    words = ["--task", "translation_from_pretrained_bart", "--langs", "xx,yy", "-s", "xx"]
    words += ["-t", "yy", "--arch", "mbart_base"]
    parser = options.get_training_parser()
    task = setup_task(options.parse_args_and_arch(parser, [str(toy_corpus.two), *words]))
    task.tokenizer = None
    dictionary: Dictionary = task.target_dictionary
    tag, end, pad = dictionary.index("[yy]"), dictionary.eos(), dictionary.pad()
    target = torch.tensor([[10, 11, end, tag], [12, end, tag, pad]])
    generator = Copies([10, 13, end, tag], [12, end, tag])
    bleu = task._inference_with_bleu(generator, {"target": target}, None)
    assert (bleu.sys_len, bleu.ref_len, bleu.counts[0]) == (3, 3, 2)
    assert target[0, -1] == tag  # the batch is as it was
