"""BLEU of every pair while a model trains (--eval-bleu)."""

import json
from argparse import Namespace
from typing import Any, Dict, List, Tuple

import sacrebleu
from fairseq import utils
from fairseq.data import Dictionary, encoders

from .metrics import BLEU_ORDER

# in the place of a word of a reference that is not in the dictionary
UNKNOWN = "UNKNOWNINREFERENCE"


class PairBleu:
    """Translates validation batches and returns the sums that corpus BLEU is made of.

    Args:
        cfg: a task config with fairseq's --eval-bleu options.
        dictionaries: {lang: dictionary}.

    ``generation`` are the options for the generators; ``generators`` {pair: generator} is filled
    by the task. References are detokenised like the hypotheses: this score guides a run, the
    score to report comes from raw references.
    """

    def __init__(self, cfg, dictionaries: Dict[str, Dictionary]):
        self.cfg, self.dictionaries = cfg, dictionaries
        self.generation = Namespace(**json.loads(cfg.eval_bleu_args))
        options = json.loads(cfg.eval_bleu_detok_args)
        self.tokenizer = encoders.build_tokenizer(
            Namespace(tokenizer=cfg.eval_bleu_detok, **options)
        )
        self.generators: Dict[str, Any] = {}

    def __call__(self, pair: str, sample) -> Dict[str, int]:
        """The sums of one batch, under the names that ``metrics.log_pair_bleu`` adds up."""
        return self.sums(pair, *self.texts(pair, sample))

    def texts(self, pair: str, sample) -> Tuple[List[str], List[str]]:
        """Hypotheses and references of a batch, in its order."""
        pad = self.dictionaries[pair.split("-")[1]].pad()
        found = [nbest[0]["tokens"] for nbest in self.generators[pair].generate(None, sample)]
        wanted = [utils.strip_pad(target, pad) for target in sample["target"]]
        # an unknown word must not be scored as a match
        return (
            [self._line(pair, tokens, "UNKNOWNINHYPOTHESIS") for tokens in found],
            [self._line(pair, tokens, UNKNOWN) for tokens in wanted],
        )

    def _line(self, pair: str, tokens, unknown: str) -> str:
        dictionary = self.dictionaries[pair.split("-")[1]]
        line = dictionary.string(
            tokens.int().cpu(), self.cfg.eval_bleu_remove_bpe, unk_string=unknown
        )
        return self.detokenize(pair, line)

    def detokenize(self, pair: str, line: str) -> str:
        """A target line of the pair as it is scored."""
        return self.tokenizer.decode(line) if self.tokenizer else line

    def sums(self, pair: str, hypotheses: List[str], references: List[str]) -> Dict[str, int]:
        """What the corpus score of the lines is made of."""
        tokenize = {"tokenize": "none"} if self.cfg.eval_tokenized_bleu else {}
        score = sacrebleu.corpus_bleu(hypotheses, [references], **tokenize)
        sums = {"_bleu_sys_len": score.sys_len, "_bleu_ref_len": score.ref_len}
        for order in range(BLEU_ORDER):
            sums[f"_bleu_counts_{order}"] = score.counts[order]
            sums[f"_bleu_totals_{order}"] = score.totals[order]
        return sums
