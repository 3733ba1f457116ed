"""Multi-way translation's task: one pair after the other; several sources at inference."""

from dataclasses import dataclass, field
from typing import List

import torch
from fairseq.data import ConcatSentencesDataset, Dictionary, LanguagePairDataset
from fairseq.dataclass import ChoiceEnum
from fairseq.tasks import register_task

from ..streams.config import StreamsConfig
from ..streams.task import StreamsTask

SEPARATOR = "|||"


@dataclass
class MultiwayTranslationConfig(StreamsConfig):
    source_average: ChoiceEnum(["early", "late"]) = field(
        default="early",
        metadata={
            "help": "with several sources (-s de+fr): average their contexts and initial states "
            "(early) or the distributions of one decoder run for each (late; Firat et al. 2016b)"
        },
    )


class JointDictionary:
    """The dictionaries of several sources that stand one after the other in a line.

    Symbols that all dictionaries share (padding, end of sentence) are asked of the first.
    """

    def __init__(self, dictionaries: List[Dictionary]):
        self.dictionaries = dictionaries

    def __getattr__(self, name):
        return getattr(self.dictionaries[0], name)

    def __len__(self):
        return len(self.dictionaries[0])

    def string(self, tokens, *args, **options) -> str:
        """The sources as text, "|||" between them."""
        if torch.is_tensor(tokens) and tokens.dim() == 2:
            return "\n".join(self.string(row, *args, **options) for row in tokens)
        parts, part = [], []
        for token in torch.as_tensor(tokens).tolist():
            part.append(token)
            if token == self.eos():
                parts.append(part)
                part = []
        texts = [
            dictionary.string(torch.tensor(part), *args, **options)
            for dictionary, part in zip(self.dictionaries, parts + [part] * bool(part))
        ]
        return f" {SEPARATOR} ".join(texts)


@register_task("multiway_translation", dataclass=MultiwayTranslationConfig)
class MultiwayTranslationTask(StreamsTask):
    """Trains --lang-pairs; any encoder with any decoder at inference, also several at once."""

    cfg: MultiwayTranslationConfig

    @classmethod
    def training_pairs(cls, cfg: MultiwayTranslationConfig) -> List[str]:
        if cfg.lang_pairs or "+" not in cfg.source_lang:
            return super().training_pairs(cfg)
        return [f"{source}-{cfg.target_lang}" for source in cfg.source_lang.split("+")]

    def can_translate(self, pair: str) -> bool:
        """Any encoder with any decoder, trained together or not."""
        sources, target = pair.split("-")
        sources = sources.split("+")
        encoders = {known.split("-")[0] for known in self.pairs}
        decoders = {known.split("-")[1] for known in self.pairs}
        different = len({*sources, target}) == len(sources) + 1
        return different and set(sources) <= encoders and target in decoders

    @property
    def source_dictionary(self):
        if self.pair and "+" in self.pair:
            return JointDictionary([self.dictionaries[lang] for lang in self._sources()])
        return super().source_dictionary

    def _sources(self) -> List[str]:
        return self.pair.split("-")[0].split("+")

    def _directions(self, models):
        if self.pair and "+" in self.pair and str(self.cfg.source_average) == "late":
            found = [model.directions(self.pair, self._need_attention) for model in models]
            return [direction for one in found for direction in one]
        return super()._directions(models)

    def _load_pair(self, path: str, split: str, pair: str, combine: bool):
        sources, target = pair.split("-")
        if "+" not in sources:
            return super()._load_pair(path, split, pair, combine)
        pairs = [f"{source}-{target}" for source in sources.split("+")]
        parts = [super(MultiwayTranslationTask, self)._load_pair(path, split, one, combine)
                 for one in pairs]  # fmt: skip
        _check_aligned(path, split, pairs, parts)
        for one, part in zip(pairs, parts):
            for line in range(len(part)):
                place = f"{path}: line {line + 1} of {split} in {one}"
                _check_one_end(place, part.src[line], part.src_dict)
        joined = ConcatSentencesDataset(*(part.src for part in parts))
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

    def get_interactive_tokens_and_lengths(self, lines, encode_fn):
        """Of several sources each line holds one text each, "|||" between them."""
        if not (self.pair and "+" in self.pair):
            return super().get_interactive_tokens_and_lengths(lines, encode_fn)
        langs = self._sources()
        tokens = []
        for number, line in enumerate(lines, start=1):
            texts = [text.strip() for text in line.split(SEPARATOR)]
            if len(texts) != len(langs) or not all(texts):
                raise ValueError(
                    f"-s {self.cfg.source_lang}: line {number} of the input, {line!r}, must hold "
                    f"{len(langs)} texts with {SEPARATOR} between them"
                )
            encoded = [
                self.dictionaries[lang].encode_line(encode_fn(text), add_if_not_exist=False)
                for lang, text in zip(langs, texts)
            ]
            for lang, part in zip(langs, encoded):
                _check_one_end(f"line {number} of the input, {lang}", part, self.dictionaries[lang])
            tokens.append(torch.cat(encoded).long())
        return tokens, [one.numel() for one in tokens]


def _check_one_end(place: str, tokens: torch.Tensor, dictionary: Dictionary) -> None:
    """Raise ValueError unless the sentence ends, and only ends, with the end symbol."""
    ends = tokens.eq(dictionary.eos()).nonzero().flatten().tolist()
    if ends != [len(tokens) - 1]:
        raise ValueError(
            f"{place}: holds {dictionary.eos_word!r} inside the sentence or not at its end; "
            "several sources are told apart by it"
        )


def _check_aligned(path: str, split: str, pairs: List[str], parts) -> None:
    """Raise ValueError unless the parts have the same target sentences in the same order."""
    for pair, part in zip(pairs[1:], parts[1:]):
        if len(part) != len(parts[0]):
            raise ValueError(
                f"{path}: {split} of {pairs[0]} has {len(parts[0])} lines, of {pair} {len(part)}; "
                "several sources must be aligned line by line"
            )
        if part.tgt is None:
            continue
        for line in range(len(part)):
            if not torch.equal(part.tgt[line], parts[0].tgt[line]):
                raise ValueError(
                    f"{path}: line {line + 1} of {split} has different targets in {pairs[0]} and "
                    f"{pair}; several sources must be aligned line by line"
                )
