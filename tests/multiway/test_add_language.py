"""`fairseq-ext add-language`: everything that was there stays to the last bit."""

import re
import shutil

import pytest
import torch
from common import inprocess
from common.exchanged import with_two_words_exchanged

from fairseq_ext import __main__ as command

SIZES = ["--embed-dim", 8, "--hidden-size", 12, "--context-size", 8, "--readout-size", 8]
TASK = ["--task", "multiway_translation"]
TRAIN = [*TASK, "--arch", "multiway_gru", *SIZES, "--optimizer", "adam"]
TRAIN += ["--init-hidden-size", 6, "--init-size", 6, "--lr", 0.01, "--batch-size", 24]
TRAIN += ["--no-epoch-checkpoints", "--no-progress-bar", "--disable-validation"]


@pytest.fixture(scope="module")
def trained(toy_corpus, tmp_path_factory):
    """A checkpoint of xx-yy and yy-xx."""
    folder = tmp_path_factory.mktemp("two")
    flags = ["--lang-pairs", "xx-yy,yy-xx", "--max-update", 4, "--save-dir", folder]
    inprocess.train(toy_corpus.three, *TRAIN, *flags)
    return folder / "checkpoint_last.pt"


def load(path):
    return torch.load(path, map_location="cpu", weights_only=True)


def add(checkpoint, data, output, *words):
    arguments = ["add-language", checkpoint, data, "--output", output, *words]
    return command.main([str(word) for word in arguments])


def test_old_parameters_stay_and_only_new_ones_train(trained, toy_corpus, tmp_path, capsys):
    larger = tmp_path / "larger.pt"
    sizes = ["--encoder-hidden-size", "zz=7", "--encoder-type", "zz=convolution"]
    pairs = ["--pair", "zz-yy", "--pair", "xx-zz"]
    assert add(trained, toy_corpus.three, larger, *pairs, *sizes) == 0
    printed = capsys.readouterr().out
    assert "new: decoders.zz, encoders.zz" in printed
    groups = printed.splitlines()[-1].partition("alone: --train-only ")[2]
    old, new = inprocess.parameters(trained), inprocess.parameters(larger)
    assert all(torch.equal(new[name], tensor) for name, tensor in old.items())
    fresh = set(new) - set(old)
    assert {name.split(".")[1] for name in fresh} == {"zz"}
    run = tmp_path / "run"
    inprocess.train(
        toy_corpus.three, *TRAIN, "--lang-pairs", "xx-yy,yy-xx,zz-yy,xx-zz", "--max-update", 4,
        "--encoder-hidden-size", "xx=12,yy=12,zz=7", "--encoder-type", "zz=convolution",
        "--finetune-from-model", larger,
        "--train-only", groups, "--save-dir", run,
    )  # fmt: skip
    after = inprocess.parameters(run / "checkpoint_last.pt")
    assert all(torch.equal(after[name], tensor) for name, tensor in old.items())
    moved = {name for name in fresh if not torch.equal(after[name], new[name])}
    assert {name for name in fresh if "bias_hh" not in name} == moved
    for checkpoint in (larger, run / "checkpoint_last.pt"):
        flags = ["--task", "multiway_translation", "-s", "zz", "-t", "xx", "--max-len-b", 8]
        output = inprocess.generate(toy_corpus.three, *flags, "--path", checkpoint)
        assert len(inprocess.hypotheses(output)) == 24


def test_a_backward_network_gains_decoders(toy_corpus, tmp_path, capsys):
    """The criterion ``twin`` goes on, and what it had is what it was."""
    twin, larger = ["--criterion", "twin", "--max-update", 1, "--save-dir"], tmp_path / "larger.pt"
    inprocess.train(toy_corpus.three, *TRAIN, "--lang-pairs", "yy-xx", *twin, tmp_path / "old")
    old = tmp_path / "old" / "checkpoint_last.pt"
    assert add(old, toy_corpus.three, larger, "--pair", "xx-yy") == 0
    new = "decoders.yy, encoders.xx, network.decoders.yy"
    assert f"; new: {new}\n" in capsys.readouterr().out
    before, after = load(old)["criterion"], load(larger)["criterion"]
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    fresh = {name for name in after if name not in before}
    assert fresh == {name.replace(".xx.", ".yy.") for name in before if ".xx." in name}
    inprocess.train(
        toy_corpus.three, *TRAIN, "--lang-pairs", "yy-xx,xx-yy", *twin, tmp_path / "run",
        "--finetune-from-model", larger, "--lr", 1e-9,
    )  # fmt: skip
    end = load(tmp_path / "run" / "checkpoint_last.pt")["criterion"]
    for name, tensor in after.items():
        torch.testing.assert_close(end[name], tensor, rtol=0, atol=1e-6)
    # a source alone needs none
    assert add(old, toy_corpus.three, tmp_path / "source.pt", "--pair", "zz-xx") == 0
    assert "; new: encoders.zz\n" in capsys.readouterr().out
    alone = load(tmp_path / "source.pt")["criterion"]
    assert alone.keys() == before.keys()
    assert all(torch.equal(alone[name], tensor) for name, tensor in before.items())


def test_a_training_with_synthetic_pairs_gains_a_language(toy_corpus, tmp_path):
    """Its checkpoint names the share of streams that the larger model does not have."""
    data = tmp_path / "data"
    for folder in (data, data / "bt"):
        shutil.copytree(toy_corpus.three, folder)
    flags = ["--lang-pairs", "xx-yy,xx-yy@bt", "--synthetic-share", 0.3, "--max-update", 2]
    flags += ["--join-at", "xx-yy@bt=1", "--save-dir", tmp_path]
    inprocess.train(data, *TRAIN, *flags)
    larger = tmp_path / "larger.pt"
    assert add(tmp_path / "checkpoint_last.pt", data, larger, "--pair", "zz-yy") == 0
    words = [*TASK, "--path", larger, "--lang-pairs", "xx-yy,zz-yy", "--batch-size", 24]
    losses = inprocess.validate(data, *words, "--valid-subset", "valid")[-1]
    assert {"valid_xx-yy_loss", "valid_zz-yy_loss"} <= set(losses)


def test_seed_decides_what_is_new(trained, toy_corpus, tmp_path):
    weights = []
    for number, seed in enumerate((1, 1, 2)):
        output = tmp_path / f"{number}.pt"
        add(trained, toy_corpus.three, output, "--pair", "zz-yy", "--seed", seed)
        weights.append(inprocess.parameters(output)["encoders.zz.adapt.weight"])
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])


def test_digests_of_old_and_new_dictionaries(trained, toy_corpus, tmp_path):
    larger, run = tmp_path / "larger.pt", tmp_path / "run"
    data = with_two_words_exchanged(toy_corpus.three, tmp_path / "new", "zz")
    add(trained, data, larger, "--pair", "zz-yy")
    flags = ["--lang-pairs", "xx-yy,yy-xx,zz-yy", "--max-update", 1, "--save-dir", run]
    inprocess.train(data, *TRAIN, *flags, "--finetune-from-model", larger)
    before, after, at_end = (
        load(path)["extra_state"]["dictionaries"]
        for path in (trained, larger, run / "checkpoint_last.pt")
    )
    assert after == at_end and after == {**before, "zz": after["zz"]}
    # all of them have the same words
    assert set(before) == {"xx", "yy"} and after["zz"] != before["xx"] == before["yy"]
    for lang, other in (("zz", toy_corpus.three), ("yy", tmp_path / "other")):
        if lang == "yy":
            with_two_words_exchanged(data, other, "yy")
        with pytest.raises(
            ValueError, match=f"larger.pt: trained with another dictionary of {lang}"
        ):
            inprocess.generate(other, *TASK, "-s", "zz", "-t", "yy", "--path", larger)


def test_unknown_dictionaries_stay_unknown(trained, toy_corpus, tmp_path):
    state = load(trained)
    del state["extra_state"]["dictionaries"]
    torch.save(state, tmp_path / "old.pt")
    assert (
        add(tmp_path / "old.pt", toy_corpus.three, tmp_path / "larger.pt", "--pair", "zz-yy") == 0
    )
    assert set(load(tmp_path / "larger.pt")["extra_state"]["dictionaries"]) == {"zz"}


@pytest.mark.parametrize(
    "words, message",
    [
        (["--pair", "xx-yy"], "--pair xx-yy: .* has it already"),
        (["--pair", "xxzz"], "'xxzz' is not of the form"),
        (["--pair", "qq-xx"], "no dictionary for language 'qq'"),
        (["--pair", "zz-xx", "--encoder-hidden-size", "xx=9"], "'xx' is not a source"),
        (["--pair", "zz-xx", "--encoder-type", "xx=lstm"], "--encoder-type .*'xx' is not a source"),
    ],
)
def test_wrong_pairs_are_named(trained, toy_corpus, tmp_path, capsys, words, message):
    output = tmp_path / "out.pt"
    assert add(trained, toy_corpus.three, output, *words) == 2
    assert re.search(message, capsys.readouterr().err)
    assert list(tmp_path.iterdir()) == []


def test_other_dictionaries_and_other_files_are_named(trained, toy_corpus, tmp_path, capsys):
    data = tmp_path / "data"
    data.mkdir()
    for lang in ("xx", "yy", "zz"):
        text = toy_corpus.dictionary.read_text()
        (data / f"dict.{lang}.txt").write_text(text + "more 1\n" * (lang == "yy"))
    assert add(trained, data, tmp_path / "out.pt", "--pair", "zz-xx") == 2
    message = capsys.readouterr().err
    assert re.search(r"was trained with .*dict.yy.txt, which has .*; dict.yy.txt of the", message)
    # as many words in another order
    lines = toy_corpus.dictionary.read_text().splitlines()
    (data / "dict.yy.txt").write_text("".join(f"{line}\n" for line in reversed(lines)))
    assert add(trained, data, tmp_path / "out.pt", "--pair", "zz-xx") == 2
    assert re.search("was trained with .*dict.yy.txt, whose word", capsys.readouterr().err)
    # where the checkpoint's own folder is gone, its digest tells
    state = load(trained)
    state["cfg"]["task"]["data"] = "nowhere"
    torch.save(state, tmp_path / "moved.pt")
    assert add(tmp_path / "moved.pt", data, tmp_path / "out.pt", "--pair", "zz-xx") == 2
    assert "moved.pt: was trained with another dictionary of yy" in capsys.readouterr().err
    # of a checkpoint without digests, the number of words is all there is to compare
    del state["extra_state"]["dictionaries"]
    torch.save(state, tmp_path / "moved.pt")
    (data / "dict.yy.txt").write_text("".join(f"{line}\n" for line in [*lines, "more 1"]))
    assert add(tmp_path / "moved.pt", data, tmp_path / "out.pt", "--pair", "zz-xx") == 2
    assert "dict.yy.txt is not the dictionary" in capsys.readouterr().err
    torch.save({"args": None, "model": {}}, tmp_path / "other.pt")
    for name, reason in (("none.pt", "is not a file"), ("other.pt", "not a model of fairseq")):
        assert add(tmp_path / name, toy_corpus.three, tmp_path / "out.pt", "--pair", "zz-xx") == 2
        assert reason in capsys.readouterr().err
    assert not (tmp_path / "out.pt").exists()


def test_the_checkpoint_itself_is_not_replaced(tmp_path, capsys):
    path = str(tmp_path / "checkpoint.pt")
    assert command.main(["add-language", path, "DATA", "--pair", "a-b", "--output", path]) == 2
    assert "is read as well and would be lost" in capsys.readouterr().err


def test_an_output_is_replaced_with_force_alone(trained, toy_corpus, tmp_path, capsys):
    output = tmp_path / "larger.pt"
    output.write_text("mine")
    words = [trained, toy_corpus.three, output, "--pair", "xx-zz"]
    assert add(*words) == 2 and output.read_text() == "mine"
    assert f"--output {output} exists; give another name, or --force" in capsys.readouterr().err
    assert add(*words, "--force") == 0
    assert "decoders.zz" in " ".join(inprocess.parameters(output))
