"""Multi-way translation's task: one pair after the other; several sources at inference."""

from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple, Union

import torch
from fairseq.criterions import FairseqCriterion
from fairseq.data import ConcatSentencesDataset, Dictionary, LanguagePairDataset
from fairseq.dataclass import ChoiceEnum
from fairseq.models import BaseFairseqModel
from fairseq.tasks import register_task
from torch import Tensor

from ..compat.generation.joined_texts import source_in_pieces
from ..streams.config import StreamsConfig
from ..streams.language_pair import LanguagePair, sides, target_of
from ..streams.task import StreamsTask

SEPARATOR = "|||"


@dataclass
class MultiwayTranslationConfig(StreamsConfig):
    """Options of ``multiway_translation``: those of several pairs, and of several sources."""

    source_average: ChoiceEnum(["early", "late"]) = field(
        default="early",
        metadata={
            "help": "with several sources (-s de+fr): early averages their contexts and initial "
            "states, late averages the distributions of one decoder run for each source (Firat et "
            "al. 2016b)"
        },
    )


class JointDictionary:
    """The dictionaries of several sources that stand one after the other in a line.

    Symbols that all dictionaries share (padding, end of sentence) are asked of the first.
    """

    def __init__(self, dictionaries: List[Dictionary]):
        self.dictionaries = dictionaries

    def __getattr__(self, name: str) -> Any:
        if name == "dictionaries":  # of a copy, as spawned workers get it: it has no attributes yet
            raise AttributeError(name)
        return getattr(self.dictionaries[0], name)

    def __len__(self) -> int:
        return len(self.dictionaries[0])

    def string(self, tokens: Union[Tensor, Iterable[int]], *args: Any, **options: Any) -> str:
        """Return the sources as text, "|||" between them."""
        if isinstance(tokens, Tensor) and tokens.dim() == 2:
            return "\n".join(self.string(row, *args, **options) for row in tokens)
        # sources are told apart by their end symbols
        parts: List[List[int]] = []
        part: List[int] = []
        for token in torch.as_tensor(tokens).tolist():
            part.append(token)
            if token == self.eos():
                parts.append(part)
                part = []
        texts = [
            dictionary.string(torch.tensor(sentence), *args, **options)
            for dictionary, sentence in zip(self.dictionaries, parts + [part] * bool(part))
        ]
        return f" {SEPARATOR} ".join(texts)


class JoinedSources(ConcatSentencesDataset):
    """Sources that stand one after the other; also their texts, as --replace-unk reads them."""

    def get_original_text(self, index: int) -> str:
        """Return the texts of line ``index``, one after the other."""
        text = " ".join(dataset.get_original_text(index) for dataset in self.datasets)
        source_in_pieces.set(text)  # after those of each source
        return text


@register_task("multiway_translation", dataclass=MultiwayTranslationConfig)
class MultiwayTranslationTask(StreamsTask):
    """Trains --lang-pairs; any encoder with any decoder at inference, also several at once."""

    cfg: MultiwayTranslationConfig

    @classmethod
    def training_pairs(  # type: ignore[override]  # its own options
        cls, cfg: MultiwayTranslationConfig, requested: Optional[LanguagePair]
    ) -> List[str]:
        """Return the pairs of the options; those of -s de+fr -t en are de-en and fr-en."""
        if cfg.lang_pairs or requested is None:
            return super().training_pairs(cfg, requested)
        return [f"{source}-{requested.target}" for source in requested.sources]

    def can_translate(self, pair: str) -> bool:
        """True if the sources have encoders and the target a decoder, trained together or not."""
        parsed = LanguagePair.parse(pair)
        sources, target = parsed.sources, parsed.target
        encoders, decoders = sides(self.pairs)
        # a language is not its own target, and no source stands twice
        different = len({*sources, target}) == len(sources) + 1
        return different and set(sources) <= set(encoders) and target in decoders

    @property
    def source_dictionary(self) -> Union[Dictionary, JointDictionary]:
        """Return the dictionary of the source, or of all sources of -s de+fr."""
        # fairseq-generate asks before there is a model
        sources = self.requested.sources if self.requested else ()
        if len(sources) > 1:
            return JointDictionary([self.dictionaries[lang] for lang in sources])
        return super().source_dictionary

    @property
    def _sources(self) -> Tuple[str, ...]:
        """Return the source languages of the chosen direction; none where none is chosen."""
        return LanguagePair.parse(self.pair).sources if self.pair else ()

    def build_generator(self, models: List[BaseFairseqModel], args: Any, **options: Any) -> Any:
        """Return the search; ValueError for --match-source-len with several sources."""
        if len(self._sources) > 1 and getattr(args, "match_source_len", False):
            raise ValueError(
                f"--match-source-len with -s {'+'.join(self._sources)}: several "
                "sources have several lengths; allowed with one source"
            )
        return super().build_generator(models, args, **options)

    def build_criterion(self, cfg: Any) -> FairseqCriterion:
        """Return the criterion; ValueError for --source-average late, of which it has no loss."""
        if self._averages_late():
            raise ValueError(
                "--source-average late: the loss of several sources is that of the early average; "
                "allowed: early; fairseq-generate --score-reference scores with late"
            )
        return super().build_criterion(cfg)

    def _averages_late(self) -> bool:
        """Return whether a direction of several sources was asked for, with the late average."""
        return len(self._sources) > 1 and str(self.cfg.source_average) == "late"

    def _directions(self, models: Sequence[Any]) -> List[Any]:
        """Return the directions that the search runs; several of a model that averages late."""
        # late averaging is fairseq's ensemble: each direction is a member with its own beam state
        if self._averages_late():
            return [
                direction
                for model in models
                for direction in model.directions(self.pair, self._need_attention)
            ]
        return super()._directions(models)

    def _load_pair(self, path: str, split: str, pair: str, combine: bool) -> LanguagePairDataset:
        """Return the data set of a pair; of "de+fr-en" with both sources in every line."""
        parsed = LanguagePair.parse(pair)
        if len(parsed.sources) == 1:
            return super()._load_pair(path, split, pair, combine)
        pairs = [f"{source}-{parsed.target}" for source in parsed.sources]
        # without arguments, super() does not work inside of a comprehension
        load = super()._load_pair
        parts = [load(path, split, single, combine) for single in pairs]
        # line N of each pair must be the same target sentence
        _check_aligned(path, split, pairs, parts)
        for single, part in zip(pairs, parts):
            for line in range(len(part)):
                place = f"{path}: line {line + 1} of {split} in {single}"
                _check_one_end(place, part.src[line], part.src_dict)
        # one row for all sources; ``select_source`` takes it apart in the model
        # a row is as long as all of its sources, which --max-tokens counts
        joined = JoinedSources(*(part.src for part in parts))
        first = parts[0]
        return LanguagePairDataset(
            joined,
            joined.sizes,
            self.source_dictionary,
            first.tgt,
            first.tgt_sizes,
            first.tgt_dict,
            left_pad_source=first.left_pad_source,
            left_pad_target=first.left_pad_target,
            shuffle=first.shuffle,
        )

    def get_interactive_tokens_and_lengths(
        self, lines: List[str], encode_fn: Callable[[str], str]
    ) -> Tuple[List[Tensor], List[int]]:
        """Return the tokens of lines and their numbers; "|||" stands between several sources."""
        langs = self._sources
        if len(langs) < 2:
            return super().get_interactive_tokens_and_lengths(lines, encode_fn)
        tokens = []
        for line in lines:
            texts = [text.strip() for text in line.split(SEPARATOR)]
            if len(texts) != len(langs):  # an empty one is read, as in binarised data
                raise ValueError(
                    f"-s {'+'.join(langs)}: {line!r} must hold {len(langs)} texts with "
                    f"{SEPARATOR} between them"
                )
            encoded = [
                self.dictionaries[lang].encode_line(
                    self.subwords.encode(lang, text, encode_fn), add_if_not_exist=False
                )
                for lang, text in zip(langs, texts)
            ]
            for lang, part in zip(langs, encoded):
                _check_one_end(f"{line!r}, {lang}", part, self.dictionaries[lang])
            # each source ends with its end symbol: ``select_source`` counts them
            tokens.append(torch.cat(encoded).long())
        return tokens, [sentence.numel() for sentence in tokens]


def _check_one_end(place: str, tokens: Tensor, dictionary: Dictionary) -> None:
    """Raise ValueError unless the sentence ends, and only ends, with the end symbol."""
    ends = tokens.eq(dictionary.eos()).nonzero().flatten().tolist()
    if ends != [len(tokens) - 1]:
        raise ValueError(
            f"{place}: holds {dictionary.eos_word!r} inside the sentence or not at its end; "
            "several sources are told apart by it"
        )


def _check_aligned(
    path: str, split: str, pairs: List[str], parts: List[LanguagePairDataset]
) -> None:
    """Raise ValueError unless the parts have the same target sentences in the same order."""
    for pair, part in zip(pairs, parts):
        if part.tgt is None:
            target = target_of(pair)
            raise ValueError(
                f"{path}: {split} of {pair} has no sentences of {target}, by which several sources "
                "are seen to be aligned: binarise them as well, or give the sources to "
                f"fairseq-interactive, {SEPARATOR} between them"
            )
    for pair, part in zip(pairs[1:], parts[1:]):
        if len(part) != len(parts[0]):
            raise ValueError(
                f"{path}: {split} of {pairs[0]} has {len(parts[0])} lines, of {pair} {len(part)}; "
                "several sources must be aligned line by line"
            )
        for line in range(len(part)):
            if not torch.equal(part.tgt[line], parts[0].tgt[line]):
                raise ValueError(
                    f"{path}: line {line + 1} of {split} has different targets in {pairs[0]} and "
                    f"{pair}; several sources must be aligned line by line"
                )
