"""The steps of semisupervised_translation, and their back-translation."""

from types import SimpleNamespace

import numpy as np
import torch
from fairseq.data import BacktranslationDataset, Dictionary, LanguagePairDataset
from fairseq.tasks import semisupervised_translation


class Translators(torch.nn.Module):
    """Translates all words into the same one, which is its parameter."""

    def __init__(self):
        super().__init__()
        self.word = torch.nn.Parameter(torch.tensor(5.0))
        self.models = {"xx-yy": self}
        self.modes = []

    def translate(self, sample):
        self.modes.append(self.training)
        tokens = sample["net_input"]["src_tokens"]
        return [[{"tokens": torch.full((len(line),), int(self.word))}] for line in tokens]


def task_of(dataset, weight):
    task = object.__new__(semisupervised_translation.SemisupervisedTranslationTask)
    task.lang_pairs, task.backtranslate_datasets = ["xx-yy"], {"xx-yy": dataset}
    task.lambda_parallel, task.lambda_otf_bt, task.lambda_denoising = 0.0, weight, 0.0
    return task


def test_texts_are_translated_by_the_model_of_the_step():
    lines = [torch.tensor([7, 8, 2]), torch.tensor([9, 2])]
    sizes = np.array([3, 2])
    pairs = LanguagePairDataset(lines, sizes, Dictionary(), lines, sizes, Dictionary())
    model = Translators()
    dataset = semisupervised_translation.BacktranslationDataset(
        tgt_dataset=pairs, src_dict=Dictionary(), backtranslation_fn=model.translate, cuda=False
    )
    model.train()
    batch = dataset.collater([dataset[0], dataset[1]])  # read ahead, before the update
    with torch.no_grad():
        model.word.fill_(6.0)
    steps = []

    def criterion(model, sample):
        steps.append((model.training, sample["net_input"]["src_tokens"].tolist()))
        assert sample["target"].tolist() == [[7, 8, 2], [9, 2, 1]]
        return model.word * 0, 2, {"loss": 0.0}

    optimizer = SimpleNamespace(backward=lambda loss: None)
    for weight in (1.0, 0.0):
        task_of(dataset, weight).train_step({"bt:xx-yy": batch}, model, criterion, optimizer, 0)
    assert steps == [(True, [[6, 6, 6], [6, 6, 6]])]
    assert model.modes == [False] and model.training


def test_sets_of_a_derived_task_are_translated_as_they_are_read():
    lines, sizes = [torch.tensor([7, 2])], np.array([2])
    text = LanguagePairDataset(lines, sizes, Dictionary())
    dataset = BacktranslationDataset(text, Dictionary())
    batch, steps = {"net_input": {}, "target": torch.tensor([[7, 2]])}, []

    def criterion(model, sample):
        steps.append(sample)
        return model.word * 0, 2, {"loss": 0.0}

    optimizer = SimpleNamespace(backward=lambda loss: None)
    step = task_of(dataset, 1.0).train_step
    step({"bt:xx-yy": batch}, Translators(), criterion, optimizer, 0)
    assert steps == [batch]


class Loss:
    """A stand-in for a loss; what is asked of it here is all that the step needs."""

    def __init__(self, value):
        self.value = value

    def __mul__(self, weight):
        return Loss(self.value * weight)

    def detach(self):
        return self

    def item(self):
        return self.value


def semisupervised_step(sample, denoising=0.0, **options):
    task = object.__new__(semisupervised_translation.SemisupervisedTranslationTask)
    task.__dict__.update(
        lang_pairs=["xx-yy"],
        backtranslate_datasets={},
        lambda_parallel=1.0,
        lambda_otf_bt=0.5,
        lambda_denoising=denoising,
    )
    backward = []
    optimizer = SimpleNamespace(backward=lambda loss: backward.append(loss.value))
    model = SimpleNamespace(models={"xx-yy": "forward", "yy-yy": "denoise"}, train=lambda: None)

    def criterion(model, batch):
        assert model == batch.get("model", model)
        return Loss(batch["loss"]), 2, {"loss": batch["loss"], "ntokens": 3}

    return backward, task.train_step(sample, model, criterion, optimizer, 0, **options)


def test_semisupervised_steps_are_logged():
    sample = {"xx-yy": {"loss": 4.0}, "bt:xx-yy": {"loss": 6.0}, "denoising:xx-yy": {"loss": 9.0}}
    backward, (loss, size, logged) = semisupervised_step(sample)
    assert backward == [4.0, 3.0] and (loss, size) == (7.0, 4)
    # as in the log of several languages: all, and each kind of data by itself
    assert logged == {"loss": 10.0, "ntokens": 6, "xx-yy": 7.0, "bt:xx-yy": 9.0}


def test_each_part_of_a_step_has_its_model_and_its_weight():
    """Texts of yy with noise are read and written by yy-yy."""
    losses = {"xx-yy": (4.0, "forward"), "bt:xx-yy": (6.0, "forward")}
    losses["denoising:xx-yy"] = (8.0, "denoise")
    sample = {key: {"loss": loss, "model": model} for key, (loss, model) in losses.items()}
    assert semisupervised_step(sample, denoising=0.25)[0] == [4.0, 3.0, 2.0]


def test_semisupervised_steps_without_data_or_gradients():
    backward, (loss, size, _) = semisupervised_step({"xx-yy": {"loss": 4.0}, "bt:xx-yy": None})
    assert backward == [4.0] and size == 2
    backward, (loss, _, logged) = semisupervised_step({"xx-yy": {"loss": 4.0}}, ignore_grad=True)
    assert backward == [0.0] and loss == 0 and logged["loss"] == 4.0
