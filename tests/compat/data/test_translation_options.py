"""Options of `translation` in the tasks that derive from it."""

from types import SimpleNamespace

import pytest
import torch
from common.inprocess import parsed

TASKS = {
    "translation_lev": ("nonautoregressive_transformer",),
    "translation_from_pretrained_bart": ("mbart_base", "--langs", "xx,yy"),
}


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("asked", [False, True])
def test_sets_are_read_as_asked(name, asked, toy_corpus):
    from fairseq.tasks import setup_task

    words = [toy_corpus.two, "--task", name, "-s", "xx", "-t", "yy", "--arch", *TASKS[name]]
    words += ["--max-source-positions", 5, "--max-tokens", 99]
    if asked:
        words += ["--truncate-source", "--num-batch-buckets", 2, "--required-seq-len-multiple", 4]
    task = setup_task(parsed(*words))
    task.load_dataset("valid")
    dataset = task.datasets["valid"]
    pad = task.source_dictionary.pad()
    sources = [dataset[index]["source"] for index in range(len(dataset))]
    sources = [source[source.ne(pad)].tolist() for source in sources]
    # with a symbol for the beginning or the language
    assert max(len(source) for source in sources) == (5 if asked else 6)
    assert (dataset.buckets is not None) is asked and dataset.pad_to_multiple == (4 if asked else 1)
    symbol = "[xx]" if "bart" in name else "</s>"
    assert {source[-1] for source in sources} == {task.source_dictionary.index(symbol)}
    assert getattr(task, "args", task.cfg).max_source_positions == 5  # that of the model remains


@pytest.mark.parametrize("asked", [False, True])
def test_bleu_of_refined_translations(asked, monkeypatch):
    from fairseq.tasks.translation_lev import TranslationLevenshteinTask

    task = object.__new__(TranslationLevenshteinTask)
    task.cfg = SimpleNamespace(eval_bleu=asked, noise="no_noise")
    task.sequence_generator = "generator"
    bleu = SimpleNamespace(sys_len=3, ref_len=4, counts=[3, 2, 1, 0], totals=[3, 2, 1, 1])
    monkeypatch.setattr(task, "_inference_with_bleu", lambda *arguments: bleu, raising=False)

    def criterion(model, sample):
        assert sample["prev_target"] is sample["target"] and not torch.is_grad_enabled()
        return 1.0, 1, {}

    sample = {"target": torch.tensor([[0, 4, 2]])}
    model = torch.nn.Linear(1, 1)
    _, _, log = task.valid_step(sample, model, criterion)
    assert log.get("_bleu_ref_len") == (4 if asked else None) and not model.training
