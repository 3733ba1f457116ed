"""A beam with room for all translations finds each of them, with the score of a whole pass.

Dimensions: N translations, T words, V words of the dictionary.
"""

import itertools

import pytest
import torch
from common import inprocess
from fairseq import options, tasks
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import BaseFairseqModel, FairseqDecoder
from inference.stock import ALL
from omegaconf import OmegaConf
from twin.support import randomise

from fairseq_ext.streams.other_direction import task_toward
from fairseq_ext.streams.task import StreamsTask

LONGEST = 2
SEARCHES = [
    dict(max_len_b=LONGEST),
    dict(max_len_b=LONGEST, min_len=0, lenpen=-1, unkpen=1.5),
    dict(max_len_b=LONGEST, min_len=2, lenpen=0.3, temperature=1.7),
    dict(max_len_a=0.5, max_len_b=0, unnormalized=True, unkpen=-1),
    dict(max_len_b=LONGEST, no_repeat_ngram_size=1),
]


def prepared(name, folder):
    """The task of a direction, and two models with random weights."""
    for lang in ("xx", "yy", "zz"):
        # a beam holds fewer hypotheses than there are words
        text = "".join(f"w{number} 1\n" for number in range(40))
        (folder / f"dict.{lang}.txt").write_text(text)
    words = ALL[name].words(folder)
    cfg = inprocess.configuration(options.get_training_parser(), words)
    task = tasks.setup_task(cfg.task)
    models = [randomise(task.build_model(cfg.model), seed).eval() for seed in (1, 2)]
    return task_toward(task, "xx-yy") if isinstance(task, StreamsTask) else task, models


def subclasses(kind):
    """A class and all that inherit from it."""
    return {kind}.union(*map(subclasses, kind.__subclasses__()))


@pytest.fixture
def few_words(monkeypatch):
    """All probability is that of the words w0 and w1, of <unk> and of the end."""

    def limited(stock):
        def get_normalized_probs(self, output, log_probs, sample=None):
            logits = torch.full_like(output[0], -torch.inf)
            logits[..., 1:6] = output[0][..., 1:6]  # <pad> among them, which no search chooses
            return stock(self, (logits, *output[1:]), log_probs, sample)

        return get_normalized_probs

    name = "get_normalized_probs"
    for kind in subclasses(BaseFairseqModel) | subclasses(FairseqDecoder):
        if name in vars(kind):
            monkeypatch.setattr(kind, name, limited(vars(kind)[name]))


def scored(models, dictionary, source, length, search):
    """{translation: score} of all that the options allow, each by whole passes."""
    most = max(int(search.get("max_len_a", 0) * length + search["max_len_b"]), 1)
    numbers = range(search.get("min_len", 1), most + 1)
    rows = [row for n in numbers for row in itertools.product((3, 4, 5), repeat=n)]
    if search.get("no_repeat_ngram_size"):
        rows = [row for row in rows if len(set(row)) == len(row)]
    end = dictionary.eos()
    scores = {}
    for row in rows:
        target = torch.tensor([[*row, end]])  # (1, T)
        inputs = {"src_tokens": source[None], "src_lengths": torch.tensor([len(source)])}
        inputs["prev_output_tokens"] = torch.tensor([[end, *row]])
        probabilities = []
        for model in models:
            output = model(**inputs)
            output = (output[0] / search.get("temperature", 1), *output[1:])
            probabilities.append(model.get_normalized_probs(output, False).double())
        log_p = torch.stack(probabilities).mean(dim=0).log()  # (1, T, V)
        log_p[..., dictionary.unk()] -= search.get("unkpen", 0)
        total = log_p.gather(2, target[..., None]).sum().item()
        divisor = 1 if search.get("unnormalized") else target.numel() ** search.get("lenpen", 1)
        scores[tuple(target[0].tolist())] = total / divisor
    return scores


@pytest.mark.parametrize("count", [1, 2], ids=["one", "ensemble"])
@pytest.mark.parametrize("name", ["dual_transformer", "duo_transformer", "routed_gru", "twin_lstm"])
@torch.no_grad()
def test_all_translations_are_found(name, count, few_words, tmp_path):
    task, models = prepared(name, tmp_path)
    dictionary, end = task.target_dictionary, task.target_dictionary.eos()
    sources = [torch.tensor([4, 5, 5, end]), torch.tensor([5, end])]
    lengths = [len(source) for source in sources]
    dataset = task.build_dataset_for_inference(sources, lengths)
    sample = dataset.collater([dataset[number] for number in range(len(sources))])
    for search in SEARCHES:
        wide = OmegaConf.merge(GenerationConfig(beam=20), search)
        generator = task.build_generator(models[:count], wide)
        lists = task.inference_step(generator, models[:count], sample)
        for number, source, hypotheses in zip(
            sample["id"].tolist(), sample["net_input"]["src_tokens"], lists
        ):
            source = source[source.ne(dictionary.pad())]
            expected = scored(models[:count], dictionary, source, lengths[number], search)
            scores = {
                tuple(entry["tokens"].tolist()): float(entry["score"]) for entry in hypotheses
            }
            assert len(hypotheses) == len(expected) and scores == pytest.approx(expected, abs=1e-3)
            assert list(scores.values()) == sorted(scores.values(), reverse=True)
