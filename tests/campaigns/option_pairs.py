"""Pairs of options that nobody has tried: a resumed training must end as the uninterrupted one.

    python tests/campaigns/option_pairs.py --count 100 --seed 1

Each draw is a training of scenarios.py with two more options, in a process of its own. It is either
refused by a message that names an option, or resumed at up to two of its checkpoints. Then
parameters, optimiser, position in the data and all that is logged afterwards are compared, to the
last bit. One line is printed for each draw, and the counts; status 1 if any differs or ends in
another error.
"""

import argparse
import collections
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Dict, List, Tuple

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from campaigns import scenarios  # noqa: E402

# without --fp16, whose parameters need CUDA
OPTIONS = """
--bf16 | --update-freq 2 | --update-freq 1,3 | --sentence-avg | --clip-norm 0 | --weight-decay 0.01
--store-ema --ema-decay 0.9 | --store-ema --ema-fp32 --ema-decay 0.5 --ema-update-freq 2
--lr-scheduler inverse_sqrt --warmup-updates 3 | --lr-scheduler triangular --max-lr 0.01
--lr-scheduler polynomial_decay --total-num-update 30 --warmup-updates 2
--lr-scheduler reduce_lr_on_plateau --lr-patience 0 --lr-shrink 0.5
--lr-scheduler manual --epoch2lr {'1':0.01,'2':0.001} | --force-anneal 2 --lr-shrink 0.3
--optimizer sgd --momentum 0.9 | --optimizer nag | --optimizer adagrad | --optimizer adamax
--optimizer adafactor --lr 0.01 | --optimizer adadelta | --optimizer fused_adam | --use-old-adam
--curriculum 1 | --curriculum 2 | --seed 7 | --dropout 0 | --dropout 0.5 | --skip-remainder-batch
--patience 1 --validate-interval-updates 3 | --validate-interval-updates 4 | --validate-interval 2
--max-tokens 120 | --max-tokens 90 --batch-size 5 | --batch-size 7
--required-batch-size-multiple 1 | --max-source-positions 4 --truncate-source
--required-seq-len-multiple 4
--max-source-positions 4 --skip-invalid-size-inputs-valid-test
--num-batch-buckets 2 --max-tokens 120
--num-workers 2 | --num-workers 1 --data-buffer-size 1 | --data-buffer-size 0
--keep-last-epochs 1 --keep-interval-updates 1 | --keep-best-checkpoints 1 | --save-interval 2
--no-epoch-checkpoints | --disable-validation | --max-valid-steps 1 | --combine-valid-subsets
--eval-bleu | --best-checkpoint-metric ppl | --valid-subset valid,train | --valid-subset test
--train-subset valid | --upsample-primary 2 | --criterion label_smoothed_cross_entropy
--criterion chunked_label_smoothed_cross_entropy --label-smoothing 0.1 | --share-all-embeddings
--schedule cycle | --schedule temperature | --schedule joint | --pair-patience 1
--join-at yy-zz=5 | --train-only encoder.xx
--monolingual yy | --monolingual xx --synthetic-share 0.3 | --synthetic-share 0=0.1,9=0.8
--synthetic-share 0.99 | --synthetic-share xx-yy@mono=0.3,yy-xx@mono=0.3
--synthetic-sources sampling | --synthetic-tag | --monolingual-max-len 3
--synthetic-sources noised_beam --synthetic-beam 2 | --synthetic-after-loss 9
--store-ema --synthetic-ema --ema-decay 0.9 | --join-at xx-yy@mono=5 | --join-at xx-yy@bt=8
"""
SECONDS = 150
NO_SUCH_OPTION = re.compile(r"error: (unrecognized arguments|ambiguous option): -")


def options() -> List[List[str]]:
    """Each option with its values."""
    return [part.split() for line in OPTIONS.strip().splitlines() for part in line.split("|")]


def compare(words: List[str], folder: Path) -> str:
    """Train, resume at two checkpoints, and say what differs; "same" if nothing does."""
    from common.checkpoints import compared, differences, meters
    from reliability.test_every_update import stops, train

    whole = folder / "whole"
    log = train(words, whole)
    paths = stops(whole)
    for number, path in enumerate(paths[:: max(1, len(paths) // 2)][:2]):
        resumed = folder / str(number)
        resumed.mkdir()
        shutil.copy(path, resumed / "checkpoint_last.pt")
        again = train(words, resumed)
        ends = [end / "checkpoint_last.pt" for end in (whole, resumed)]
        unequal = differences(*map(compared, ends)) + differences(*map(meters, ends))
        if unequal or not again or again != log[len(log) - len(again) :]:
            return f"DIFFERS from {path.name} on: {unequal[:3] or 'the log'}"
    return f"same, {len(paths)} checkpoints" if paths else "not compared: no checkpoint"


def outcome(words: List[str], folder: Path) -> Tuple[str, bool]:
    """What became of a draw, and whether that is as it should be."""
    from fairseq_ext.compat.user_errors import OptionError

    try:
        text = compare(words, folder)
        return text, not text.startswith("DIFFERS")
    except (OptionError, ValueError) as error:  # ValueError: how fairseq_ext names an option
        return f"refused: {error}", "--" in str(error)
    except SystemExit:  # argparse has printed why
        sys.stderr.flush()
        last = (folder / "output").read_text(encoding="utf-8").strip().rpartition("\n")[2]
        # any other, such as a value that is no choice, is a finding
        return f"refused: {last}", bool(NO_SUCH_OPTION.search(last))
    except Exception as error:  # noqa: BLE001  (whatever it is, it is the finding)
        return f"{type(error).__name__}: {error}\n{traceback.format_exc()[-800:]}", False


def in_a_fork(words: List[str], folder: Path) -> Tuple[str, bool]:
    """``outcome`` in a process of its own, which is ended after ``SECONDS``."""
    report = folder / "report"
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(SECONDS)
            # by number: the log's handler has the stream of the parent
            with open(folder / "output", "w") as output:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
            text, is_right = outcome(words, folder)
            report.write_text(f"{int(is_right)}{text}", encoding="utf-8")
        finally:  # whatever happened: the child must not go on with the campaign
            os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == -signal.SIGALRM:
        return f"no end within {SECONDS} seconds", False
    if not report.exists():
        return f"no report: the process ended with {status}", False
    text = report.read_text(encoding="utf-8")
    return text[1:], text[0] == "1"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=100, help="draws (default: 100)")
    parser.add_argument("--seed", type=int, default=1, help="of the draws (default: 1)")
    parser.add_argument("--only", default="", help="scenarios whose name has this in it")
    arguments = parser.parse_args()
    every = {**scenarios.SCENARIOS, **scenarios.SYNTHETIC}
    names = [name for name in every if arguments.only in name]
    if not names:
        parser.error(f"--only {arguments.only!r}: is in the name of no scenario")
    import torch

    import fairseq_ext  # noqa: F401  (registers the systems)

    torch.set_num_threads(1)
    rng, counts = random.Random(arguments.seed), collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        corpora: Dict[str, Path] = scenarios.write_corpora(Path(name))
        for number in range(arguments.count):
            scenario = rng.choice(names)
            more = sum(rng.sample(options(), 2), [])
            folder = scenarios.clear(Path(name) / "draw")
            words = scenarios.command(scenario, corpora, folder / "unused")
            interval = ["--save-interval-updates", "3"]
            text, is_right = in_a_fork([*words, *interval, *more], folder)
            counts[re.split("[,:]", text)[0] if is_right else "wrong"] += 1
            print(f"{number + 1}. {scenario} {' '.join(more)}: {text}", flush=True)
    kinds = ("same", "refused", "not compared", "wrong")
    print(f"{arguments.count} draws: {', '.join(f'{counts[kind]} {kind}' for kind in kinds)}")
    return int(counts["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
