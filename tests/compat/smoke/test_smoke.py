"""What users of fairseq run: every task and every family of architectures, and the page of them."""

import importlib.util
import os
import re
from types import SimpleNamespace

import pytest
from compat.smoke import page
from compat.smoke.corpora import Corpora
from compat.smoke.example_data import ExampleData
from compat.smoke.recordings import Recordings
from compat.smoke.script_data import ScriptData
from compat.smoke.untried import UNTRIED

FAST = ("denoising: bart",)  # one that is run with every test


@pytest.fixture(scope="module")
def place(toy_corpus, run, tmp_path_factory):
    """Function: the folder or file of data that a row names in braces."""
    folder = tmp_path_factory.mktemp("smoke")
    texts, recordings = Corpora(toy_corpus, run, folder), Recordings(folder / "recordings")
    examples = ExampleData(texts, recordings)
    makers = (texts, recordings, examples, ScriptData(texts))

    def place(name):
        (maker,) = [maker for maker in makers if hasattr(type(maker), name)]
        return getattr(maker, name)

    return place


def missing(row):
    """Packages of a row that are not installed."""
    return [name for name in row.needs if importlib.util.find_spec(name) is None]


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row.name, marks=() if row.name in FAST else pytest.mark.slow)
        for row in page.ROWS
    ],
)
def test_row(row, place, run, tmp_path):
    if missing(row):
        pytest.skip(f"not installed: {', '.join(missing(row))}")
    output = ""
    for number, line in enumerate(row.commands, 1):
        is_last = number == len(row.commands)
        names = set(re.findall(r"\{(\w+)\}", line))
        places = {name: tmp_path if name == "out" else place(name) for name in names}
        output += run(
            *[word.format(**places) for word in line.split()],
            cwd=tmp_path,
            stdin=row.stdin if is_last else "",
            fails=row.fails and is_last,
        )
    assert re.search(row.expect, output, re.DOTALL), output[-3000:]


def test_names_are_unique():
    assert len({row.name for row in page.ROWS}) == len(page.ROWS)


def test_page_shows_these_runs():
    if os.environ.get("FAIRSEQ_EXT_WRITE_PAGES"):
        page.write()
    assert page.parts()[1] == page.table()
    assert all(callable(globals()[test]) for test, _ in page.CODE.values())


def stock(registry):
    """The entries of a registry of fairseq that are fairseq's own."""
    return {name: entry for name, entry in registry.items() if entry.__module__[:8] == "fairseq."}


def test_every_task_is_tried():
    from fairseq.tasks import TASK_REGISTRY

    tried = page.words("task") | {"translation"} | untried_names()
    assert set(stock(TASK_REGISTRY)) <= tried, set(stock(TASK_REGISTRY)) - tried


def test_every_family_of_architectures_is_tried():
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY

    tried = page.words("arch")
    families = {entry for name, entry in ARCH_MODEL_REGISTRY.items() if name in tried}
    names = {name for name, entry in stock(MODEL_REGISTRY).items() if entry not in families}
    # three names of RoBERTa for its hub
    left = names - untried_names() - {"camembert", "gottbert", "xlmr"}
    assert not left


def untried_names():
    return {name for what in UNTRIED for name in re.findall(r"`(\w+)`", what)}


# ---------------------------------------------------------------- from Python


TOKENS = [[0, 5, 6, 7, 2], [0, 8, 2, 1, 1]]


@pytest.fixture
def models():
    """A transformer, a language model and RoBERTa, small and untrained."""
    from fairseq.data import Dictionary
    from fairseq.models.roberta.model import RobertaModel
    from fairseq.models.roberta.model import base_architecture as base_roberta
    from fairseq.models.transformer import TransformerModel, tiny_architecture
    from fairseq.models.transformer_lm import TransformerLanguageModel, base_lm_architecture

    dictionary = Dictionary()
    for word in range(9):
        dictionary.add_symbol(str(word))
    task = SimpleNamespace(
        source_dictionary=dictionary,
        target_dictionary=dictionary,
        dictionary=dictionary,
        max_positions=lambda: 32,
    )
    built = []
    for model, architecture in (
        (TransformerModel, tiny_architecture),
        (TransformerLanguageModel, base_lm_architecture),
        (RobertaModel, base_roberta),
    ):
        args = SimpleNamespace(tokens_per_sample=32)
        for side in ("encoder", "decoder"):
            sizes = {"layers": 2, "embed_dim": 16, "ffn_embed_dim": 16, "attention_heads": 2}
            vars(args).update({f"{side}_{name}": value for name, value in sizes.items()})
        architecture(args)
        built.append(model.build_model(args, task).eval())
    return built


@pytest.mark.slow
def test_torchscript_of_translation(models):
    import torch

    source, previous = torch.tensor(TOKENS), torch.tensor([[2, 5], [2, 6]])
    lengths = torch.tensor([5, 3])
    scripted = torch.jit.script(models[0])
    expected = models[0](source, lengths, previous)[0]
    torch.testing.assert_close(scripted(source, lengths, previous)[0], expected)


@pytest.mark.slow
def test_torchscript_of_others(models):
    import torch

    source = torch.tensor(TOKENS)
    for model in models[1:]:
        torch.testing.assert_close(torch.jit.script(model)(source)[0], model(source)[0])


@pytest.mark.slow
def test_traces_for_onnx(models):
    import torch

    class Logits(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, tokens):
            return self.model(tokens)[0]

    source = torch.tensor(TOKENS)
    for model in models[1:]:
        expected = model(source)[0]
        model.prepare_for_onnx_export_()
        traced = torch.jit.trace(Logits(model), (source,))
        torch.testing.assert_close(traced(source), expected)


@pytest.mark.slow
def test_export_is_refused(models):
    import torch

    if not hasattr(torch, "export"):
        pytest.skip("torch before 2.1 has no torch.export")
    with pytest.raises(Exception, match="data-dependent|has_pads"):
        torch.export.export(models[2], (torch.tensor(TOKENS),), strict=False)
