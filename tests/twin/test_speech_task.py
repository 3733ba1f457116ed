"""``twin_speech_lstm`` in fairseq's commands: trained, resumed, scored, transcribing."""

import pytest
import torch
from common import inprocess
from fairseq.data.encoders.characters import Characters
from twin.recordings import prepared

from fairseq_ext import __main__ as command

SIZES = {
    "--encoder-hidden-size": 12,
    "--time-reduction": "1,2",
    "--embed-dim": 8,
    "--hidden-size": 20,
    "--attention-size": 12,
    "--readout-size": 12,
    "--conv-filters": 3,
    "--conv-width": 7,
}


def train(data, folder, *options, sizes=SIZES):
    return inprocess.train(
        *(data, "--task", "speech_to_text", "--arch", "twin_speech_lstm"),
        *(word for entry in sizes.items() for word in entry),
        *("--criterion", "twin", "--optimizer", "adam", "--lr", 0.01, "--clip-norm", 1),
        *("--no-epoch-checkpoints", "--max-tokens", 300, "--save-dir", folder, *options),
    )


def generate(data, checkpoint, *options):
    return inprocess.generate(
        *(data, "--task", "speech_to_text", "--path", checkpoint, "--gen-subset", "valid"),
        *("--max-tokens", 600, *options),
    )


def load(path):
    return torch.load(path, map_location="cpu", weights_only=True)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return prepared(tmp_path_factory.mktemp("speech"), {"train": 24, "valid": 6})


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    """(folder, records) of a few updates with a window in pre-training."""
    folder = tmp_path_factory.mktemp("run")
    pretrained = ("--window-updates", 2, "--window", "2,1.5,3")
    return folder, train(data, folder, "--max-update", 4, "--dropout", 0.1, *pretrained)


def test_terms_are_logged_and_the_model_alone_is_in_the_model(run):
    folder, records = run
    last = [record for record in records if "train_L_t" in record][-1]
    assert {"train_nll_loss", "train_backward_nll_loss", "train_backward_ppl"} <= set(last)
    assert any("valid_ppl" in record for record in records)
    names = inprocess.parameters(folder / "checkpoint_last.pt")
    assert {name.split(".")[0] for name in names} == {"encoder", "decoder"}
    assert sum(name.endswith("embedding.weight") for name in names) == 1


def test_training_goes_on(data, run, tmp_path):
    folder, _ = run
    words = ("--restore-file", folder / "checkpoint_last.pt", "--max-update", 5)
    records = train(data, tmp_path, *words)
    updates = [record.get("train_num_updates") for record in records]
    assert [number for number in updates if number] == [5]


def test_scores_of_references_are_those_of_validation(data, run):
    """Teacher-forced scoring, a step at a time with a cache, against the criterion's likelihood."""
    folder, _ = run
    checkpoint = folder / "checkpoint_last.pt"
    words = ("--config-yaml", "config.yaml", "--max-tokens", 600)
    record = inprocess.validate(data, "--task", "speech_to_text", "--path", checkpoint, *words)[-1]
    lines = generate(data, checkpoint, "--score-reference").splitlines()
    scores = [float(word) for line in lines if line[:2] == "P-" for word in line.split()[1:]]
    # base-2 logarithms of the characters, and bits for each
    assert record["valid_nll_loss"] == pytest.approx(-sum(scores) / len(scores), abs=2e-3)


def test_beams_and_single_recordings(data, run, tmp_path):
    folder, _ = run
    checkpoint = folder / "checkpoint_last.pt"
    printed = generate(data, checkpoint, "--beam", 4, "--nbest", 2, "--max-len-b", 8)
    hypotheses = inprocess.hypotheses(printed)
    assert sorted(hypotheses) == list(range(6)) and all(
        len(beam) == 2 for beam in hypotheses.values()
    )
    assert all(beam[0][0] >= beam[1][0] for beam in hypotheses.values())
    paths = tmp_path / "paths"
    features = sorted((data / "features" / "valid").glob("*.npy"))
    paths.write_text("".join(f"{path}\n" for path in features), encoding="utf-8")
    words = ("--task", "speech_to_text", "--path", checkpoint, "--input", paths)
    printed = inprocess.interactive(
        data, *words, "--beam", 4, "--nbest", 2, "--max-len-b", 8, "--max-tokens", 600
    )
    again = inprocess.hypotheses(printed)
    assert {number: [text for _, text in beam] for number, beam in again.items()} == {
        number: [text for _, text in beam] for number, beam in hypotheses.items()
    }


def test_exported_without_the_twin(data, run, tmp_path, capsys):
    folder, _ = run
    exported, words = tmp_path / "plain.pt", ("--beam", 2, "--max-len-b", 8)
    named = ["export", folder / "checkpoint_last.pt", "--to", "fairseq", "--output", exported]
    assert command.main([str(word) for word in named]) == 0
    assert "--user-dir" in capsys.readouterr().out
    stored = [load(path) for path in (folder / "checkpoint_last.pt", exported)]
    assert stored[0]["criterion"] and not stored[1]["criterion"]
    outputs = [generate(data, path, *words) for path in (folder / "checkpoint_last.pt", exported)]
    assert inprocess.hypotheses(outputs[0]) == inprocess.hypotheses(outputs[1])


def test_distance_names_bad_features(data, run, tmp_path, capsys):
    features = sorted((data / "features" / "valid").glob("*.npy"))[0]
    words = ["twin-distance", run[0] / "checkpoint_last.pt", data, "--subset", "valid"]
    words = [str(word) for word in [*words, "--output", tmp_path / "out", "--unit", "characters"]]
    assert command.main(words) == 0
    content = features.read_bytes()
    moved = features.rename(tmp_path / "moved.npy")
    try:
        for bad in (None, b"", b"nothing of numpy", b"PK\x03\x04", content[:-5]):
            if bad is not None:
                features.write_bytes(bad)
            assert command.main(words) == 2
            assert str(features) in capsys.readouterr().err
    finally:
        moved.replace(features)


@pytest.mark.slow
def test_recordings_are_transcribed(tmp_path):
    data = prepared(tmp_path, {"train": 200, "valid": 40})
    sizes = {**SIZES, "--encoder-hidden-size": 24, "--hidden-size": 48, "--attention-size": 24}
    annealed = ("--lr-scheduler", "polynomial_decay", "--total-num-update", 200)
    words = ("--max-update", 200, "--max-tokens", 700, "--warmup-updates", 20, *annealed)
    train(data, tmp_path / "run", *words, "--window-updates", 40, "--window", "4,2,4", sizes=sizes)
    checkpoint = tmp_path / "run" / "checkpoint_best.pt"
    printed = generate(data, checkpoint, "--beam", 3, "--max-len-b", 10)
    hypotheses, references = inprocess.hypotheses(printed), inprocess.references(printed)
    # hypotheses are printed letter by letter
    texts = {number: Characters.decode(beam[0][1]) for number, beam in hypotheses.items()}
    assert sum(texts[number] == text for number, text in references.items()) >= 0.9 * len(
        references
    )
