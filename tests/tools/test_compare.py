"""`fairseq-ext compare`: time from logs, the summary, the files."""

import pytest
from tools.translations import write

from fairseq_ext import __main__ as command
from fairseq_ext.compat.validation import best_scores
from fairseq_ext.tools.curves import compare
from fairseq_ext.tools.curves.training_log import LoggedRun, read_run

# seconds after ten o'clock, message
FIRST = [
    (0, "fairseq_cli.train | {'_name': None}"),
    (30, "train_inner | epoch 001:     10 / 20 loss=5, wall=20, num_updates=10"),
    (50, "train_inner | epoch 001:     20 / 20 loss=4, wall=40, num_updates=20"),
    (54, "valid | epoch 001 | valid on 'valid' subset | loss 4.5 | bleu 3 | num_updates 20"),
    (55, "train | epoch 001 | loss 4.6 | num_updates 20 | wall 45"),
    (90, "train_inner | epoch 002:     30 / 40 loss=3, wall=80, num_updates=30"),
]
# killed here, and resumed an hour later from update 20
SECOND = [
    (3690, "fairseq_cli.train | {'_name': None}"),
    (3700, "fairseq.trainer | Loaded checkpoint last.pt (epoch 2 @ 20 updates)"),
    (3710, "train_inner | epoch 002:     30 / 40 loss=2.5, wall=0, num_updates=30"),
    (3725, "valid | epoch 002 | valid on 'valid' subset | loss 3 | bleu 9 | num_updates 40"),
]


def stamped(entries):
    return [
        f"2030-01-02 {10 + s // 3600:02}:{s // 60 % 60:02}:{s % 60:02} | INFO | {text}"
        for s, text in entries
    ]


def unstamped(entries):
    return [text.partition(" | ")[2] for _, text in entries]


def hours(run, *updates):
    return [round(3600 * hour) for hour in compare.hours_at(run, updates)]


def test_time_is_that_of_the_stamps_without_pauses(tmp_path):
    run = read_run(write(tmp_path / "log", stamped(FIRST)), "run")
    assert hours(run, 10, 20, 25, 30) == [30, 55, 72, 90]
    # what was trained and lost counts, the pause does not: 90 + 10, 90 + 25
    run = read_run(write(tmp_path / "log", stamped(FIRST + SECOND)), "run")
    assert hours(run, 20, 30, 40) == [55, 100, 115]
    assert run.curves["train", "loss"] == [(10, 5), (20, 4), (30, 2.5)]


def test_time_without_stamps_is_wall(tmp_path):
    run = read_run(write(tmp_path / "log", unstamped(FIRST)), "run")
    assert hours(run, 5, 10, 15, 30, 35) == [10, 20, 30, 80, 80]
    assert compare.by_time(run).curves["valid", "bleu"] == [(40 / 3600, 3)]
    # after a resumption fairseq's wall stands still
    assert read_run(write(tmp_path / "log", unstamped(FIRST + SECOND)), "run").times == []


def test_the_summary_is_about_the_validation(tmp_path):
    times = [(100, 3600), (200, 7200), (300, 10800)]
    quick = LoggedRun(
        "quick",
        {
            ("train", "loss"): [(50, 1.0)],
            ("valid", "loss"): [(100, 5), (200, 3), (300, 3)],
            ("valid", "bleu"): [(100, 20), (200, 30), (300, 25)],
        },
        times,
    )
    slow = LoggedRun("slow", {("valid", "loss"): [(100, 6), (200, 5), (300, 4)]}, times)
    assert compare.summary([quick, slow], "loss").splitlines()[2:] == [
        "| quick | 3 | 200 | 2.000 | 200 | 2.000 |",
        "| slow | 4 | 300 | 3.000 | 300 | 3.000 |",
    ]
    bleu = compare.summary([quick, slow], "bleu").splitlines()
    assert bleu[0] == "| bleu | best | updates | hours | updates to 30 | hours |"
    assert bleu[2:] == [
        "| quick | 30 | 200 | 2.000 | 200 | 2.000 |",
        "| slow | - | - | - | - | - |",
    ]
    # where only training has a metric, it is about training
    run = LoggedRun("r", {("train", "gnorm"): [(5, 1)]})
    assert compare.validation(run, "gnorm", compare.common_split([run], "gnorm")) == [(5, 1)]


def test_files(tmp_path, capsys):
    logs = [write(tmp_path / name, stamped(FIRST + SECOND)) for name in ("a.log", "b.log")]
    output = tmp_path / "curves.png"
    assert command.main(["compare", *map(str, logs), "--output", str(output)]) == 0
    printed = capsys.readouterr().out
    assert printed == output.with_suffix(".md").read_text(encoding="utf-8")
    assert "| a | 3 | 40 | 0.032 | 40 | 0.032 |" in printed and "| bleu | best |" in printed
    assert output.read_bytes().startswith(b"\x89PNG")
    lines = output.with_suffix(".tsv").read_text(encoding="utf-8").splitlines()
    assert lines[0].split("\t") == ["run", "split", "metric", "updates", "hours", "value"]
    assert f"b\tvalid\tbleu\t20\t{55 / 3600:.5f}\t3" in lines
    assert len(lines) == 1 + 2 * (3 + 2 + 2)


def test_one_direction_of_a_model_of_several(tmp_path, capsys):
    line = "valid | epoch 001 | valid on 'valid' subset | loss 4 | de-en_loss 3 | en-de_loss 5 | "
    both = FIRST + [(95, f"{line}num_updates 30")]
    logs = [
        write(tmp_path / "one.log", stamped(FIRST)),
        write(tmp_path / "both.log", stamped(both)),
    ]
    words = ["compare", *map(str, logs), "--output", str(tmp_path / "a.png"), "--metric", "loss"]
    assert command.main(words) == 0
    printed = capsys.readouterr()
    assert "| one | 4.5 |" in printed.out and "| both | 4 |" in printed.out
    assert "both: the figures are of de-en, en-de together" in printed.err
    assert command.main([*words, "--pair", "de-en"]) == 0
    printed = capsys.readouterr()
    assert "| one | 4.5 |" in printed.out and "| both | 3 |" in printed.out and not printed.err
    assert command.main([*words, "--pair", "de-fr"]) == 2
    assert "--pair de-fr: allowed: de-en, en-de" in capsys.readouterr().err


def test_a_pair_has_no_figures_of_others(tmp_path, capsys):
    """A log of other pairs, and BLEU, of which tags have none."""
    line = "valid | epoch 001 | valid on 'valid' subset | loss 4 | bleu 8 | "
    tags = "de-en_loss 3 | de-en_bleu 8 | de-ner_loss 5 | num_updates 30"
    others = "fr-en_loss 3 | num_updates 30"
    logs = [
        str(write(tmp_path / f"{name}.log", stamped([*FIRST, (95, line + figures)])))
        for name, figures in (("tags", tags), ("others", others))
    ]
    words = ["--output", str(tmp_path / "a.png"), "--pair", "de-ner", "--metric"]
    assert command.main(["compare", *logs, *words, "loss"]) == 2
    assert "--pair de-ner: the log of others has fr-en instead" in capsys.readouterr().err
    assert command.main(["compare", logs[0], *words, "bleu"]) == 2
    assert "--metric bleu is in none of the logs" in capsys.readouterr().err
    assert command.main(["compare", logs[0], *words, "loss"]) == 0
    assert "| tags | 5 |" in capsys.readouterr().out
    assert command.main(["compare", logs[0], *words, "loss", "--per-pair"]) == 2
    assert "--pair de-ner with --per-pair" in capsys.readouterr().err


def test_languages_may_have_an_underscore(tmp_path, capsys):
    losses = "pt_BR-zh_Hans_loss 3 | pt_BR-zh_Hans_nll_loss 2 | zh_Hans-pt_BR_backward_loss 1"
    line = f"valid | epoch 001 | valid on 'valid' subset | loss 4 | {losses} | "
    log = write(tmp_path / "both.log", stamped([*FIRST, (95, f"{line}num_updates 30")]))
    words = ["compare", str(log), "--output", str(tmp_path / "a.png"), "--metric", "loss"]
    assert command.main([*words, "--pair", "pt_BR-zh_Hans"]) == 0
    assert "| both | 3 |" in capsys.readouterr().out
    assert command.main([*words, "--pair", "zh_Hans-pt_BR"]) == 2
    assert "allowed: pt_BR-zh_Hans\n" in capsys.readouterr().err


def test_what_less_is_better_of():
    less = ("de-en_loss", "ppl", "text_nll", "wer", "cer", "l_duality", "L_t", "symm_kl", "latency")
    assert all(map(compare.is_lower_better, less))
    more = ("bleu", "worst_bleu", "macro_f1", "accuracy", *best_scores.HIGHER)
    assert not any(map(compare.is_lower_better, more))


def test_a_run_that_begins_again_in_its_log_begins_at_zero(tmp_path):
    begun = (0, "fairseq.trainer | No existing checkpoint found out/checkpoint_last.pt")
    again = [(7200 + seconds, text) for seconds, text in [begun, *FIRST]]
    run = read_run(write(tmp_path / "log", stamped([begun, *FIRST[:2], *again])), "run")
    assert hours(run, 10, 20, 30) == [30, 55, 90]


def test_a_log_without_times_is_named(tmp_path, capsys):
    log = write(tmp_path / "resumed.log", unstamped(FIRST + SECOND))
    output = tmp_path / "curves.png"
    assert command.main(["compare", str(log), "--output", str(output)]) == 2
    assert "LOG of resumed: no line has a time stamp" in capsys.readouterr().err
    assert not output.exists()
    with pytest.raises(SystemExit):
        command.main(["compare", "--output", str(output)])


def test_nan_is_neither_the_best_value_nor_the_goal():
    times = [(0, 0.0), (200, 3600.0)]
    runs = [
        LoggedRun("late", {("valid", "loss"): [(100, float("nan")), (200, 3.0)]}, times),
        LoggedRun("never", {("valid", "loss"): [(100, float("nan"))]}, times),
    ]
    assert compare.summary(runs, "loss").splitlines()[2:] == [
        "| late | 3 | 200 | 1.000 | 200 | 1.000 |",
        "| never | - | - | - | - | - |",
    ]
    assert "updates to nan" in compare.summary(runs[1:], "loss")


def test_all_runs_are_compared_on_one_subset(capsys):
    """Whatever the order in which their logs name the subsets."""
    first = LoggedRun("one", {("valid", "loss"): [(5, 5)], ("test", "loss"): [(5, 9)]}, [(5, 60)])
    other = LoggedRun("other", {("test", "loss"): [(5, 8)], ("valid", "loss"): [(5, 4)]}, [(5, 60)])
    table = compare.summary([first, other], "loss")
    assert "| one | 5 | 5 |" in table and "| other | 4 | 5 |" in table
    assert table.splitlines()[0].startswith("| loss |")
    tested = compare.summary([other, first], "loss")
    assert tested.splitlines()[0].startswith("| loss, test |") and "| one | 9 | 5 |" in tested
    # runs without a validation are compared with others by the loss in training
    plain = LoggedRun("plain", {("train", "loss"): [(5, 3)]}, [(5, 60)])
    both = LoggedRun("both", {**first.curves, ("train", "loss"): [(5, 2)]}, [(5, 60)])
    assert compare.summary([both, plain], "loss").splitlines()[0].startswith("| loss, train |")
    assert not capsys.readouterr().err
    compare.summary([first, plain], "loss")
    assert "loss: no subset is in all logs; compared are one: valid, plain: train" in (
        capsys.readouterr().err
    )
