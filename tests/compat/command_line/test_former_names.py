"""Options have the names that tasks and programs for fairseq 0.9 and 0.10 read, too."""

import pytest
from fairseq import options


def test_options_of_a_search():
    words = ["data", "--path", "model.pt", "--max-sentences", "3", "--remove-bpe"]
    args = options.parse_args_and_arch(options.get_generation_parser(), words)
    assert (args.max_sentences, args.batch_size) == (3, 3)
    assert args.max_sentences_valid == 3
    assert args.remove_bpe == args.post_process == "subword_nmt"


def test_options_of_a_training():
    words = ["data", "--arch", "transformer", "--batch-size", "2"]
    parser = options.get_training_parser()
    words += ["--unnamed", "1"]
    args, extra = options.parse_args_and_arch(parser, words, parse_known=True)
    assert (args.max_sentences, args.max_sentences_valid) == (2, 2)
    assert extra == ["--unnamed", "1"]


def test_options_of_a_program_keep_their_values():
    parser = options.get_generation_parser()
    parser.add_argument("--max-sentences-of-mine", dest="max_sentences", default=7)
    args = options.parse_args_and_arch(parser, ["data", "--batch-size", "2"])
    assert (args.max_sentences, args.batch_size) == (7, 2)


def test_the_least_rate_of_a_training():
    """Programs for 0.10 end their loops at args.min_lr; the schedule cosine has another one."""
    words = ["data", "--arch", "transformer", "--stop-min-lr", "1e-9"]
    args = options.parse_args_and_arch(options.get_training_parser(), words)
    assert args.min_lr == args.stop_min_lr == 1e-9
    words += ["--lr-scheduler", "cosine", "--min-lr", "1e-5", "--max-update", "9"]
    args = options.parse_args_and_arch(options.get_training_parser(), words)
    assert (args.min_lr, args.stop_min_lr) == (1e-5, 1e-9)


@pytest.mark.parametrize("words", [["--min-lr", "1e-9"], ["--min-lr=1e-9"]])
@pytest.mark.parametrize("suppresses", [False, True])
def test_the_least_rate_under_its_former_name(words, suppresses):
    words = ["data", "--arch", "transformer", "--lr-scheduler", "inverse_sqrt", *words]
    parser = options.get_training_parser()
    args = options.parse_args_and_arch(parser, words, suppress_defaults=suppresses)
    assert args.stop_min_lr == 1e-9


def test_the_least_rate_of_a_program():
    """An option of this name that a program, or a class that it uses, has itself, stays that."""
    parser = options.get_training_parser()
    words = ["data", "--arch", "transformer", "--min-lr", "3"]
    parser.add_argument("--min-lr", type=int)
    args = options.parse_args_and_arch(parser, words)
    assert (args.min_lr, args.stop_min_lr) == (3, -1)


def test_commands_without_a_least_rate_have_no_name_for_it():
    words = ["data", "--path", "model.pt", "--min-lr", "1e-9"]
    with pytest.raises(SystemExit):
        options.parse_args_and_arch(options.get_generation_parser(), words)
