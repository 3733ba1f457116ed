"""`fairseq-ext export`: what it writes translates as the dual model does."""

import functools
import inspect
import math
import re
import sys
from argparse import Namespace
from pathlib import Path

import pytest
import torch
from common import inprocess
from common.exchanged import with_two_words_exchanged
from fairseq import checkpoint_utils
from tools.exporting import SEARCH, TASK, export, trained

from fairseq_ext import __main__ as command
from fairseq_ext.dual.commands import export as dual_export
from fairseq_ext.twin.commands import export as twin_export

PAGE = Path(__file__).resolve().parents[2] / "docs" / "export.md"

SETTINGS = [("separate", "xx-yy"), ("tagged", "yy-xx"), ("two", "xx-yy")]
OTHER_WAY = [("separate", "yy-xx"), ("tagged", "xx-yy"), ("two", "yy-xx")]
OTHER_WAY += [("three", "zz-xx"), ("three", "xx-zz")]
SETTINGS += [pytest.param(setting, marks=pytest.mark.slow) for setting in OTHER_WAY]


@pytest.fixture(params=SETTINGS, ids=lambda setting: ":".join(setting))
def setting(request):
    """(checkpoint, data, source, target) of every setting."""
    name, direction = request.param
    return (*request.getfixturevalue(name), *direction.split("-"))


def generated(data, source, target, path, *options):
    words = ("-s", source, "-t", target, "--path", path, *SEARCH, *options)
    return inprocess.hypotheses(inprocess.generate(data, *words))


@functools.lru_cache(maxsize=None)
def by_the_dual_model(checkpoint, data, source, target):
    return generated(data, source, target, checkpoint, *TASK)


def assert_same(exported, expected, tolerance):
    """Both {sentence: [(score, text)]}: the same texts in the same order, scores within tolerance.

    Neighbours whose scores differ by less than the tolerance may have changed places.
    """
    assert exported.keys() == expected.keys() and len(expected) == 24
    for number, hypotheses in expected.items():
        scores = [score for score, _ in exported[number]]
        assert scores == pytest.approx([score for score, _ in hypotheses], abs=tolerance)
        by_text = {text: score for score, text in exported[number]}
        assert by_text == pytest.approx({t: s for s, t in hypotheses}, abs=tolerance)


# ---------------------------------------------------------------- --to fairseq


def test_the_stock_model_has_the_same_n_best_and_scores(setting, tmp_path):
    checkpoint, data, source, target = setting
    assert export(checkpoint, source, target, "fairseq", tmp_path / "stock.pt") == 0
    expected = by_the_dual_model(checkpoint, data, source, target)
    assert len({text for best in expected.values() for _, text in best}) > 24
    assert_same(generated(data, source, target, tmp_path / "stock.pt"), expected, 2e-5)


def test_the_command_that_is_printed_quotes_the_file(two, tmp_path, capsys):
    path = tmp_path / "two words.pt"
    assert export(two[0], "xx", "yy", "fairseq", path) == 0
    assert f"--path '{path}'\n" in capsys.readouterr().out
    for task in ("language_modeling", "translation"):
        origin = {"exported_from": {"model": "twin_lstm_lm"}}
        stock = {"extra_state": origin, "cfg": {"task": {"_name": task}}}
        assert twin_export.usage(stock, "two words.pt").endswith(" --path 'two words.pt'")


@pytest.mark.slow
def test_a_softmax_of_its_own_comes_along(toy_corpus, tmp_path):
    data, options = toy_corpus.two, ("-s", "xx", "-t", "yy", "--separate-softmax")
    checkpoint = trained(tmp_path, data, *options, "--max-update", 40)
    assert export(checkpoint, "xx", "yy", "fairseq", tmp_path / "stock.pt") == 0
    expected = generated(data, "xx", "yy", checkpoint, *TASK)
    assert_same(generated(data, "xx", "yy", tmp_path / "stock.pt"), expected, 2e-5)


def test_the_comparison_notices_swapped_projections(two, tmp_path):
    checkpoint, data = two
    export(checkpoint, "xx", "yy", "fairseq", tmp_path / "stock.pt")
    state = torch.load(tmp_path / "stock.pt", weights_only=True)
    query, key = (f"decoder.layers.1.encoder_attn.{name}_proj.weight" for name in "qk")
    state["model"][query], state["model"][key] = state["model"][key], state["model"][query]
    torch.save(state, tmp_path / "swapped.pt")
    expected = by_the_dual_model(checkpoint, data, "xx", "yy")
    with pytest.raises(AssertionError):
        assert_same(generated(data, "xx", "yy", tmp_path / "swapped.pt"), expected, 2e-5)


WITHOUT_THE_PACKAGE = """
import sys
from fairseq_cli import generate
generate.cli_main()
assert "fairseq_ext" not in sys.modules
"""


def test_fairseq_generate_needs_no_package(two, run, tmp_path):
    checkpoint, data = two
    export(checkpoint, "yy", "xx", "fairseq", tmp_path / "stock.pt")
    words = (data, "-s", "yy", "-t", "xx", "--path", tmp_path / "stock.pt", *SEARCH, "--cpu")
    output = run("python", "-c", WITHOUT_THE_PACKAGE, *words, cwd=tmp_path)
    expected = by_the_dual_model(checkpoint, data, "yy", "xx")
    assert_same(inprocess.hypotheses(output), expected, 2e-5)


# a fresh process in which every patch but the one of the encoder layers acts
UNPATCHED_LAYERS = """
import sys
import torch
import _fairseq_ext_hook
registry = _fairseq_ext_hook.load_compat().patch_registry
registry._PATCHES[:] = [p for p in registry._PATCHES if p.name != "encoder_layers_without_copies"]
from fairseq import checkpoint_utils
[model], _, _ = checkpoint_utils.load_model_ensemble_and_task([sys.argv[1]])
layer = model.encoder.layers[0]
assert layer.can_use_fastpath
assert torch.equal(layer.fc1_weight, layer.fc1.weight)
projections = [getattr(layer.self_attn, name + "_proj").weight for name in "qkv"]
assert torch.equal(layer.in_proj_weight, torch.cat(projections))
print("strictly loaded:", len(list(model.parameters())))
"""


@pytest.mark.slow
def test_stock_layers_with_their_copies_load_it_too(two, run, tmp_path):
    export(two[0], "xx", "yy", "fairseq", tmp_path / "stock.pt")
    output = run("python", "-c", UNPATCHED_LAYERS, tmp_path / "stock.pt")
    assert "strictly loaded: " in output


def test_layers_are_left_out_once():
    """fairseq leaves layers out by the options of a checkpoint, whatever layers it has."""
    options = Namespace(decoder_layers_to_keep="1", encoder_layers_to_keep=None, decoder_layers=1)
    fairseqs, layer = inspect.unwrap(checkpoint_utils.prune_state_dict), "decoder.layers.0.fc1.bias"
    for stock in (
        dual_export.trained_config(options, {}, {}, "xx", "yy")["model"],
        twin_export._stock_options(options, "transformer"),
    ):
        assert stock.decoder_layers == 1 and stock.arch == "transformer"
        assert fairseqs({layer: 7}, stock) == {layer: 7}
    # the broken twin
    assert not fairseqs({layer: 7}, Namespace(**{**vars(options), "arch": "transformer"}))


def test_it_holds_one_direction_and_no_training_state(two, tmp_path):
    export(two[0], "xx", "yy", "fairseq", tmp_path / "stock.pt")
    state = torch.load(tmp_path / "stock.pt", weights_only=True)
    assert state["last_optimizer_state"] is None and "ema" not in state["extra_state"]
    assert state["cfg"]["task"]["_name"] == "translation"
    assert state["cfg"]["model"].arch == "transformer"
    embedding = state["model"]["encoder.embed_tokens.weight"].data_ptr()
    for name in ("embed_tokens", "output_projection"):
        assert state["model"][f"decoder.{name}.weight"].data_ptr() == embedding
    dual = inprocess.parameters(two[0])
    unused = [name for name in dual if ".xx." in name and "context_attention" in name]
    expected = sum(tensor.numel() for name, tensor in dual.items() if name not in unused)
    storages = {tensor.data_ptr(): tensor.numel() for tensor in state["model"].values()}
    buffers = 4  # a version and a marker of the positions on each side
    shared = dual["components.xx.embedding.weight"].numel()
    assert sum(storages.values()) == expected - shared + buffers


@pytest.mark.slow
def test_it_keeps_the_digests_of_its_dictionaries(three, tmp_path):
    checkpoint, data = three
    export(checkpoint, "zz", "xx", "fairseq", tmp_path / "stock.pt")
    digests, whole = (
        torch.load(path, weights_only=True)["extra_state"]["dictionaries"]
        for path in (tmp_path / "stock.pt", checkpoint)
    )
    assert digests == {lang: whole[lang] for lang in ("xx", "zz")}
    other = with_two_words_exchanged(data, tmp_path / "data", "zz")
    with pytest.raises(ValueError, match="stock.pt: trained with another dictionary of zz"):
        generated(other, "zz", "xx", tmp_path / "stock.pt")


def test_stock_training_continues_from_it(two, tmp_path):
    checkpoint, data = two
    export(checkpoint, "xx", "yy", "fairseq", tmp_path / "stock.pt")
    sizes = [f"--encoder-{name}" for name in ("embed-dim", "ffn-embed-dim", "layers")]
    words = [word for pair in zip(sizes, ("64", "128", "2")) for word in pair]
    words += ["--encoder-attention-heads", "4", "--decoder-attention-heads", "4"]
    words += ["--decoder-layers", "2", "--share-all-embeddings", "-s", "xx", "-t", "yy"]
    words += ["--optimizer", "adam", "--lr", "1e-9", "--max-update", "1", "--dropout", "0"]
    words += ["--arch", "transformer", "--max-tokens", "500", "--save-dir", tmp_path / "run"]
    words += ["--no-save", "--finetune-from-model", tmp_path / "stock.pt"]
    stock = inprocess.train(data, *words)
    dual = inprocess.generate(
        data, *TASK, "-s", "xx", "-t", "yy", "--path", checkpoint, "--gen-subset", "valid",
        "--score-reference", "--max-tokens", "500",
    )  # fmt: skip
    expected = -sum(
        sum(map(float, line.split("\t")[1].split()))
        for line in dual.splitlines()
        if line.startswith("P-")
    )
    tokens = sum(len(line.split("\t")[1].split()) for line in dual.splitlines() if "P-" in line[:2])
    losses = [record["valid_loss"] for record in stock if "valid_loss" in record]
    assert losses[0] == pytest.approx(expected / tokens, abs=2e-3)


def test_the_moving_average_is_exported_on_demand(two, separate, tmp_path, capsys):
    for name, options in (("plain", []), ("mean", ["--ema"])):
        export(two[0], "xx", "yy", "fairseq", tmp_path / f"{name}.pt", *options)
    plain, mean = (inprocess.parameters(tmp_path / f"{name}.pt") for name in ("plain", "mean"))
    state = torch.load(two[0], weights_only=True)
    key, stock = "components.yy.blocks.1.feed_forward_in.weight", "decoder.layers.1.fc1.weight"
    assert torch.equal(plain[stock], state["model"][key])
    assert torch.equal(mean[stock], state["extra_state"]["ema"][key])
    assert not torch.equal(plain[stock], mean[stock])
    assert export(separate[0], "xx", "yy", "fairseq", tmp_path / "no.pt", "--ema") == 2
    assert "--store-ema" in capsys.readouterr().err


def test_an_average_of_checkpoints_is_exported(two, tmp_path):
    command.main(["average", "--inputs", str(two[0]), "--output", str(tmp_path / "mean.pt")])
    assert export(tmp_path / "mean.pt", "xx", "yy", "fairseq", tmp_path / "stock.pt") == 0
    export(two[0], "xx", "yy", "fairseq", tmp_path / "direct.pt")
    stored, expected = (inprocess.parameters(tmp_path / f"{n}.pt") for n in ("stock", "direct"))
    assert stored.keys() == expected.keys()
    assert all(torch.equal(stored[name], expected[name]) for name in expected)


@pytest.mark.parametrize("name", ["separate", "tagged"])
def test_a_model_of_fairseq_hydra_train_is_exported_too(name, request, tmp_path):
    """It stores the options of a model without a dataclass as a dict."""
    checkpoint, _ = request.getfixturevalue(name)
    state = torch.load(checkpoint, weights_only=True)
    state["cfg"]["model"] = vars(state["cfg"]["model"])
    torch.save(state, tmp_path / "hydra.pt")
    assert export(tmp_path / "hydra.pt", "xx", "yy", "fairseq", tmp_path / "stock.pt") == 0
    export(checkpoint, "xx", "yy", "fairseq", tmp_path / "direct.pt")
    options, expected = (
        vars(torch.load(tmp_path / f"{file}.pt", weights_only=True)["cfg"]["model"])
        for file in ("stock", "direct")
    )
    assert options == expected and options["encoder_embed_dim"] == 32


# ---------------------------------------------------------------- --to ctranslate2


@pytest.fixture
def ctranslate2():
    return pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed (optional)")


def test_ctranslate2_translates_like_fairseq(setting, ctranslate2, toy_corpus, tmp_path):
    checkpoint, data, source, target = setting
    folder = tmp_path / "folder"
    assert export(checkpoint, source, target, "ctranslate2", folder, "--data", data) == 0
    translator = ctranslate2.Translator(
        str(folder), device="cpu", compute_type="float32", intra_threads=1
    )
    lines = (toy_corpus.text / f"test.{source}").read_text(encoding="utf-8").splitlines()
    results = translator.translate_batch(
        [line.split() for line in lines],
        beam_size=5,
        length_penalty=1.0,
        min_decoding_length=0,
        max_decoding_length=200,
        return_scores=True,
    )
    expected = by_the_dual_model(checkpoint, data, source, target)
    assert len(expected) == len(lines)
    for number, result in enumerate(results):
        score, text = expected[number][0]
        assert " ".join(result.hypotheses[0]) == text
        # fairseq-generate prints base-2 logarithms
        assert result.scores[0] / math.log(2) == pytest.approx(score, abs=1e-3)


@pytest.mark.parametrize("settings", [{}, {"suppress_sequences": [["<blank>"]]}], ids=str)
def test_scores_of_ctranslate2_share_out_what_padding_would_have(
    settings, ctranslate2, toy_corpus, tmp_path
):
    """Of a model that has hardly been trained that is much, as docs/export.md says."""
    words = ("-s", "xx", "-t", "yy", "--max-update", 5)
    checkpoint = trained(tmp_path / "run", toy_corpus.two, *words)
    export(checkpoint, "xx", "yy", "ctranslate2", tmp_path / "folder")
    export(checkpoint, "xx", "yy", "fairseq", tmp_path / "stock.pt")
    translator = ctranslate2.Translator(str(tmp_path / "folder"), compute_type="float32")
    line = (toy_corpus.text / "test.xx").read_text(encoding="utf-8").splitlines()[0]
    options = {"min_decoding_length": 0, "max_decoding_length": 30, "return_scores": True}
    (result,) = translator.translate_batch([line.split()], beam_size=5, **options, **settings)

    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(tmp_path / "stock.pt")])
    source, target = task.source_dictionary, task.target_dictionary
    tokens = source.encode_line(line, add_if_not_exist=False).long().unsqueeze(0)
    written = [target.index(word) for word in result.hypotheses[0]] + [target.eos()]
    begin = torch.tensor([[target.eos(), *written[:-1]]])
    logits, _ = model.eval()(tokens, torch.tensor([tokens.size(1)]), begin)
    scores = logits[0].detach().log_softmax(dim=-1)  # (T, V)
    score = scores[range(len(written)), written].mean().item()
    share = -torch.log1p(-scores[:, target.pad()].exp()).mean().item()
    assert share > 0.004
    expected = score + share if settings else score
    assert result.scores[0] == pytest.approx(expected, abs=1e-5)


def test_what_ctranslate2_does_not_know_is_told(
    separate, ctranslate2, tmp_path, monkeypatch, capsys
):
    from fairseq_ext.tools.export import command as module

    convert = module.stock_checkpoint

    def with_one_norm_moved(*words):
        state = convert(*words)
        state["cfg"]["model"].decoder_normalize_before = False
        return state

    monkeypatch.setattr(module, "stock_checkpoint", with_one_norm_moved)
    words = ("ctranslate2", tmp_path / "folder", "--data", separate[1])
    assert export(separate[0], "xx", "yy", *words) == 2
    assert re.search("--to ctranslate2: .*normalize-before", capsys.readouterr().err, re.DOTALL)
    assert not list(tmp_path.iterdir())


def test_ctranslate2_folders_are_quantised_and_replaced_whole(two, ctranslate2, tmp_path):
    folder = tmp_path / "folder"
    export(two[0], "xx", "yy", "ctranslate2", folder)
    size = (folder / "model.bin").stat().st_size
    (folder / "old").touch()
    assert export(two[0], "xx", "yy", "ctranslate2", folder) == 2
    words = ("--quantization", "int8", "--force")
    assert export(two[0], "xx", "yy", "ctranslate2", folder, *words) == 0
    assert (folder / "model.bin").stat().st_size < size / 2
    assert not (folder / "old").exists() and list(tmp_path.iterdir()) == [folder]


def test_without_ctranslate2_the_remedy_is_told(two, tmp_path, monkeypatch, capsys):
    for name in ("ctranslate2", "ctranslate2.converters"):
        monkeypatch.setitem(sys.modules, name, None)
    assert export(two[0], "xx", "yy", "ctranslate2", tmp_path / "folder") == 2
    assert "pip install ctranslate2" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- docs/export.md


@pytest.fixture
def page(two, tmp_path):
    """Folder with what the page starts from, and the page's blocks [(language, text)]."""
    (tmp_path / "checkpoint.pt").symlink_to(two[0])
    (tmp_path / "data-bin").symlink_to(two[1])
    text = PAGE.read_text(encoding="utf-8")
    text = re.sub(r"\bde\b", "xx", re.sub(r"\ben\b", "yy", text))
    return tmp_path, re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_commands_of_the_page(page, run):
    folder, blocks = page
    shell = [text for kind, text in blocks if kind == "bash" and "xx" in text]
    shell = [text for text in shell if "ctranslate2" not in text]
    assert len(shell) == 2
    output = run("bash", "-euc", "".join(shell), cwd=folder)
    assert len(inprocess.hypotheses(output)) == 24
    assert (folder / "yy-xx.pt").is_file()


@pytest.mark.slow
def test_the_ctranslate2_part_of_the_page(page, ctranslate2, run):
    folder, blocks = page
    [shell] = [text for kind, text in blocks if kind == "bash" and "ctranslate2" in text]
    [python] = [text for kind, text in blocks if kind == "python"]
    run("bash", "-euc", shell, cwd=folder)
    assert len(run("python", "-c", python, cwd=folder).splitlines()) == 5
