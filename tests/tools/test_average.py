"""`fairseq-ext average`: means of parameters, and what cannot be averaged."""

import functools
import operator

import pytest
import torch
from common import inprocess
from common.checkpoints import UNSET
from common.exchanged import with_two_words_exchanged
from tools.commandline import cli

from fairseq_ext import __main__ as command
from fairseq_ext.tools import UsageError
from fairseq_ext.tools.checkpoint import average


@pytest.fixture(scope="module")
def trained(toy_corpus, run, tmp_path_factory):
    """A --save-dir with three epochs of a very small stock transformer, tied embeddings."""
    folder = tmp_path_factory.mktemp("trained")
    sizes = "--encoder-embed-dim 16 --decoder-embed-dim 16 --encoder-ffn-embed-dim 16"
    sizes += " --decoder-ffn-embed-dim 16 --encoder-attention-heads 2 --decoder-attention-heads 2"
    sizes += " --encoder-layers 1 --decoder-layers 1 --share-all-embeddings"
    schedule = "--optimizer adam --lr 0.01 --max-tokens 2000 --max-epoch 3 --disable-validation"
    schedule += " --save-interval-updates 2 --no-progress-bar"
    words = f"--arch transformer {sizes} --criterion cross_entropy {schedule}".split()
    run("fairseq-train", toy_corpus.two, *words, "-s", "xx", "-t", "yy", "--save-dir", folder)
    return folder


def load(path):
    from fairseq.checkpoint_utils import load_checkpoint_to_cpu

    return load_checkpoint_to_cpu(str(path))


def test_average_of_the_last_epochs_is_the_mean(trained, tmp_path, capsys):
    output = tmp_path / "mean.pt"
    words = ["average", "--dir", trained, "--last", 2, "--output", output]
    assert command.main([str(word) for word in words]) == 0
    assert "checkpoint2.pt" in capsys.readouterr().out
    first, second, mean = (
        load(p) for p in (trained / "checkpoint2.pt", trained / "checkpoint3.pt", output)
    )
    for name, value in mean["model"].items():
        if name.rpartition(".")[2] in UNSET:
            continue  # its value may be NaN
        expected = (first["model"][name].double() + second["model"][name].double()) / 2
        torch.testing.assert_close(value.double(), expected, rtol=0, atol=1e-7)
    assert mean["cfg"]["model"].arch == "transformer"
    assert not mean.get("last_optimizer_state") and mean["criterion"] is None
    assert mean["extra_state"]["averaged_from"] == ["checkpoint2.pt", "checkpoint3.pt"]
    assert mean["extra_state"]["dictionaries"] == second["extra_state"]["dictionaries"]
    # the tied embedding is stored once
    tied = ("encoder.embed_tokens.weight", "decoder.output_projection.weight")
    assert len({mean["model"][name].data_ptr() for name in tied}) == 1


@pytest.mark.slow
def test_generation_reads_the_average(trained, toy_corpus, run, tmp_path):
    output = tmp_path / "mean.pt"
    paths = [trained / f"checkpoint{epoch}.pt" for epoch in (1, 3)]
    cli(run, "average", "--inputs", *paths, "--output", output)
    words = ("--path", output, "-s", "xx", "-t", "yy", "--beam", 2, "--max-len-b", 10)
    text = run("fairseq-generate", toy_corpus.two, *words)
    assert text.count("\nH-") == toy_corpus.sizes["test"]


def test_generation_with_an_average_compares_the_dictionaries(trained, toy_corpus, tmp_path):
    words = ["average", "--inputs", trained / "checkpoint1.pt", "--output", tmp_path / "mean.pt"]
    assert command.main([str(word) for word in words]) == 0
    data = with_two_words_exchanged(toy_corpus.two, tmp_path / "data", "xx", "yy")
    with pytest.raises(ValueError, match="mean.pt: trained with another dictionary of xx"):
        inprocess.generate(data, "--path", tmp_path / "mean.pt", "-s", "xx", "-t", "yy")


def test_average_refuses_checkpoints_of_other_dictionaries(trained, tmp_path):
    state, paths = load(trained / "checkpoint1.pt"), [tmp_path / f"{name}.pt" for name in "abc"]
    state["model"] = {"w": torch.zeros(1)}
    for path, extra in zip(paths, ({"xx": "5:0"}, None, {"xx": "5:1", "yy": "5:2"})):
        state["extra_state"] = {"dictionaries": extra} if extra else {}
        torch.save(state, path)
    with pytest.raises(UsageError, match="c.pt was trained with another dictionary of xx"):
        average.mean(paths)
    # what one of them records holds for the mean
    for order in (paths[1:], paths[:0:-1]):
        mean, _ = average.mean(order)
        assert mean["extra_state"]["dictionaries"] == {"xx": "5:1", "yy": "5:2"}


def test_an_average_has_the_updates_of_the_latest(trained):
    paths = [trained / f"checkpoint{epoch}.pt" for epoch in (1, 3, 2)]
    updates = [load(path)["optimizer_history"][-1]["num_updates"] for path in paths]
    mean, _ = average.mean(paths)
    assert mean["optimizer_history"][-1]["num_updates"] == max(updates) == updates[1] > updates[2]


def test_average_accumulates_half_precision_in_float32(trained, tmp_path):
    state = load(trained / "checkpoint1.pt")
    paths = []
    for index, value in enumerate((2048.0, 1.0, 1.0, 1.0)):
        state["model"] = {"w": torch.tensor([value]).half(), "version": torch.tensor(index)}
        paths.append(tmp_path / f"{index}.pt")
        torch.save(state, paths[-1])
    _, mean = average.mean(paths)
    # in float16, 512 + 0.25 would stay 512
    assert mean["w"].dtype == torch.float32 and mean["w"].item() == 512.75
    assert mean["version"].item() == 3


def test_newest_counts_epochs_and_updates_by_number(tmp_path):
    names = ["checkpoint2.pt", "checkpoint10.pt", "checkpoint9.pt", "checkpoint_last.pt"]
    names += ["checkpoint_1_50.pt", "checkpoint_2_100.pt", "checkpoint_best.pt"]
    for name in names:
        (tmp_path / name).touch()
    by_epoch = [path.name for path in average.newest(tmp_path, 2, "epochs")]
    assert by_epoch == ["checkpoint9.pt", "checkpoint10.pt"]
    by_update = [path.name for path in average.newest(tmp_path, 1, "updates")]
    assert by_update == ["checkpoint_2_100.pt"]


@pytest.mark.parametrize(
    "count, folder, message",
    [
        (3, ".", "--last 3: .* holds 2 checkpoints"),
        (0, ".", "--last 0: .* N >= 1"),
        (None, ".", "--last None: --dir needs --last"),
        (1, "none", "--dir .*none is not a folder"),
    ],
)
def test_newest_says_what_is_wrong(tmp_path, count, folder, message):
    for name in ("checkpoint1.pt", "checkpoint2.pt"):
        (tmp_path / name).touch()
    with pytest.raises(UsageError, match=message):
        average.newest(tmp_path / folder, count, "epochs")


@pytest.mark.parametrize("name, shape", [("other", (1,)), ("w", (2,))])
def test_average_refuses_another_model(trained, tmp_path, name, shape):
    state = load(trained / "checkpoint1.pt")
    for file, key, size in (("a.pt", "w", (1,)), ("b.pt", name, shape)):
        state["model"] = {key: torch.zeros(size)}
        torch.save(state, tmp_path / file)
    with pytest.raises(UsageError, match="b.pt is of another model"):
        average.mean([tmp_path / "a.pt", tmp_path / "b.pt"])


@pytest.mark.parametrize(
    "group, name, value",
    [
        ("model", "decoder_attention_heads", 1),
        ("model", "activation_fn", "gelu"),
        ("model", "share_all_embeddings", True),
        ("model", "cross_self_attention", True),
        ("model", "duo_norm", "all"),
        ("model", "duo_attention", "linear"),
        ("model", "meta_embedding", "average"),
        ("model", "residuals", True),
        ("model", "decoder_glu", False),
        ("model", "encoder_conv_type", "lightweight"),
        ("model", "weight_softmax", False),
        ("model", "time_reduction", "2,1"),
        ("model", "layer_norm_first", True),
        ("model", "pos_enc_type", "rope"),
        ("model", "activation", "gelu"),
        ("model", "src_embedding_copy", True),
        ("model", "encoder.normalize_before", True),
        ("task", "target_lang", "zz"),
    ],
)
def test_average_refuses_what_computes_something_else(trained, tmp_path, group, name, value):
    """Names and shapes are the same."""
    state = load(trained / "checkpoint1.pt")
    model = {"decoder_attention_heads": 2, "activation_fn": "relu", "dropout": 0.1}
    model.update(share_all_embeddings=False, cross_self_attention=False, residuals=False)
    model.update(duo_norm="decoder", duo_attention="softmax", meta_embedding="duo")
    model.update(decoder_glu=True, encoder_conv_type="dynamic", weight_softmax=True)
    model.update(time_reduction="1,2", layer_norm_first=False, pos_enc_type="abs")
    model.update(activation="relu", src_embedding_copy=False, encoder={"normalize_before": False})
    state["cfg"]["model"] = model
    state["cfg"]["task"] = {"source_lang": "xx", "target_lang": "yy"}
    torch.save(state, tmp_path / "a.pt")
    model["dropout"] = 0.7  # another training of the same model
    torch.save(state, tmp_path / "b.pt")
    average.mean([tmp_path / "a.pt", tmp_path / "b.pt"])
    *groups, option = [group, *name.split(".")]  # fairseq-hydra-train writes groups of options
    functools.reduce(operator.getitem, groups, state["cfg"])[option] = value
    torch.save(state, tmp_path / "b.pt")
    with pytest.raises(UsageError, match=f"b.pt was trained with {name} {value!r}, the first"):
        average.mean([tmp_path / "a.pt", tmp_path / "b.pt"])
    # a model of several pairs is one for all of them
    state["cfg"]["task"]["lang_pairs"] = None
    torch.save(state, tmp_path / "b.pt")
    if group == "task":
        average.mean([tmp_path / "a.pt", tmp_path / "b.pt"])


def test_average_refuses_models_of_other_pairs(trained, tmp_path):
    """With one data folder, models of either direction alone have the same names and shapes."""
    state = load(trained / "checkpoint1.pt")
    paths = {pairs: tmp_path / f"{pairs}.pt" for pairs in ("xx-yy", "xx-yy,yy-xx", "yy-xx,xx-yy")}
    for pairs, path in paths.items():
        state["cfg"]["model"] = {"lang_pairs": pairs}
        torch.save(state, path)
    one_way, *both = paths.values()
    average.mean(both)  # in another order
    with pytest.raises(UsageError, match="yy-xx.pt was trained with lang_pairs 'xx-yy,yy-xx', the"):
        average.mean([one_way, both[0]])


def test_average_of_trainings_that_took_their_languages_from_the_data_folder(trained, tmp_path):
    state = load(trained / "checkpoint1.pt")
    state["cfg"]["task"].update(source_lang=None, target_lang=None)
    torch.save(state, tmp_path / "a.pt")
    average.mean([tmp_path / "a.pt", trained / "checkpoint2.pt"])
    stored = state["extra_state"].pop("dictionaries")
    torch.save(state, tmp_path / "a.pt")  # of stock fairseq: nothing tells them
    average.mean([trained / "checkpoint2.pt", tmp_path / "a.pt"])
    state["extra_state"]["dictionaries"] = {lang: stored[lang] for lang in ("yy", "xx")}
    torch.save(state, tmp_path / "a.pt")
    with pytest.raises(UsageError, match="a.pt was trained with source_lang 'yy', the first"):
        average.mean([trained / "checkpoint2.pt", tmp_path / "a.pt"])


def test_average_names_a_missing_input(capsys):
    assert command.main(["average", "--inputs", "none.pt", "--output", "x.pt"]) == 2
    assert "--inputs none.pt is not a file" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--last", "2"], ["--by", "updates"]])
def test_average_refuses_options_of_the_folder_with_inputs(words, capsys):
    assert command.main(["average", "--inputs", "a.pt", *words, "--output", "x.pt"]) == 2
    assert f"{' '.join(words)} belongs to --dir" in capsys.readouterr().err


def test_an_output_without_a_name_is_refused(tmp_path, capsys):
    (tmp_path / "checkpoint2.pt").touch()
    words = ["average", "--inputs", str(tmp_path / "checkpoint2.pt"), "--output", ""]
    for force in ([], ["--force"]):
        assert command.main([*words, *force]) == 2
        assert "--output '': allowed: the name of a file" in capsys.readouterr().err


def test_an_input_is_not_replaced(tmp_path, capsys):
    path = str(tmp_path / "checkpoint2.pt")
    (tmp_path / "checkpoint2.pt").touch()
    assert command.main(["average", "--inputs", path, "--output", path]) == 2
    assert "is read as well and would be lost" in capsys.readouterr().err


def test_an_output_is_replaced_with_force_alone(trained, tmp_path, capsys):
    output = tmp_path / "mean.pt"
    output.write_text("mine")
    words = ["average", "--inputs", trained / "checkpoint1.pt", "--output", output]
    words = [str(word) for word in words]
    assert command.main(words) == 2
    assert f"--output {output} exists; give another name, or --force" in capsys.readouterr().err
    assert output.read_text() == "mine"
    assert command.main([*words, "--force"]) == 0
    assert load(output)["extra_state"]["averaged_from"] == ["checkpoint1.pt"]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_training_that_has_diverged_is_not_averaged(value, tmp_path):
    model = {"weight": torch.tensor([1.0, value])}
    history = [{"lr_scheduler_state": {}}]
    state = {"model": model, "optimizer_history": history, "extra_state": {}}
    torch.save(state, tmp_path / "a.pt")
    with pytest.raises(UsageError, match="a.pt: weight holds NaN or an infinity"):
        average.mean([tmp_path / "a.pt"])


def test_buffers_without_a_value_say_nothing_of_the_training(tmp_path):
    """fairseq's sinusoidal positions hold one that is never set, nor read."""
    name, paths = "encoder.embed_positions._float_tensor", []
    for number, unset in enumerate((float("nan"), 3.0)):
        paths.append(tmp_path / f"{number}.pt")
        model = {name: torch.tensor([unset]), "weight": torch.tensor([float(number)])}
        history = [{"lr_scheduler_state": {}}]
        state = {"model": model, "optimizer_history": history, "extra_state": {}}
        torch.save(state, paths[-1])
    _, mean = average.mean(paths)
    assert mean == {name: 3.0, "weight": 0.5}


def test_average_refuses_a_file_that_counts_twice(tmp_path, capsys):
    once, again = tmp_path / "a.pt", tmp_path / "again.pt"
    once.touch()
    again.symlink_to(once)
    words = ["average", "--output", tmp_path / "x.pt", "--inputs", once]
    for path, message in ((once, "listed twice;"), (again, f"listed twice, as {once};")):
        assert command.main([str(word) for word in (*words, path)]) == 2
        assert f"--inputs {path}: {message} allowed: each file once" in capsys.readouterr().err
    # of an option that is repeated, all places count
    assert command.main([str(word) for word in (*words, "--inputs", once)]) == 2
    assert f"--inputs {once}: listed twice" in capsys.readouterr().err


def test_parameters_that_some_of_the_checkpoints_tie(trained, tmp_path):
    """Each is averaged by itself, whichever checkpoint comes first."""
    state, paths = load(trained / "checkpoint1.pt"), [tmp_path / "apart.pt", tmp_path / "tied.pt"]
    tied = torch.full((1,), 3.0)
    values = {"a": torch.full((1,), 1.0), "b": torch.full((1,), 5.0)}
    for path, model in zip(paths, (values, {"a": tied, "b": tied})):
        state["model"] = model
        torch.save(state, path)
    for order in (paths, paths[::-1]):
        _, mean = average.mean(order)
        assert {name: value.item() for name, value in mean.items()} == {"a": 2.0, "b": 4.0}


def test_a_parameter_that_begins_where_another_one_does(tmp_path):
    """Rows, columns and the whole of one matrix are three parameters."""
    paths, matrix = [tmp_path / "0.pt", tmp_path / "1.pt"], torch.arange(4.0).view(2, 2)
    history = [{"lr_scheduler_state": {}}]
    for number, path in enumerate(paths):
        whole = matrix + number
        model = {"whole": whole, "row": whole[:1], "turned": whole.t()}
        torch.save({"model": model, "optimizer_history": history, "extra_state": {}}, path)
    mean, expected = average.mean(paths)[1], matrix + 0.5
    torch.testing.assert_close(
        mean, {"whole": expected, "row": expected[:1], "turned": expected.t()}
    )
