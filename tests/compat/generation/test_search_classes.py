"""Tasks of plugins translate with the search whose class they give, whatever they derive from."""

from argparse import Namespace
from types import SimpleNamespace

import pytest
from fairseq.data import Dictionary
from fairseq.search import PrefixConstrainedBeamSearch
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks.speech_to_speech import SpeechToSpeechTask
from fairseq.tasks.speech_to_text import SpeechToTextTask
from fairseq.tasks.translation_multi_simple_epoch import TranslationMultiSimpleEpochTask
from torch import nn

TASKS = [SpeechToSpeechTask, SpeechToTextTask, TranslationMultiSimpleEpochTask]


class WeighedSearch:
    """A search with an option of its own."""

    def __init__(self, models, tgt_dict, weight, **options):
        self.weight, self.options = weight, options


def plain(task_class):
    """A task without data, as far as it builds a search."""
    task = object.__new__(task_class)
    task.tgt_dict = Dictionary()
    task.data_cfg = SimpleNamespace(
        prepend_tgt_lang_tag=False, prepend_bos_and_append_tgt_lang_tag=False, config={}
    )
    task.target_langs = ["en"]
    task.data_manager = SimpleNamespace(get_target_dictionary=lambda lang: task.tgt_dict)
    task.args = Namespace(langtoks={"main": (None, None)}, target_lang="en", target_is_code=True)
    task.args.n_frames_per_step, task.args.eval_inference = 1, False
    return task


class Decoder(nn.Module):
    """What a search asks a model for when it is built."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Module(), nn.Module()

    def max_decoder_positions(self):
        return 9


@pytest.mark.parametrize("task_class", TASKS, ids=lambda task_class: task_class.__name__)
class TestSearches:
    def test_of_a_plugin(self, task_class):
        class Plugin(task_class):
            def build_generator(self, models, args, seq_gen_cls=None, extra_gen_cls_kwargs=None):
                named = {"weight": 0.3, **(extra_gen_cls_kwargs or {})}
                return super().build_generator(models, args, WeighedSearch, named)

        search = plain(Plugin).build_generator([Decoder()], Namespace(beam=3))
        assert isinstance(search, WeighedSearch)
        assert (search.weight, search.options["beam_size"]) == (0.3, 3)

    def test_of_allowed_words(self, task_class):
        """As the hub interface asks for it."""
        build = plain(task_class).build_generator
        search = build([Decoder()], Namespace(), prefix_allowed_tokens_fn=lambda batch, words: [4])
        assert isinstance(search.search, PrefixConstrainedBeamSearch)

    def test_without_a_class(self, task_class):
        search = plain(task_class).build_generator([Decoder()], Namespace(beam=3))
        assert type(search) is SequenceGenerator and search.beam_size == 3

    def test_that_builds_another(self, task_class):
        """The class is that of one search, not of those that are built meanwhile or later."""
        task = plain(task_class)

        class Outer(WeighedSearch):
            def __init__(self, models, tgt_dict, **options):
                self.inner = task.build_generator(models, Namespace(beam=2))

        search = task.build_generator([Decoder()], Namespace(beam=3), seq_gen_cls=Outer)
        assert type(search.inner) is SequenceGenerator
        assert type(task.build_generator([Decoder()], Namespace())) is SequenceGenerator
