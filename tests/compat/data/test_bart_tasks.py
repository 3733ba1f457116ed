"""Pretraining and fine-tuning of BART and mBART."""

from argparse import Namespace

import pytest
import torch
from common.inprocess import parsed


def test_bart_tuning_has_its_options(toy_corpus):
    from fairseq.tasks import setup_task

    words = ["--task", "translation_from_pretrained_bart", "--langs", "xx,yy"]
    words += ["-s", "xx", "-t", "yy", "--arch", "mbart_base"]
    task = setup_task(parsed(toy_corpus.two, *words))
    task.load_dataset("valid")
    source = task.datasets["valid"][0]["source"]
    assert source[-1] == task.source_dictionary.index("[xx]")  # the sentence ends with its language


class Decodes(torch.nn.Module):
    """A model as far as a generator looks at it when it is built."""

    def max_decoder_positions(self):
        return 10


@pytest.mark.parametrize(
    "options, strategy",
    [
        ({}, "BeamSearch"),
        ({"sampling": True, "sampling_topk": 3}, "Sampling"),
        ({"diverse_beam_groups": 2}, "DiverseBeamSearch"),
        ({"diversity_rate": 0.5}, "DiverseSiblingsSearch"),
    ],
)
def test_bart_searches_as_asked(options, strategy, toy_corpus):
    from fairseq.tasks import setup_task

    words = ["--task", "translation_from_pretrained_bart", "--langs", "xx,yy"]
    words += ["-s", "xx", "-t", "yy", "--arch", "mbart_base"]
    task = setup_task(parsed(toy_corpus.two, *words))
    more = {"lm_model": None, "lm_weight": 0.25}
    generator = task.build_generator([Decodes()], Namespace(**options), extra_gen_cls_kwargs=more)
    assert type(generator.search).__name__ == strategy and generator.lm_weight == 0.25
    assert generator.eos == task.target_dictionary.index("[yy]") != task.target_dictionary.eos()
    assert "eos" not in more
    scorer = task.build_generator([Decodes()], Namespace(score_reference=True))
    assert scorer.eos == generator.eos


@pytest.mark.parametrize("task, arch", [("denoising", "bart_base"), ("denoising", "transformer")])
def test_denoising_shares_options_with_the_model(task, arch):
    options = parsed("data", "--task", task, "--arch", arch, "--max-source-positions", 77)
    assert (options.max_source_positions, options.max_target_positions) == (77, 1024)


def test_denoising_keeps_its_options_where_the_model_has_none():
    for task in ("denoising", "multilingual_denoising"):
        options = parsed("data", "--task", task, "--arch", "lstm", "--max-target-positions", 5)
        assert (options.max_source_positions, options.max_target_positions) == (1024, 5)
