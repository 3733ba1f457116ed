"""Lines in, one answer for each, in their order, whatever becomes of them."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from common import inprocess
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import GenerationConfig
from omegaconf import OmegaConf
from options.systems import SYSTEMS

from fairseq_ext.compat.generation.line_translator import BatchLimits, Coders, Line, LineTranslator
from fairseq_ext.streams.subwords import DirectionCoder, Uncut


class Upper:
    """A coder that can be seen: it writes in capitals and reads small letters."""

    def encode(self, text):
        return text.lower()

    def decode(self, text):
        return text.upper()


@pytest.fixture(scope="module")
def loaded(toy_corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    words = SYSTEMS["transformer"].words(toy_corpus.two, "--max-update", 1, "--batch-size", 8)
    inprocess.train(*words, "--disable-validation", "--save-dir", folder)
    models, _, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(folder / "checkpoint_last.pt")], arg_overrides={"data": str(toy_corpus.two)}
    )
    return task, [model.eval() for model in models]


@pytest.fixture
def translator(loaded):
    """Function (options of the search, limits of batches, coders) -> a translator."""

    def made(limits=BatchLimits(None, 4), coders=Coders(), **options):  # noqa: B008
        generation = OmegaConf.structured(GenerationConfig(max_len_b=4, **options))
        return LineTranslator(*loaded, generation, coders, limits, torch.device("cpu"))

    return made


def lines(*texts):
    return [Line(number, text) for number, text in enumerate(texts)]


def test_answers_are_in_the_order_of_lines(translator):
    texts = ["an1", "an1 av2 an3 at1", "", "an1 av2"]
    answers = list(translator(nbest=2).answers(lines(*texts)))
    assert [answer.line.text for answer in answers] == texts
    assert [len(answer.source.tokens) for answer in answers] == [2, 5, 1, 3]
    assert all(len(answer.hypotheses) == 2 and answer.seconds > 0 for answer in answers)


@pytest.mark.parametrize(
    "limits, words, message",
    [
        (BatchLimits(None, 2), 5_000, "(5001, 0) tokens (source, target), more than the model"),
        (BatchLimits(7, None), 9, "10 tokens, more than --max-tokens 7"),
    ],
)
def test_a_line_that_is_too_long_stops_no_other(translator, limits, words, message):
    answers = list(translator(limits).answers(lines("an1", "an1 " * words, "an2")))
    assert [answer.error is None for answer in answers] == [True, False, True]
    assert message in answers[1].error
    assert answers[1].source is None and not answers[1].hypotheses


def test_the_filter_of_a_task_is_asked(loaded, translator, monkeypatch):
    """As in fairseq-generate: a plugin may leave out what is short enough, or take longer lines."""
    task, models = loaded

    class Choosing(type(task)):
        def filter_indices_by_size(self, indices, dataset, *options):
            lengths = dataset.src_sizes[indices]
            return indices[(lengths != 3) & (lengths < 5_002)]

    monkeypatch.setattr(task, "__class__", Choosing)
    for model in models:  # positions for the longest line, which the options do not allow
        monkeypatch.setattr(model.encoder, "max_source_positions", 9)
    texts = ("an1", "an1 av2", "an1 " * 11, "an1 " * 5_001, "an2")
    answers = list(translator().answers(lines(*texts)))
    reason = "(source, target): Choosing.filter_indices_by_size leaves them out"
    errors = [None, f"(3, 0) tokens {reason}", None, f"(5002, 0) tokens {reason}", None]
    assert [answer.error for answer in answers] == errors


def test_lines_that_a_task_has_in_no_batch_have_empty_answers(loaded, translator, monkeypatch):
    task, _ = loaded
    stock = task.get_batch_iterator

    def first_line_alone(dataset, **options):
        monkeypatch.setattr(dataset, "ordered_indices", lambda: np.arange(1))
        return stock(dataset=dataset, **options)

    monkeypatch.setattr(task, "get_batch_iterator", first_line_alone)
    answers = list(translator().answers(lines("an1", "an2")))
    reason = f"the batches of {type(task).__name__} leave it out"
    assert [answer.error for answer in answers] == [None, reason]


def test_no_lines_have_no_answers(translator):
    assert list(translator().answers([])) == []


def test_coders_run_in_their_order(translator):
    class Marks(Upper):
        def encode(self, text):
            return text.replace("-", " ")

        def decode(self, text):
            return text.replace(" ", "-")

    coded = translator(coders=Coders(Upper(), Marks()))
    assert coded.encode("AN1-AV2") == "an1 av2" and coded.decode("un1 uv2") == "UN1-UV2"
    assert coded.encode("AN1-AV2", bpe=Upper()) == "an1-av2"  # the task's coder instead of --bpe


def test_words_spelt_like_symbols_are_unknown(translator):
    plain = translator()
    assert plain.encode("an1 </s> <pad> <s> av2") == "an1 <unk> <unk> <unk> av2"
    assert plain.encode("an1  av2") == "an1  av2"  # nothing else changes


def test_constraints_are_packed_for_each_line(translator):
    constrained = translator(constraints="ordered")
    several = [Line(0, "an1 av2", ("un1 uv2", "ut1")), Line(1, "an3")]
    first, second = constrained.answers(several)
    assert constrained.constraint_texts(first) == [
        "un1 uv2",
        "ut1",
    ] and not constrained.constraint_texts(second)
    assert "ut1" in constrained.hypothesis_text(first, first.hypotheses[0]).split()


def test_constraints_are_cut_as_targets(translator):
    """Tags that nothing has cut would be pieces of unknown words."""
    cut = SimpleNamespace(encode=lambda text: text.replace("n", "n "), decode=str)
    coder = DirectionCoder(cut, Uncut())
    constrained = translator(constraints="ordered", coders=Coders(bpe=coder))
    (answer,) = constrained.answers([Line(0, "an1", ("un1 uv2",))])
    assert constrained.source_text(answer) == "<unk> <unk>"
    assert constrained.constraint_texts(answer) == ["un1 uv2"]


@pytest.mark.parametrize("order", ["ordered", "unordered"])
def test_empty_constraints_are_none(translator, order):
    """In stock, an empty one tears the next apart, and ends an unordered search."""
    constrained = translator(constraints=order)
    first, second = constrained.answers(
        [Line(0, "an1", ("", "un1 uv2", "  ")), Line(1, "an1", ("un1 uv2",))]
    )
    assert constrained.constraint_texts(first) == ["un1 uv2"]
    tokens = [answer.hypotheses[0]["tokens"].tolist() for answer in (first, second)]
    assert tokens[0] == tokens[1]


def test_texts_of_answers(translator):
    joined = translator(coders=Coders(post_process="@@ "))
    (answer,) = joined.answers(lines("an1 unknown"))
    assert joined.source_text(answer) == "an1 <unk>"
    assert joined.text(answer.hypotheses[0]["tokens"]) == joined.hypothesis_text(
        answer, answer.hypotheses[0]
    )


class OnGpu(torch.Tensor):
    """Tokens on a GPU: asking for one waits for the device."""

    def cpu(self):
        return self.as_subclass(torch.Tensor)

    def item(self):
        raise AssertionError("the device was waited for")


def test_texts_are_made_of_tokens_on_the_cpu(translator):
    plain = translator()
    tokens = plain.target_dictionary.encode_line("at1 at2", add_if_not_exist=False).long()
    assert plain.text(tokens.as_subclass(OnGpu)) == plain.text(tokens)
    (answer,) = plain.answers(lines("an1 av2"))
    there = answer._replace(tokens=answer.tokens.as_subclass(OnGpu))
    assert plain.source_text(there) == plain.source_text(answer) == "an1 av2"


def test_dictionaries_of_plugins_join_sub_words(translator, monkeypatch):
    """As that of BERT's pieces, whose marks no --post-process knows."""
    joining = translator(coders=Coders(post_process="pieces"))
    dictionary = joining.target_dictionary

    def string(tensor, bpe_symbol=None, extra_symbols_to_ignore=None):
        return f"{len(tensor)} {bpe_symbol} {sorted(extra_symbols_to_ignore)}"

    monkeypatch.setattr(dictionary, "string", string)
    tokens = torch.tensor([4, 5, dictionary.eos()])
    expected = f"3 pieces [{dictionary.eos()}]"
    assert joining.hypothesis_text(None, {"tokens": tokens}) == expected
