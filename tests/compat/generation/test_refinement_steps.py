"""Options of steps where there are beams, and of beams where there are steps; rerankers."""

import argparse
from types import SimpleNamespace

import pytest
import torch
from common.words import dictionary_with
from fairseq.dataclass.configs import GenerationConfig
from fairseq.iterative_refinement_generator import IterativeRefinementGenerator
from fairseq.models.transformer import TransformerModel, base_architecture
from fairseq.tasks.fairseq_task import FairseqTask
from fairseq.tasks.translation_lev import TranslationLevenshteinTask

from fairseq_ext.compat.generation.refinement_steps import OPTIONS, check_beams, check_steps
from fairseq_ext.compat.user_errors import OptionError


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("more", [{}, {"replace_unk": ""}])
def test_an_ordinary_search_refuses_the_option(name, more):
    args = argparse.Namespace(**{name: True}, **more)
    with pytest.raises(OptionError, match=f"--{name.replace('_', '-')}: there are no steps"):
        FairseqTask.build_generator(None, [], args)


class SearchWithSteps:
    """A search that a task has in the place of fairseq's ordinary one."""

    def __init__(self, *_, **options):
        pass


class TaskOfSteps(FairseqTask):
    """A task with words of a target."""

    target_dictionary = dictionary_with("word")


def test_a_search_of_a_task_may_have_steps():
    args = argparse.Namespace(print_step=True)
    search = TaskOfSteps(None).build_generator([], args, seq_gen_cls=SearchWithSteps)
    assert isinstance(search, SearchWithSteps)
    by_position = (SearchWithSteps, None, lambda *_: [])  # the last: prefix_allowed_tokens_fn
    assert isinstance(TaskOfSteps(None).build_generator([], args, *by_position), SearchWithSteps)


def test_without_the_options_nothing_is_refused():
    check_steps(argparse.Namespace(print_step=False))


@pytest.mark.parametrize(
    ("option", "value"),
    [("prefix_size", 2), ("score_reference", True), ("nbest", 2), ("lm_path", "lm.pt")],
)
def test_iterative_refinement_refuses_options_of_beams(option, value):
    args = argparse.Namespace(**{option: value})
    with pytest.raises(OptionError, match=f"--{option.replace('_', '-')}.*no beam search"):
        TranslationLevenshteinTask.build_generator(None, [], args)


def test_defaults_of_the_search_are_taken():
    check_beams(GenerationConfig())
    check_beams(argparse.Namespace(beam=1, max_len_a=1.2, max_len_b=10))


def test_a_reranker_ranks():
    words = dictionary_with(*(f"word{number}" for number in range(8)))
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    args = argparse.Namespace(encoder_layers=1, decoder_layers=1, encoder_embed_dim=8)
    args.encoder_ffn_embed_dim, args.max_source_positions, args.max_target_positions = 8, 20, 20
    args.encoder_attention_heads = args.decoder_attention_heads = 2
    base_architecture(args)
    torch.manual_seed(1)
    reranker = TransformerModel.build_model(args, task).eval()
    search = IterativeRefinementGenerator(words, beam_size=2, reranking=True)
    sources = torch.tensor([[0, 5, 6, 2], [1, 0, 7, 2]])
    translations = [[0, 4, 2], [0, 4, 5, 6, 2], [0, 8, 2], [0, 2]]
    finalized = [[{"tokens": torch.tensor(row), "score": 0}] for row in translations]
    search.rerank(reranker, finalized, [sources, sources.ne(1).sum(1)], 2)
    for place, row in enumerate(translations):
        source = sources[place // 2]
        source = source[source.ne(1)][None]
        previous = torch.tensor([[2, *row[1:-1]]])
        output = reranker(source, torch.tensor([source.size(1)]), previous)
        scores = output[0].log_softmax(2)[0].gather(1, torch.tensor(row[1:]).unsqueeze(1))
        torch.testing.assert_close(finalized[place][0]["score"], scores.mean())
    with pytest.raises(OptionError, match="--iter-decode-with-external-reranker with 1 models of"):
        search.generate([reranker], {})
