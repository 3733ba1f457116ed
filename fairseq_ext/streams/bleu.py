"""BLEU of every pair while a model trains (--eval-bleu)."""

import json
import logging
from argparse import Namespace
from typing import Any, Dict, List, Mapping, Optional, Set, Tuple

import sacrebleu
from fairseq import utils
from fairseq.data import Dictionary, encoders
from torch import Tensor

from ..common.corpus_bleu import bleu_sums
from ..compat.generation.word_blanks import lacks_blanks
from .config import StreamsConfig
from .language_pair import target_of

logger = logging.getLogger(__name__)

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

    def __init__(self, cfg: StreamsConfig, dictionaries: Dict[str, Dictionary]):
        self.cfg, self.dictionaries = cfg, dictionaries
        self.generation = Namespace(**json.loads(cfg.eval_bleu_args))
        options = json.loads(cfg.eval_bleu_detok_args)
        # moses joins the words of a language; --eval-bleu-detok-args may name one for all
        self.tokenizers = {
            language: encoders.build_tokenizer(
                Namespace(**{"tokenizer": cfg.eval_bleu_detok, "target_lang": language, **options})
            )
            for language in dictionaries
        }
        self.generators: Dict[str, Any] = {}
        self._warned: Set[str] = set()

    def __call__(self, pair: str, sample: Mapping[str, Any]) -> Dict[str, int]:
        """Return the sums of one batch, under the names that ``metrics.log_pair_bleu`` adds up.

        With --eval-bleu-print-samples its first sentence is logged, as in stock fairseq.
        """
        hypotheses, references = self.texts(pair, sample)
        if self.cfg.eval_bleu_print_samples and references:
            logger.info(f"{pair} example hypothesis: {hypotheses[0]}")
            logger.info(f"{pair} example reference: {references[0]}")
        if (
            not self.cfg.eval_tokenized_bleu
            and pair not in self._warned
            and lacks_blanks(references)
        ):
            self._warned.add(pair)
            logger.warning(
                f"{pair}: references have no blanks between words, which BLEU counts; "
                "--eval-tokenized-bleu in place of --eval-bleu-remove-bpe counts sub-words"
            )
        return self.sums(pair, hypotheses, references)

    def texts(self, pair: str, sample: Mapping[str, Any]) -> Tuple[List[str], List[str]]:
        """Return hypotheses and references of a batch, in its order."""
        pad = self.dictionaries[target_of(pair)].pad()
        # the generator is of the pair; stock encoders take no argument of this name
        inputs = {name: value for name, value in sample["net_input"].items() if name != "pair"}
        lists = self.generators[pair].generate(None, {**sample, "net_input": inputs})
        hypotheses = [nbest[0]["tokens"] for nbest in lists]  # the best of each beam (T,)
        references = [utils.strip_pad(target, pad) for target in sample["target"]]  # (T,) each
        # an unknown word must not be scored as a match
        return (
            [self._line(pair, tokens, "UNKNOWNINHYPOTHESIS") for tokens in hypotheses],
            [self._line(pair, tokens, UNKNOWN) for tokens in references],
        )

    def _line(self, pair: str, tokens: Tensor, unknown: str) -> str:
        """Return tokens (T,) as the text that is scored."""
        dictionary = self.dictionaries[target_of(pair)]
        line = dictionary.string(tokens.int().cpu(), self.joined_by(pair), unk_string=unknown)
        return self.detokenize(pair, line)

    def joined_by(self, pair: str) -> Optional[str]:
        """Return how the sub-words of a pair's targets are joined: --eval-bleu-remove-bpe."""
        value: Optional[str] = self.cfg.eval_bleu_remove_bpe
        return value

    def detokenize(self, pair: str, line: str) -> str:
        """Return a target line of the pair as it is scored."""
        tokenizer = self.tokenizers[target_of(pair)]
        return tokenizer.decode(line) if tokenizer else line

    def sums(self, pair: str, hypotheses: List[str], references: List[str]) -> Dict[str, int]:
        """Return the n-gram counts and lengths that the corpus score of the lines is made of."""
        # --eval-tokenized-bleu: the tokens of the data are the
        # words, sacrebleu must not split them again
        tokenize = {"tokenize": "none"} if self.cfg.eval_tokenized_bleu else {}
        return bleu_sums(sacrebleu.corpus_bleu(hypotheses, [references], **tokenize))
