"""The script that compares what is learnt in different ways; no model is trained here."""

import pytest

from benchmarks import precision as precision_script
from fairseq_ext.tools import UsageError

LOSSES = {"literal": 4.0, "seed": 4.04, "fused": 4.0, "bf16": 4.01, "amp": 3.99}
WORDS = "-s de -t en --embed-dim 16 --heads 2 --updates 8".split()


@pytest.fixture
def precision(monkeypatch):
    """(module, commands that were run); a run writes a log with two validations."""
    module, commands = precision_script, []

    def train(words, log, variables):
        commands.append((words, variables))
        loss = LOSSES[log.name.split(".")[1]]
        log.write_text(
            "".join(
                f"2026-01-01 00:00:00 | INFO | valid | epoch 001 | valid on 'valid' subset | "
                f"loss {value} | nll_loss 3 | num_updates {updates}\n"
                for updates, value in ((2, 9.0), (8, loss))
            ),
            encoding="utf-8",
        )

    monkeypatch.setattr(module, "train", train)
    return module, commands


def test_ways_are_compared_with_the_literal_one(precision, tmp_path, capsys):
    module, commands = precision
    words = [str(tmp_path), *WORDS, "--output", str(tmp_path / "found"), "--system", "dual"]
    module.main(words)
    text = (tmp_path / "found.md").read_text(encoding="utf-8")
    assert "| dual | literal | 9.0000 | 4.0000 |  |" in text
    assert "| dual | seed | 9.0000 | 4.0400 | +1.00 |" in text
    assert "| dual | amp | 9.0000 | 3.9900 | -0.25 |" in text
    assert (tmp_path / "found.png").is_file() and (tmp_path / "found.json").is_file()
    assert len(commands) == 5
    module.main(words)
    assert len(commands) == 5, "trained again"
    module.main([*words, "--lr", "0.001"])
    assert len(commands) == 10, "not trained again with another option"


def test_an_interrupted_training_is_not_taken_for_the_one_before(precision, tmp_path, monkeypatch):
    module, commands = precision
    words = [str(tmp_path), *WORDS, "--output", str(tmp_path / "found"), "--system", "dual"]
    words += ["--way", "seed"]
    module.main(words)

    def interrupted(words, log, variables, train=module.train):
        train(words, log, variables)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "train", interrupted)
        with pytest.raises(KeyboardInterrupt):
            module.main([*words, "--lr", "0.001"])
    module.main(words)
    assert len(commands) == 4, "the log is that of another learning rate"


@pytest.mark.parametrize("system", ["dual", "multiway", "routed"])
def test_ways_differ_in_how_alone(system, precision, tmp_path):
    """fairseq-train takes the options, and those of all ways are the same but for how."""
    from fairseq import options

    import fairseq_ext  # noqa: F401

    module, commands = precision
    words = [str(tmp_path), *WORDS, "--output", str(tmp_path / "found"), "--system", system]
    module.main(words)
    of_ways = {"optimizer", "bf16", "amp", "seed", "save_dir", "criterion"}
    of_ways |= {"fp16_adam_stats", "adam_betas", "use_old_adam"}  # of adam; a fused one differs
    others = []
    for command, more in commands:
        place = command.index("--user-dir")
        args = options.parse_args_and_arch(
            options.get_training_parser(), command[1:place] + command[place + 2 :]
        )
        others.append({key: value for key, value in vars(args).items() if key not in of_ways})
        literal = args.optimizer == "adam"
        assert more == ({"FAIRSEQ_EXT_ONEDNN": "0"} if literal else {})
        assert "fused" in args.optimizer or literal
        assert args.criterion.startswith("chunked") == (not literal and system == "dual")
    for other in others[1:]:
        different = {key for key in others[0] | other if others[0].get(key) != other.get(key)}
        assert not different
    assert [command[command.index("--seed") :].count("2") for command, _ in commands][1]


def test_missing_data_is_named(precision, tmp_path):
    with pytest.raises(UsageError, match="DATA .*nothing: is not a folder"):
        precision[0].main([str(tmp_path / "nothing"), *WORDS])
