"""Values of the validation do not depend on how the sentences are cut into batches."""

import math
import random

import pytest
import torch
from common.inprocess import configuration
from dual.reviews import binarise, write_reviews
from fairseq import metrics, options, tasks, utils
from fairseq.criterions import build_criterion
from fairseq.logging.meters import AverageMeter
from twin import recordings, test_captions_task, test_speech_task

SIZES = (2, 7, 24)
TOLERANCE = 1e-6


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reviews")
    write_reviews(folder, random.Random(3))
    return binarise(folder)


def built(arguments):
    """(task, model, criterion) in evaluation mode, float64, of weights far from their start."""
    words = [*arguments, "--max-tokens", 4000]
    cfg = configuration(options.get_training_parser(), words)
    task = tasks.setup_task(cfg.task)
    model, criterion = task.build_model(cfg.model), build_criterion(cfg.criterion, task)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.copy_(0.2 * torch.randn(parameter.shape, generator=generator))
    return task, model.eval().double(), criterion.eval()


def precise(tensor):
    return tensor.double() if tensor.is_floating_point() else tensor


def validated(task, model, criterion, size):
    """{name: value without rounding} of fairseq-validate with --batch-size ``size``."""
    batches = task.get_batch_iterator(
        task.dataset("valid"), max_sentences=size, disable_iterator_cache=True
    ).next_epoch_itr(shuffle=False)
    with metrics.aggregate(new_root=True) as aggregated:
        for sample in batches:
            sample = utils.apply_to_sample(precise, sample)
            _, _, log = task.valid_step(sample, model, criterion)
            task.reduce_metrics([log], criterion)
        values = dict(aggregated.get_smoothed_values())
    exact = {
        name: meter.avg for name, meter in aggregated.items() if isinstance(meter, AverageMeter)
    }
    counts = ("bsz", "ntokens", "nsentences", "wpb", "wps", "_bleu")
    return {
        name: float(exact.get(name, value))
        for name, value in values.items()
        if value is not None  # left out of the log: a label has no perplexity
        and not any(part in name for part in counts)
        and not hasattr(value, "shape")
    }


def check(arguments, names):
    task, model, criterion = built(arguments)
    task.load_dataset("valid")
    first, *others = [validated(task, model, criterion, size) for size in SIZES]
    assert set(names) <= set(first), sorted(first)
    for other in others:
        assert other.keys() == first.keys()
        for name, value in first.items():
            assert other[name] == pytest.approx(value, rel=TOLERANCE, abs=TOLERANCE), name
    return first


LABELS = ("text-label_loss", "text-label_error", "label-text_loss", "label-text_ppl", "loss")
LSTM = ["--task", "dual_translation", "-s", "text", "-t", "label", "--embed-dim", 5]
LSTM += ["--hidden-size", 6, "--criterion"]


@pytest.mark.parametrize(
    "arch, criterion",
    [
        ("dual_lstm_classifier", ["dual_label_cross_entropy"]),
        ("dual_lstm_classifier", ["dual_label_cross_entropy", "--label-weight", "token"]),
        ("dual_supervised_lstm_classifier", ["dual_supervised", "--dsl-weight", 0]),
    ],
    ids=["text", "token", "supervised"],
)
def test_labels_and_texts(reviews, arch, criterion):
    check([reviews, *LSTM, *criterion, "--arch", arch], LABELS)


def test_the_loss_of_labels_is_the_mean_over_texts(reviews):
    """And the loss of both directions is the mean of theirs, or the plain sum over all tokens."""
    for weight in ("text", "token"):
        words = [reviews, *LSTM, "dual_label_cross_entropy", "--arch", "dual_lstm_classifier"]
        task, model, criterion = built([*words, "--label-weight", weight])
        task.load_dataset("valid")
        values = validated(task, model, criterion, 7)
        part = task.dataset("valid").datasets["text-label"]
        nll, tokens = [], 0
        for example in part:
            sample = part.collater([example])
            sample["net_input"]["pair"] = "text-label"
            log_probs = model.get_normalized_probs(model(**sample["net_input"]), log_probs=True)
            nll.append(-log_probs[0, 0, sample["target"][0, 0]].item() / math.log(2))
            tokens += len(example["source"])
        mean, texts = sum(nll) / len(nll), len(nll)
        assert values["text-label_loss"] == pytest.approx(mean, abs=1e-4)
        counted = tokens if weight == "text" else texts
        total = counted * mean + tokens * values["label-text_loss"]
        assert values["loss"] == pytest.approx(total / (counted + tokens), abs=2e-4)


CHUNKED = ["--criterion", "chunked_label_smoothed_cross_entropy", "--label-smoothing", 0.1]
TINY = ["--embed-dim", 12, "--hidden-size", 10]
SPEECH = [word for entry in test_speech_task.SIZES.items() for word in entry]
XX_YY = ["-s", "xx", "-t", "yy"]
DUO = ["--arch", "duo_transformer_tiny", "--layers", 1]


@pytest.mark.parametrize(
    "words, names",
    [
        (["dual_translation", *XX_YY, "--arch", "dual_transformer_tiny", *CHUNKED], ["loss"]),
        (
            ["dual_translation", *XX_YY, "--arch", "dual_supervised_transformer"]
            + ["--encoder-layers", 1, "--decoder-layers", 1, "--criterion", "dual_supervised"]
            + ["--dsl-weight", 0, "--label-smoothing", 0.1, "--sentence-avg"],
            ["yy-xx_nll_loss"],
        ),
        (["multiway_translation", "--lang-pairs", "xx-yy,yy-xx", "--arch", "multiway_gru_tiny"]
         + [*CHUNKED, "--sentence-avg"], ["xx-yy_loss"]),
        (["routed_mtl", "--lang-pairs", "xx-yy,yy-xx", "--main-pair", "xx-yy"]
         + ["--arch", "routed_gru", *TINY, *CHUNKED], ["yy-xx_ppl"]),
        (["translation", *XX_YY, *DUO, *CHUNKED], ["nll_loss"]),
        (["translation", *XX_YY, *DUO, *CHUNKED, "--sentence-avg"], ["nll_loss"]),
        (["translation", *XX_YY, "--arch", "twin_lstm_tiny", "--criterion", "twin"], ["nll_loss"]),
        (["translation", *XX_YY, "--arch", "twin_transformer_tiny", "--criterion", "twin"]
         + ["--sentence-avg", "--label-smoothing", 0.1], ["loss"]),
    ],
    ids=["dual", "supervised", "multiway", "routed", "duo", "duo-avg", "twin", "twin-avg"],
)  # fmt: skip
def test_translations(toy_corpus, words, names):
    check([toy_corpus.two, "--task", *words], names)


def test_labels_of_texts(reviews):
    words = ["--task", "text_classification", "--arch", "duo_classifier", "--embed-dim-s", 5]
    words += ["--embed-dim-p", 4, "--criterion", "label_cross_entropy"]
    check([reviews, *words], ["loss", "accuracy", "macro_f1"])


@pytest.mark.parametrize("arch", test_captions_task.ARCHITECTURES)
def test_captions(tmp_path, arch):
    data = test_captions_task.prepared(tmp_path, {"train": 8, "valid": 22})
    sizes = test_captions_task.sizes_of(arch)
    words = ["--task", "image_captioning", "--arch", arch, *sizes, "--criterion", "twin"]
    check([data, *words], ["loss", "nll_loss"])


def test_speech(tmp_path):
    data = recordings.prepared(tmp_path, {"train": 4, "valid": 22})
    words = ["--task", "speech_to_text", "--arch", "twin_speech_lstm", *SPEECH]
    check([data, *words, "--criterion", "twin"], ["loss", "nll_loss"])
