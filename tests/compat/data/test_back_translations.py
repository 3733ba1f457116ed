"""The back-translation of semisupervised_translation."""

from types import SimpleNamespace

import numpy as np
import torch
from fairseq.data import Dictionary, LanguagePairDataset
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
