"""Searches and scorers that are made as by fairseq 0.9."""

from argparse import Namespace

import pytest
import torch
from fairseq import search
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModel, base_architecture
from fairseq.scoring import bleu
from fairseq.sequence_generator import SequenceGenerator

SAMPLE = {"net_input": {"src_tokens": torch.tensor([[4, 5, 2]]), "src_lengths": torch.tensor([3])}}


class Pair:
    """A task of two languages with one dictionary."""

    source_dictionary = target_dictionary = Dictionary()
    for word in "abcd":
        target_dictionary.add_symbol(word)


def model(seed):
    torch.manual_seed(seed)
    args = Namespace(encoder_embed_dim=8, encoder_layers=1, decoder_layers=1)
    base_architecture(args)
    args.max_source_positions = args.max_target_positions = 20
    return TransformerModel.build_model(args, Pair).eval()


def hypotheses(generator, models):
    return [hypothesis["tokens"].tolist() for hypothesis in generator.generate(models, SAMPLE)[0]]


def test_a_search_without_models_is_that_with_them():
    words = Pair.target_dictionary
    older = SequenceGenerator(words, beam_size=2, max_len_a=0, max_len_b=5)
    assert older.beam_size == 2
    for seed in (1, 2, 1):  # another model each time
        models = [model(seed)]
        present = SequenceGenerator(models, words, beam_size=2, max_len_a=0, max_len_b=5)
        assert hypotheses(older, models) == hypotheses(present, models)
    # by place: beam_size, max_len_a, max_len_b
    assert hypotheses(SequenceGenerator(words, 2, 0, 5), models) == hypotheses(older, models)


@pytest.mark.parametrize(
    ("options", "strategy"),
    [
        ({}, search.BeamSearch),
        ({"sampling": True, "sampling_topk": 3}, search.Sampling),
        ({"diverse_beam_groups": 2}, search.DiverseBeamSearch),
        ({"match_source_len": True}, search.LengthConstrainedBeamSearch),
    ],
)
def test_strategies_of_a_search(options, strategy):
    older = SequenceGenerator(Pair.target_dictionary, beam_size=2, max_len_b=5, **options)
    older.generate([model(1)], SAMPLE)
    assert type(older.search) is strategy
    assert getattr(older.search, "sampling_topk", 3) == 3


def test_dropout_in_a_search_is_refused():
    older = SequenceGenerator(Pair.target_dictionary, retain_dropout=True)
    with pytest.raises(TypeError, match="--retain-dropout"):
        older.generate([model(1)], SAMPLE)


def test_scorers():
    from fairseq import bleu as former

    assert former is bleu
    reference, hypothesis = torch.tensor([4, 5, 6, 7, 2]).int(), torch.tensor([4, 5, 6, 7, 2]).int()
    for scorer in (bleu.Scorer(1, 2, 3), bleu.Scorer(pad=1, eos=2, unk=3)):
        scorer.add(reference, hypothesis)
        assert scorer.score() == pytest.approx(100)
        assert (scorer.pad, scorer.eos, scorer.unk) == (1, 2, 3)
    assert bleu.Scorer(bleu.BleuConfig(pad=5)).pad == 5


def test_a_scorer_of_sacrebleu_without_options():
    scorers = bleu.SacrebleuScorer(), bleu.SacrebleuScorer(bleu.SacrebleuConfig())
    for scorer in scorers:
        scorer.add_string("a b c d e", "a b c d f")
    assert 0 < scorers[0].score() == scorers[1].score() < 100
    lower = bleu.SacrebleuScorer(bleu.SacrebleuConfig(sacrebleu_lowercase=True))
    assert lower.cfg.sacrebleu_lowercase


class OwnSearch(SequenceGenerator):
    """A search for fairseq 0.10 whose steps forbid repeated words as its `_generate` did."""

    def step_of_its_own(self, tokens, lprobs, step):
        if self.no_repeat_ngram_size > 0:
            lprobs = self._no_repeat_ngram(tokens, lprobs, 1, len(tokens), step)
        return lprobs


def test_a_search_forbids_repeats_itself():
    words = Pair.target_dictionary
    tokens, lprobs = torch.tensor([[2, 4, 5, 4, 1, 1]]), torch.zeros(1, len(words))
    free = OwnSearch([model(1)], words)
    assert free.no_repeat_ngram_size == 0
    assert free.step_of_its_own(tokens, lprobs.clone(), 3).eq(lprobs).all()
    for blocking in (OwnSearch([model(1)], words, no_repeat_ngram_size=2), free):
        blocking.no_repeat_ngram_size = 2  # the second assigns it, as the constructor did
        forbidden = blocking.step_of_its_own(tokens, lprobs.clone(), 3).eq(float("-inf"))
        assert forbidden.nonzero().tolist() == [[0, 5]]  # 4 5 stands there already


class OwnRule(SequenceGenerator):
    """A search for fairseq 0.10 that forbids a word in place of repeated ones."""

    def _no_repeat_ngram(self, tokens, lprobs, bsz, beam_size, step):
        lprobs[:, 4] = -torch.inf
        return lprobs


class OwnWords(SequenceGenerator):
    """A search for fairseq 0.10 whose words may repeat but for one."""

    def calculate_banned_tokens(self, tokens, step, gen_ngrams, no_repeat_ngram_size, bbsz_idx):
        of_all = (tokens, step, gen_ngrams, no_repeat_ngram_size, bbsz_idx)
        return [word for word in super().calculate_banned_tokens(*of_all) if word == 5]


def test_the_own_rule_of_a_search_is_asked():
    """In stock, the rule of fairseq is followed instead, without a message."""
    words, models = Pair.target_dictionary, [model(1)]
    # a model that repeats one word
    embedding = models[0].decoder.output_projection.weight.data
    embedding.zero_()[4] = 1
    models[0].decoder.layers[-1].final_layer_norm.bias.data.fill_(1)
    lengths = {"beam_size": 1, "max_len_a": 0, "max_len_b": 5, "min_len": 4}
    (free,) = hypotheses(SequenceGenerator(models, words, **lengths), models)
    assert free[:3] == [4, 4, 4]
    lengths["no_repeat_ngram_size"] = 1
    (older,) = hypotheses(OwnRule(models, words, **lengths), models)
    assert 4 not in older and len(set(older)) < len(older)
    (present,) = hypotheses(SequenceGenerator(models, words, **lengths), models)
    assert present.count(4) == 1
    (but_one,) = hypotheses(OwnWords(models, words, **lengths), models)
    assert but_one == free
    without = OwnRule(models, words, **{**lengths, "no_repeat_ngram_size": 0})
    assert without.repeat_ngram_blocker is None and hypotheses(without, models) == [free]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_words_to_forbid_are_those_of_fairseq_0_10(size):
    """A search that copies the method of 0.10 with its helpers."""

    class Copied(SequenceGenerator):
        def calculate_banned_tokens(self, *of_all):
            return super().calculate_banned_tokens(*of_all)

    words = Pair.target_dictionary
    tokens = torch.randint(4, 6, (6, 9), generator=torch.Generator().manual_seed(1))
    tokens[:, 0] = 7
    present = SequenceGenerator([model(1)], words, no_repeat_ngram_size=size)
    copied = Copied([model(1)], words, no_repeat_ngram_size=size)
    for step in range(8):
        forbidden, older = (
            search._no_repeat_ngram(tokens, torch.zeros(6, len(words)), 3, 2, step).eq(-torch.inf)
            for search in (present, copied)
        )
        older[:, 7] &= size > 1  # 0.10 took the start symbol for a word
        assert torch.equal(forbidden, older)
    assert copied.transpose_list([[1, 2, 3], [4, 5]]) == [[1, 4], [2, 5]]


OLDER_SEARCH = """
class Models:
    def reorder(self, model, states, order):
        model.decoder.reorder_incremental_state(states[model], order)
        model.decoder.reorder_incremental_state_scripting(states[model], order)
"""


def test_a_call_that_orders_nothing_is_warned_of(tmp_path, monkeypatch, caplog):
    from fairseq.utils import import_user_module

    import fairseq_ext
    from fairseq_ext.compat.versions.dataclass_defaults import USER_DIRS_VARIABLE

    monkeypatch.setenv(USER_DIRS_VARIABLE, "")
    folder = tmp_path / "plugin_of_0_9"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "search.py").write_text(OLDER_SEARCH)
    for user_dir in (folder, folder, fairseq_ext.__path__[0]):
        import_user_module(Namespace(user_dir=str(user_dir)))
    records = [record for record in caplog.records if "older_searches" in record.name]
    (message,) = [record.getMessage() for record in records]
    assert message.startswith(f"{folder / 'search.py'}:4: decoder.reorder_incremental_state does")
    assert "reorder_incremental_state_scripting" in message


def test_what_the_two_calls_do():
    """Stock's decoder orders its state by the second alone, as the warning says."""
    decoder, order = model(1).decoder, torch.tensor([1, 0])
    states = {}
    decoder(torch.tensor([[2], [4]]), encoder_out=None, incremental_state=states)
    before = [state["prev_key"].clone() for state in states.values()]
    assert before
    decoder.reorder_incremental_state(states, order)
    assert all(map(torch.equal, before, (state["prev_key"] for state in states.values())))
    decoder.reorder_incremental_state_scripting(states, order)
    ordered = [rows[order] for rows in before]
    assert all(map(torch.equal, ordered, (state["prev_key"] for state in states.values())))
