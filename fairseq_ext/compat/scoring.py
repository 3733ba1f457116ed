"""fairseq-score --sacrebleu and --sentence-bleu."""

import sys

from .registry import patch


def _lines(path, ignore_case):
    if path == "-":
        text = sys.stdin.read()
    else:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    # not splitlines: that also breaks lines at form feeds and other separators inside a sentence
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.lower() for line in lines] if ignore_case else lines


def _read_both(args):
    system = _lines(args.sys, args.ignore_case)
    reference = _lines(args.ref, args.ignore_case)
    if len(system) != len(reference):
        raise ValueError(
            f"--sys {args.sys} has {len(system)} lines and --ref {args.ref} has "
            f"{len(reference)}: they must be as many"
        )
    return system, reference


def _sacrebleu(args):
    from sacrebleu.metrics import BLEU

    system, reference = _read_both(args)
    metric = BLEU(lowercase=args.ignore_case, max_ngram_order=args.order)
    print(metric.corpus_score(system, [reference]).format())
    print(metric.get_signature())


def _sentence_bleu(args):
    from fairseq.data.dictionary import Dictionary
    from fairseq.scoring import bleu

    dictionary = Dictionary()
    config = bleu.BleuConfig(pad=dictionary.pad(), eos=dictionary.eos(), unk=dictionary.unk())
    scorer = bleu.Scorer(config)
    for number, (system, reference) in enumerate(zip(*_read_both(args))):
        scorer.reset(one_init=True)
        scorer.add(dictionary.encode_line(reference), dictionary.encode_line(system))
        print(number, scorer.result_string(args.order))


@patch(
    "fairseq_cli.score",
    because="sacrebleu 2.0 wants lists where --sacrebleu passes a file; fairseq 0.12: "
    "--sentence-bleu passes three numbers where the scorer wants its configuration",
)
def score_with_sacrebleu_and_by_sentence(module):
    """Answer these two options ourselves; every other call goes to the stock command."""
    stock = module.cli_main

    def cli_main():
        args = module.get_parser().parse_args()
        if args.sacrebleu:
            _sacrebleu(args)
        elif args.sentence_bleu:
            _sentence_bleu(args)
        else:
            stock()

    module.cli_main = cli_main
