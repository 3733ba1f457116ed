"""Scores of every task while a model trains, by what its target is (Sec. 3.3; --eval-bleu).

text     BLEU and TER
tags     token accuracy, exact match, F1 of named entities
trees    token accuracy, exact match, bracketing F1
graphs   token accuracy, exact match, F1 of triples
"""

from functools import partial
from typing import Callable, Dict, Iterable, List, Optional

from fairseq import metrics
from fairseq.data import Dictionary
from fairseq.logging.meters import MetersDict
from sacrebleu.metrics import TER

from ..common import corpus_bleu
from ..common.log_sums import log_sums
from ..common.named_values import named_values
from ..streams.bleu import UNKNOWN, PairBleu
from ..streams.config import StreamsConfig
from ..streams.language_pair import target_of
from ..streams.metrics import Log, log_pair_bleu, pair_logs
from . import scores
from .formats import Malformed

KINDS = ("text", "tags", "trees", "graphs")
F1: Dict[str, Callable[[List[str], List[str]], Dict[str, int]]] = {
    "tags": scores.ner_f1,
    "trees": scores.bracket_f1,
    "graphs": scores.triple_f1,
}
# {--eval-bleu-remove-bpe: the sign in place of which a blank comes, all others being left out}
BLANKS = {"sentencepiece": "\u2581", "wordpiece": "_", "letter": "|", "_EOW": "_EOW"}
TER_SUMS = ("_ter_edits", "_ter_length")
# {score: the counts that it is made of}
COUNTED = {
    "accuracy": ("matched", "total"),
    "exact": ("matched", "total"),
    "f1": ("matched", "predicted", "gold"),
}
# {score: the count that is 0 where nothing could be measured}; none depends on the hypotheses, so
# that a score is in every validation of a run or in none
MEASURED_BY = {"accuracy": "_exact_total", "exact": "_exact_total", "f1": "_f1_gold"}
COUNT_NAMES = tuple(f"_{score}_{name}" for score, names in COUNTED.items() for name in names)


def parse_target_kinds(text: str, targets: Iterable[str] = ()) -> Dict[str, str]:
    """Return {"ner": "tags", "amr": "graphs"} of "ner=tags,amr=graphs"; ValueError for other texts.

    targets: the languages that there are; without any, all are allowed.
    """
    kinds: Dict[str, str] = {}
    for entry, lang, kind in named_values(text):
        if not lang or kind not in KINDS:
            raise ValueError(
                f"--target-kinds {entry!r}: must be LANG=KIND with a kind among {', '.join(KINDS)}"
            )
        if lang in kinds or (targets and lang not in targets):
            allowed = f"each of {', '.join(targets)} once" if targets else "each language once"
            raise ValueError(f"--target-kinds {entry!r}: {lang!r}; allowed: {allowed}")
        kinds[lang] = kind
    return kinds


class TaskScores(PairBleu):
    """Writes the targets of validation batches and returns the sums that scores are made of.

    Args:
        cfg: a task config with fairseq's --eval-bleu options; detokenisation is for text alone.
        dictionaries: {lang: dictionary}.
        kinds: {pair: one of ``KINDS``}.
    """

    def __init__(
        self, cfg: StreamsConfig, dictionaries: Dict[str, Dictionary], kinds: Dict[str, str]
    ):
        super().__init__(cfg, dictionaries)
        self.kinds = kinds
        sign = BLANKS.get(cfg.eval_bleu_remove_bpe or "", "")  # "" is in every symbol
        self._are_cut = {
            pair: any(sign in symbol for symbol in dictionaries[target_of(pair)].symbols)
            for pair in kinds
        }

    def joined_by(self, pair: str) -> Optional[str]:
        """Return --eval-bleu-remove-bpe; None for tags, trees and graphs that nothing has cut.

        Those have no sign for a blank: without the blanks, a line would be a single symbol.
        """
        is_joined = self.kinds[pair] == "text" or self._are_cut[pair]
        return super().joined_by(pair) if is_joined else None

    def detokenize(self, pair: str, line: str) -> str:
        """Return a text detokenised, tags, trees and graphs as they are."""
        return super().detokenize(pair, line) if self.kinds[pair] == "text" else line

    def sums(self, pair: str, hypotheses: List[str], references: List[str]) -> Dict[str, int]:
        """Return the sums of one batch under the names that ``log_scores`` adds up.

        All names are always there: workers may be on batches of different pairs.
        """
        # workers exchange sums by name: a name that one of them lacks would stop the run
        zeros = dict.fromkeys((*corpus_bleu.NAMES, *TER_SUMS, *COUNT_NAMES), 0)
        kind = self.kinds[pair]
        if kind != "text":
            return {**zeros, **count_sums(kind, hypotheses, references)}
        # TER is not additive over sentences, its two counts are
        edits = TER().corpus_score(hypotheses, [references])
        ter = int(edits.num_edits), int(edits.ref_length)
        return {**zeros, **super().sums(pair, hypotheses, references), **dict(zip(TER_SUMS, ter))}


def count_sums(kind: str, hypotheses: List[str], references: List[str]) -> Dict[str, int]:
    """Return the counts of ``scores.py``.

    F1 leaves out sentences with a symbol in the reference that is not in the dictionary, and those
    whose reference cannot be read.
    """
    counted = {
        "accuracy": scores.token_accuracy(hypotheses, references),
        "exact": scores.exact_match(hypotheses, references),
        "f1": dict.fromkeys(COUNTED["f1"], 0),
    }
    for hypothesis, reference in zip(hypotheses, references) if kind in F1 else ():
        # what the symbol stood for is lost, so that nobody can say whether the hypothesis has it
        if UNKNOWN in reference.split():
            continue
        try:
            counts = F1[kind]([hypothesis], [reference])
        except Malformed:
            continue
        for name in COUNTED["f1"]:
            counted["f1"][name] += counts[name]
    return {
        f"_{score}_{name}": counted[score][name]
        for score, names in COUNTED.items()
        for name in names
    }


def log_scores(outputs: List[Log], pair: str, kind: str) -> None:
    """Log one task's scores in percent, such as "en-vi_bleu", "en-vi_ter", "en-ner_accuracy".

    What was not measured has no score: --max-valid-steps may leave no batch of a task, references
    may be empty or have no entity, bracket or triple to be found.
    """
    logs = pair_logs(outputs, pair)
    if kind == "text":
        log_pair_bleu(outputs, pair)
        if log_sums(logs, TER_SUMS, f"_{pair}")["_ter_length"]:
            metrics.log_derived(f"{pair}_ter", partial(_ter, pair), priority=26)
        return
    sums = log_sums(logs, COUNT_NAMES, f"_{pair}")
    for score in COUNTED:
        # tags, trees and graphs have an F1 by their own ``F1``; the other scores need no kind
        if (score != "f1" or kind in F1) and sums[MEASURED_BY[score]]:
            metrics.log_derived(f"{pair}_{score}", partial(_percent, pair, score), priority=26)


def _ter(pair: str, meters: MetersDict) -> float:
    """Return TER of what has been logged, in percent."""
    edits, length = (meters[f"_{pair}{name}"].sum for name in TER_SUMS)
    return round(100 * edits / length, 2)


def _percent(pair: str, score: str, meters: MetersDict) -> float:
    """Return accuracy, exact match or F1 of what has been logged."""
    # ratios are made of the sums over all batches, not averaged over batches
    counts = {name: int(meters[f"_{pair}_{score}_{name}"].sum) for name in COUNTED[score]}
    return round((scores.f1 if score == "f1" else scores.accuracy)(counts), 2)
