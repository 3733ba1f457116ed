"""--lm-path: which dictionary the language model gets, and that its score counts."""

import functools
import os
import types

import pytest
import torch
from common.words import dictionary_with, numbered_words
from compat.conftest import OPTIMISATION, TINY
from fairseq.modules import LearnedPositionalEmbedding
from fairseq.sequence_generator import SequenceGenerator

from fairseq_ext.compat.generation.fused_language_models import load_language_model


@pytest.fixture
def task():
    """A task with a dictionary of the target."""
    return types.SimpleNamespace(target_dictionary=dictionary_with("un1", "uv2"))


def loaded(path, arg_overrides, task):
    """A stand-in for load_model_ensemble: which dictionary the model would read."""
    with open(os.path.join(arg_overrides["data"], "dict.txt"), encoding="utf-8") as file:
        return path, file.read(), arg_overrides, task


def test_the_dictionary_is_that_of_the_target(task, tmp_path):
    paths, text, overrides, no_task = load_language_model(loaded, "lm.pt", str(tmp_path), task)
    assert (paths, text, no_task) == (["lm.pt"], "un1 1\nuv2 1\n", None)
    assert overrides["data"] != str(tmp_path) and not os.path.exists(overrides["data"])


def test_a_dictionary_of_the_folder_goes_first(task, tmp_path):
    (tmp_path / "dict.txt").write_text("un1 7\nuv2 1\n", encoding="utf-8")
    arguments = load_language_model(loaded, "lm.pt", str(tmp_path), task)
    assert arguments[1] == "un1 7\nuv2 1\n"


@pytest.mark.parametrize("text", ["uv2 1\nun1 1\n", "un1 1\n"], ids=["order", "size"])
def test_a_dictionary_of_other_words_is_refused(task, tmp_path, text):
    (tmp_path / "dict.txt").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="^--lm-path lm.pt: .*dict.txt has other words than the"):
        load_language_model(loaded, "lm.pt", str(tmp_path), task)


@pytest.mark.parametrize("is_old", [False, True])
def test_models_that_see_other_words_are_named(task, is_old, caplog):
    """The search asks for the next word, and begins with the end symbol."""

    def load_with(paths, arg_overrides, task, **settings):
        values = types.SimpleNamespace(**settings)
        return ["model"], values if is_old else types.SimpleNamespace(task=values)

    load = functools.partial(load_with, add_bos_token=False, past_target=False)
    assert load_language_model(load, "lm.pt", "", task)[0] == ["model"] and not caplog.text
    load = functools.partial(load_with, add_bos_token=True)
    assert load_language_model(load, "lm.pt", "", task)[0] == ["model"]
    assert "--lm-path lm.pt: trained with --add-bos-token: it begins a text with <s>" in caplog.text
    load = functools.partial(load_with, past_target=True)
    with pytest.raises(ValueError, match="^--lm-path lm.pt: trained with --past-target: "):
        load_language_model(load, "lm.pt", "", task)


def test_a_missing_model_is_named_with_its_option(task):
    def load(paths, arg_overrides, task):
        raise FileNotFoundError(2, "no such checkpoint", paths[0])

    with pytest.raises(FileNotFoundError, match="no such checkpoint: '--lm-path lm.pt'"):
        load_language_model(load, "lm.pt", "", task)


class Language(torch.nn.Module):
    """A language model of so many words and positions."""

    def __init__(self, words, positions):
        super().__init__()
        self.decoder, self.words = torch.nn.Module(), words
        self.decoder.embed_positions = LearnedPositionalEmbedding(positions + 2, 4, 1)

    def forward(self, tokens):
        return self.decoder.embed_positions(tokens)

    def get_normalized_probs(self, output, log_probs, sample=None):
        return output.new_zeros(*output.shape[:2], self.words)


class Translation(torch.nn.Module):
    """All words are equally likely."""

    def forward(self, tokens):
        return torch.zeros(*tokens.shape, 9), None

    def get_normalized_probs(self, output, log_probs, sample=None):
        return output[0]


def test_translations_are_as_long_as_both_models_allow():
    """Without a limit of its own a search of fairseq ends in an IndexError."""
    options = dict(beam_size=1, min_len=4, max_len_b=30, lm_model=Language(9, 6))
    generator = SequenceGenerator([Translation()], numbered_words(9), **options)
    source = torch.tensor([[5, 2]])
    sample = {"net_input": {"src_tokens": source, "src_lengths": torch.tensor([2])}}
    ((hypothesis,),) = generator.generate(None, sample)
    assert 4 < len(hypothesis["tokens"]) <= 6


def test_models_of_fewer_words_or_with_a_source_are_refused():
    reader = Language(9, 6)
    reader.encoder = torch.nn.Module()
    with pytest.raises(ValueError, match="^--lm-path: the checkpoint holds a Language; allowed: "):
        SequenceGenerator([Translation()], numbered_words(9), lm_model=reader)
    with pytest.raises(ValueError, match="^--lm-path: .* predicts 8 words, the translation model"):
        SequenceGenerator([Translation()], numbered_words(9), lm_model=Language(8, 6))


@pytest.fixture(scope="module")
def trained(toy_corpus, run, tmp_path_factory):
    """Folder with a transformer, trans/, and a language model of yy, lm/."""
    folder = tmp_path_factory.mktemp("fusion")
    words = ["--only-source", "--srcdict", toy_corpus.two / "dict.yy.txt", "--destdir"]
    for split in ("train", "valid"):
        words[:0] = [f"--{split}pref", f"{toy_corpus.text}/{split}.yy"]
    run("fairseq-preprocess", *words, folder / "data")
    saving = ["--max-update", 3, "--no-epoch-checkpoints", "--disable-validation", "--save-dir"]
    pair = [toy_corpus.two, "-s", "xx", "-t", "yy", *TINY, *OPTIMISATION]
    run("fairseq-train", *pair, *saving, folder / "trans")
    model = ["--arch", "transformer_lm", *("--decoder-layers", 1, "--decoder-embed-dim", 16)]
    model += ["--decoder-ffn-embed-dim", 16, "--decoder-attention-heads", 2, "--lr", "1e-1"]
    words = ["--task", "language_modeling", "--tokens-per-sample", 32, "--max-tokens", 800]
    run(
        "fairseq-train",
        folder / "data",
        *words,
        *model,
        "--optimizer",
        "adam",
        *saving,
        folder / "lm",
    )
    return folder


def scores(output):
    """The scores of the hypotheses by their numbers."""
    rows = [line.split("\t") for line in output.splitlines() if line.startswith("H-")]
    return {int(number[2:]): float(score) for number, score, _ in rows}


@pytest.mark.slow
def test_its_score_counts_in_both_commands(trained, toy_corpus, run, tmp_path):
    words = [toy_corpus.two, "-s", "xx", "-t", "yy", "--path", trained / "trans/checkpoint_last.pt"]
    words += ["--beam", 2, "--max-len-b", 6]
    fusion = ["--lm-path", trained / "lm/checkpoint_last.pt", "--lm-weight"]
    lines = (toy_corpus.text / "test.xx").read_text(encoding="utf-8")

    def generated(*more):
        return scores(run("fairseq-generate", *words, *more, cwd=tmp_path))

    def typed(*more):
        return scores(run("fairseq-interactive", *words, *more, stdin=lines, cwd=tmp_path))

    alone, fused = generated(), generated(*fusion, 0.5)
    assert generated(*fusion, 0) == pytest.approx(alone, abs=1e-3)
    assert all(fused[number] < score - 0.1 for number, score in alone.items())
    assert typed(*fusion, 0.5) == pytest.approx(fused, abs=1e-3)
