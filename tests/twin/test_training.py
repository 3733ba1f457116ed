"""The criterion in fairseq's commands: what is trained, stored, resumed, and left alone."""

import contextlib
import re
import shutil

import pytest
import torch
from common import inprocess
from fairseq import checkpoint_utils, options
from fairseq_cli import eval_lm
from omegaconf import OmegaConf
from twin.support import SIZES

from fairseq_ext import __main__ as command
from fairseq_ext.compat.user_errors import OptionError
from fairseq_ext.tools.export import ctranslate2
from fairseq_ext.twin.criterion import TwinCriterion
from fairseq_ext.twin.stock import lstm, transformer

STOCK = ["lstm", "transformer", "lstm_lm"]
MODELS = {
    "lstm": lstm.TwinLSTMModel,
    "transformer": transformer.TwinTransformerModel,
    "lstm_lm": lstm.TwinLSTMLanguageModel,
}


def task_of(stock):
    if stock == "lstm_lm":
        return ["--task", "language_modeling", "--sample-break-mode", "eos"]
    return ["--task", "translation"]


def train(data, folder, stock, *options, arch="twin_{}", criterion="twin"):
    sizes = [word for entry in SIZES[stock].items() for word in entry]
    return inprocess.train(
        *(data, "--arch", arch.format(stock), *sizes, *task_of(stock), "--criterion", criterion),
        *("--optimizer", "adam", "--lr", 0.01, "--clip-norm", 1, "--max-tokens", 400),
        *("--no-epoch-checkpoints", "--save-dir", folder, *options),
    )


@pytest.fixture(scope="module")
def data(toy_corpus, tmp_path_factory):
    """{model: data folder}; the language model's text is the target side of the pair."""
    folder = tmp_path_factory.mktemp("language")
    for path in toy_corpus.two.glob("*.xx-yy.yy.*"):
        split, _, _, kind = path.name.split(".")
        shutil.copy(path, folder / f"{split}.{kind}")
    shutil.copy(toy_corpus.two / "dict.yy.txt", folder / "dict.txt")
    return {"lstm": toy_corpus.two, "transformer": toy_corpus.two, "lstm_lm": folder}


@pytest.fixture(scope="module")
def runs(data, tmp_path_factory):
    """Function (model) -> (checkpoint, records) of two epochs with dropout."""
    done = {}

    def run(stock):
        if stock not in done:
            folder = tmp_path_factory.mktemp(stock)
            records = train(data[stock], folder, stock, "--max-epoch", 2, "--dropout", 0.1)
            done[stock] = folder / "checkpoint_last.pt", records
        return done[stock]

    return run


def load(path):
    return torch.load(path, map_location="cpu", weights_only=True)


@pytest.mark.parametrize("stock", STOCK)
def test_terms_in_the_log_and_parameters_in_the_checkpoint(runs, stock):
    checkpoint, records = runs(stock)
    training = [record for record in records if "train_loss" in record][-1]
    valid = [record for record in records if "valid_loss" in record][-1]
    assert {"train_nll_loss", "train_backward_nll_loss", "train_L_t"} <= set(training)
    assert training["train_loss"] > training["train_nll_loss"] + training["train_backward_nll_loss"]
    assert training["train_L_t"] > 0
    assert valid["valid_loss"] == valid["valid_nll_loss"]
    assert "valid_L_t" not in valid
    state = load(checkpoint)
    decoder = {name for name in state["model"] if name.startswith("decoder.")}
    network = {name for name in state["criterion"] if name.startswith("network.decoder.")}
    assert {name.replace("network.", "") for name in network} == decoder
    assert set(state["criterion"]) - network == {"penalty.map.weight", "penalty.map.bias"}


def test_g_and_the_backward_network_are_trained(runs, data, tmp_path):
    """One epoch and then another gives what two epochs give: all is stored and restored."""
    expected = load(runs("lstm")[0])
    train(data["lstm"], tmp_path, "lstm", "--max-epoch", 1, "--dropout", 0.1)
    first = load(tmp_path / "checkpoint_last.pt")
    train(data["lstm"], tmp_path, "lstm", "--max-epoch", 2, "--dropout", 0.1)
    last = load(tmp_path / "checkpoint_last.pt")
    for part in ("model", "criterion"):
        for name, value in expected[part].items():
            torch.testing.assert_close(last[part][name], value, msg=f"{part} {name}")
    for name in ("penalty.map.weight", "penalty.map.bias", "network.decoder.layers.0.weight_hh"):
        assert not torch.equal(first["criterion"][name], last["criterion"][name]), name


@contextlib.contextmanager
def counted():
    """[numbers in all parameters that modules are given meanwhile]."""
    register, sizes = torch.nn.Module.register_parameter, []

    def noted(module, name, parameter):
        if parameter is not None:
            sizes.append(parameter.numel())
        register(module, name, parameter)

    torch.nn.Module.register_parameter = noted
    try:
        yield sizes
    finally:
        torch.nn.Module.register_parameter = register


def evaluated(stock, data, path, lines):
    """What the commands say of a checkpoint, and how many parameters they make."""
    results, named = {}, ("--path", path, "--max-tokens", 400)
    with counted() as sizes:
        if stock == "lstm_lm":
            results["generate"] = perplexity(data, path)
        else:
            printed = inprocess.generate(data, *named, "--beam", 3, "--nbest", 3)
            results["generate"] = inprocess.hypotheses(printed)
            printed = inprocess.interactive(data, *named, "--beam", 2, "--input", lines)
            results["interactive"] = inprocess.hypotheses(printed)
        record = inprocess.validate(data, *task_of(stock)[:2], *named)[-1]
        results["validate"] = record["valid_loss"], record["valid_ppl"]
    return results, sum(sizes)


def perplexity(data, path):
    words = [data, "--path", path, "--cpu", "--num-workers", 0, "--sample-break-mode", "eos"]
    cfg = inprocess.configuration(options.get_eval_lm_parser(), words)
    with inprocess.logged_lines() as lines:
        eval_lm.main(cfg)
    return [line.partition("Loss")[2] for line in lines if "Perplexity" in line]


@pytest.mark.parametrize("stock", STOCK)
def test_evaluation_is_that_of_the_stock_model(
    runs, data, toy_corpus, tmp_path, monkeypatch, capsys, stock
):
    """No command builds the backward network; the exported stock model says the same of the data.

    Both instantiate equally many parameters, and fewer than training does.
    """
    checkpoint, _ = runs(stock)
    exported = tmp_path / "stock.pt"
    words = ["export", checkpoint, "--to", "fairseq", "--output", exported]
    assert command.main([str(word) for word in words]) == 0
    assert str(exported) in capsys.readouterr().out
    monkeypatch.setattr(MODELS[stock], "build_backward", None)
    lines = tmp_path / "lines"
    lines.write_text("\n".join(toy_corpus.lines["xx"][:3]) + "\n", encoding="utf-8")
    twin, plain = (evaluated(stock, data[stock], path, lines) for path in (checkpoint, exported))
    assert twin == plain
    assert twin[0]["generate"]


@pytest.mark.parametrize("stock", STOCK)
def test_exported_checkpoint(runs, tmp_path, stock):
    """The stock architecture and criterion, the forward network's parameters, nothing else."""
    checkpoint, _ = runs(stock)
    words = ["export", checkpoint, "--to", "fairseq", "--output", tmp_path / "stock.pt"]
    command.main([str(word) for word in words])
    state, trained = load(tmp_path / "stock.pt"), load(checkpoint)
    assert state["criterion"] is None and state["last_optimizer_state"] is None
    assert set(state["model"]) == set(trained["model"])
    cfg = state["cfg"]
    assert cfg["model"]._name == cfg["model"].arch == stock
    assert cfg["criterion"]["_name"] == "label_smoothed_cross_entropy"
    assert not [name for name in vars(cfg["model"]) if "twin" in name]
    assert "twin" not in str(cfg)
    digests = [stored["extra_state"]["dictionaries"] for stored in (state, trained)]
    assert digests[0] == digests[1] != {}


def test_exported_from_fairseq_hydra_train(runs, tmp_path):
    """It stores the options of a model without a dataclass as a dict."""
    checkpoint, _ = runs("lstm")
    state, models = load(checkpoint), []
    state["cfg"]["model"] = vars(state["cfg"]["model"])
    torch.save(state, tmp_path / "hydra.pt")
    for path in (checkpoint, tmp_path / "hydra.pt"):
        words = ["export", path, "--to", "fairseq", "--output", tmp_path / "stock.pt", "--force"]
        assert command.main([str(word) for word in words]) == 0
        models.append(load(tmp_path / "stock.pt")["cfg"]["model"])
    assert models[0] == models[1]


def test_exported_from_fast_translation(data, tmp_path, capsys):
    """Fairseq alone does not know that task; the file and the printed command say translation."""
    fast = ("--task", "fast_translation", "--max-update", 1, "--disable-validation")
    train(data["lstm"], tmp_path, "lstm", *fast)
    words = ["export", tmp_path / "checkpoint_last.pt", "--to", "fairseq"]
    assert command.main([str(word) for word in [*words, "--output", tmp_path / "stock.pt"]]) == 0
    assert f"fairseq-generate DATA --path {tmp_path}" in capsys.readouterr().out
    state, trained = load(tmp_path / "stock.pt"), load(tmp_path / "checkpoint_last.pt")
    assert state["cfg"]["task"] == {**trained["cfg"]["task"], "_name": "translation"}
    assert "fast_translation" not in str(state["cfg"])


def test_exported_multiway(toy_corpus, tmp_path):
    task = ("--task", "multiway_translation", "--lang-pairs", "xx-yy,yy-xx")
    sizes = ("--arch", "multiway_gru_tiny", "--embed-dim", 8, "--hidden-size", 8)
    inprocess.train(
        *(toy_corpus.two, *task, *sizes, "--criterion", "twin", "--optimizer", "adam"),
        *("--batch-size", 16, "--max-update", 2, "--disable-validation", "--save-dir", tmp_path),
    )
    checkpoint, exported = tmp_path / "checkpoint_last.pt", tmp_path / "plain.pt"
    words = ["export", checkpoint, "--to", "fairseq", "--output", exported]
    assert command.main([str(word) for word in words]) == 0
    assert load(checkpoint)["criterion"] and not load(exported)["criterion"]
    named = ("--task", "multiway_translation", "-s", "yy", "-t", "xx", "--max-len-b", 6, "--path")
    outputs = [inprocess.generate(toy_corpus.two, *named, path) for path in (checkpoint, exported)]
    assert inprocess.hypotheses(outputs[0]) == inprocess.hypotheses(outputs[1])


@pytest.mark.parametrize(
    "more, message",
    [
        (("-s", "xx", "-t", "yy"), "is of a twin_lstm, which is exported whole"),
        (("--to", "ctranslate2"), "--to ctranslate2"),
        (("--ema",), "--ema: .* no moving average"),
    ],
)
def test_bad_options_of_export(runs, tmp_path, capsys, monkeypatch, more, message):
    checkpoint, _ = runs("lstm")
    monkeypatch.setattr(ctranslate2, "import_converter", lambda: None)
    words = ["export", checkpoint, "--to", "fairseq", "--output", tmp_path / "out", *more]
    assert command.main([str(word) for word in words]) == 2
    assert not (tmp_path / "out").exists()
    assert re.search(message, capsys.readouterr().err)


def test_checkpoints_say_that_they_are_such(runs):
    """A criterion made from a checkpoint's configuration has no backward network."""
    checkpoint, _ = runs("lstm")
    models, cfg, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)])
    criterion = task.build_criterion(cfg.criterion)
    assert isinstance(criterion, TwinCriterion)
    assert not list(criterion.parameters())
    with pytest.raises(ValueError, match="--twin-stored"):
        criterion.train().call({})
    OmegaConf.update(cfg, "criterion.twin_stored", False)
    assert task.build_criterion(cfg.criterion).network is not None


def test_what_a_run_writes_is_not_given(data, tmp_path):
    with pytest.raises(OptionError, match="--twin-stored: a run, into its checkpoints, writes it"):
        train(data["lstm"], tmp_path, "lstm", "--max-epoch", 1, "--twin-stored")


def test_a_plain_model_goes_on_with_a_twin(data, tmp_path):
    """--restore-file of a run without a backward network; the optimiser starts anew."""
    plain = tmp_path / "plain"
    train(data["lstm"], plain, "lstm", "--max-epoch", 1, criterion="cross_entropy")
    restored = ("--restore-file", plain / "checkpoint_last.pt", "--reset-optimizer")
    options = (*restored, "--reset-meters", "--reset-dataloader", "--max-epoch", 1)
    records = train(data["lstm"], tmp_path / "twin", "lstm", *options)
    assert [record for record in records if "train_L_t" in record]
    state = load(tmp_path / "twin" / "checkpoint_last.pt")
    assert "penalty.map.weight" in state["criterion"]


@pytest.mark.parametrize("options", [("--twin-target", "noise"), ("--twin-stabilise",)])
def test_rows_of_table_1_without_a_backward_network(data, tmp_path, options):
    records = train(data["lstm_lm"], tmp_path, "lstm_lm", "--max-epoch", 1, *options)
    training = [record for record in records if "train_loss" in record][-1]
    assert "train_L_t" in training and "train_backward_nll_loss" not in training
    assert load(tmp_path / "checkpoint_last.pt")["criterion"] is None


def test_language_model_in_16_bits(data, tmp_path):
    """Parameters of both networks and of g are bfloat16; a second run goes on with them."""
    for updates in (2, 4):
        options = ("--bf16", "--max-update", updates, "--disable-validation")
        records = train(data["lstm_lm"], tmp_path, "lstm_lm", *options)
        training = [record for record in records if "train_L_t" in record][-1]
        assert training["train_num_updates"] == updates
        assert 0 < training["train_L_t"] < float("inf")
        assert 0 < training["train_loss"] < float("inf")
    state = load(tmp_path / "checkpoint_last.pt")
    for tensor in (*state["model"].values(), *state["criterion"].values()):
        assert torch.equal(tensor, tensor.bfloat16().float())
    # the optimiser works on float32 copies of the parameters
    moments = state["last_optimizer_state"]["state"].values()
    assert {moment["exp_avg"].dtype for moment in moments} == {torch.float32}


def test_distance_in_a_language_model(runs, data, toy_corpus, tmp_path):
    """Every word of the subset once, in the order of its sentences."""
    words = ["twin-distance", runs("lstm_lm")[0], data["lstm_lm"], "--subset", "valid"]
    words += ["--output", tmp_path / "distance"]
    assert command.main([str(word) for word in words]) == 0
    table = (tmp_path / "distance.tokens.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in table[1:]]
    lines = (toy_corpus.text / "valid.yy").read_text(encoding="utf-8").splitlines()
    places = [(str(number), word) for number, line in enumerate(lines) for word in line.split()]
    assert [(row[0], row[2]) for row in rows] == places
    assert all(float(row[3]) > 0 and float(row[4]) > 0 for row in rows)


def test_multiway_model(toy_corpus, tmp_path, capsys):
    """Directions of a multi-way model have a twin each, around an attention of their own."""
    records = inprocess.train(
        *(toy_corpus.two, "--task", "multiway_translation", "--lang-pairs", "xx-yy,yy-xx"),
        *("--arch", "multiway_gru_tiny", "--criterion", "twin", "--optimizer", "adam"),
        *("--max-tokens", 400, "--max-epoch", 1, "--save-dir", tmp_path, "--embed-dim", 8),
        *("--hidden-size", 9, "--context-size", 10, "--readout-size", 7, "--no-epoch-checkpoints"),
    )
    training = [record for record in records if "train_loss" in record][-1]
    assert {"train_xx-yy_L_t", "train_yy-xx_L_t", "train_yy-xx_backward_nll_loss"} <= set(training)
    state = load(tmp_path / "checkpoint_last.pt")
    assert state["criterion"]["penalty.map.weight"].shape == (9, 9)
    names = set(state["criterion"])
    assert {f"network.decoders.{lang}.output.bias" for lang in ("xx", "yy")} <= names
    assert "network.attention.energy" in names
    words = ["twin-distance", tmp_path / "checkpoint_last.pt", toy_corpus.two, "--subset", "valid"]
    words += ["--output", tmp_path / "distance"]
    assert command.main([str(word) for word in words]) == 2
    assert "--pair is missing; allowed: xx-yy, yy-xx" in capsys.readouterr().err
    assert command.main([*map(str, words), "--pair", "yy-xx"]) == 0
    lines = (tmp_path / "distance.tokens.tsv").read_text(encoding="utf-8").splitlines()
    text = (toy_corpus.text / "valid.xx").read_text(encoding="utf-8").split()
    assert [line.split("\t")[2] for line in lines[1:]] == text


def test_distance_in_a_direction_that_is_not_the_first_of_the_folder(toy_corpus, tmp_path):
    """A training with -s and -t names its direction to the model alone."""
    inprocess.train(
        *(toy_corpus.three, "--task", "multiway_translation", "-s", "yy", "-t", "zz"),
        *("--arch", "multiway_gru_tiny", "--criterion", "twin", "--optimizer", "adam"),
        *("--max-tokens", 400, "--max-update", 1, "--save-dir", tmp_path, "--embed-dim", 8),
        *("--hidden-size", 9, "--context-size", 10, "--readout-size", 7, "--disable-validation"),
    )
    words = ["twin-distance", tmp_path / "checkpoint_last.pt", toy_corpus.three, "--pair", "yy-zz"]
    words += ["--subset", "valid", "--output", tmp_path / "distance"]
    assert command.main([str(word) for word in words]) == 0
    lines = (tmp_path / "distance.tokens.tsv").read_text(encoding="utf-8").splitlines()
    text = (toy_corpus.text / "valid.zz").read_text(encoding="utf-8").split()
    assert [line.split("\t")[2] for line in lines[1:]] == text
