"""One of fairseq's transformers for all directions; the source says what to translate into.

A baseline of the dual model, after Johnson et al. (2017), "Google's Multilingual Neural Machine
Translation System: Enabling Zero-Shot Translation": a vector of the target language stands in the
source, and everything else is one model. Here it stands in place of the vector of the end symbol,
so that a source is as long as without it:

    (e(x_1), .., e(x_S), v_Y) -> encoder -> decoder, for a direction X -> Y

Dimensions: B sentences, S source positions, T target positions, D units, V vocabulary.
"""

from argparse import ArgumentParser, Namespace
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, register_model
from fairseq.models.transformer import TransformerEncoder, TransformerModel
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from ...common.joined_dictionary import check_joined
from ...streams.language_pair import LanguagePair, languages, sides, target_of
from ...streams.model import StreamsModel
from ..stock_transformer import build_transformer, register_sizes
from ..transformer.roles import check_trained


class TaggedEncoder(FairseqEncoder):
    """The encoder of sources that end with the vector of a target language.

    Args:
        encoder: fairseq's, of all languages.
        tag: the vector (D,) of the target language.
    """

    def __init__(self, encoder: TransformerEncoder, tag: nn.Parameter):
        super().__init__(encoder.dictionary)
        self.encoder, self.tag = encoder, tag

    def forward(
        self, src_tokens: Tensor, src_lengths: Optional[Tensor] = None, **_unused: Any
    ) -> Dict[str, List[Tensor]]:
        """Return what the decoder reads of the sources (B, S)."""
        vectors = self.encoder.embed_tokens(src_tokens)
        ends = (src_tokens == self.dictionary.eos()).unsqueeze(-1)
        vectors = torch.where(ends, self.tag, vectors)
        encoded: Dict[str, List[Tensor]] = self.encoder(
            src_tokens, src_lengths, token_embeddings=vectors
        )
        return encoded

    def reorder_encoder_out(
        self, encoder_out: Dict[str, List[Tensor]], new_order: Tensor
    ) -> Dict[str, List[Tensor]]:
        """Return the sources of the rows ``new_order``."""
        rows: Dict[str, List[Tensor]] = self.encoder.reorder_encoder_out(encoder_out, new_order)
        return rows

    def max_positions(self) -> int:
        """Return the longest source in tokens."""
        return int(self.encoder.max_positions())


@register_model("tagged_transformer")
class TaggedTransformerModel(StreamsModel):
    """A transformer and a vector for every target language.

    Args:
        transformer: fairseq's, of all directions.
        dictionaries: {lang: dictionary}, which are equal.
        pairs: the directions it is trained for, e.g. ["de-en", "en-de"].
        max_positions: (source, target) limits in tokens.
    """

    def __init__(
        self,
        transformer: TransformerModel,
        dictionaries: Dict[str, Dictionary],
        pairs: Sequence[str],
        max_positions: Tuple[int, int],
    ):
        super().__init__(dictionaries, list(pairs), max_positions)
        self.transformer = transformer
        units = transformer.encoder.embed_tokens.embedding_dim
        # drawn as fairseq's embeddings of words
        self.tags = nn.ParameterDict(
            {lang: nn.Parameter(torch.randn(units) * units**-0.5) for lang in sides(pairs)[1]}
        )

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        """Add the options of fairseq's transformer."""
        TransformerModel.add_args(parser)

    @classmethod
    def build_model(cls, args: Namespace, task: FairseqTask) -> "TaggedTransformerModel":
        """Return the model; ValueError for languages with dictionaries of their own."""
        dictionaries = {lang: task.dictionaries[lang] for lang in languages(task.pairs)}
        check_joined(dictionaries, "--arch tagged_transformer")
        words = next(iter(dictionaries.values()))
        transformer = build_transformer(args, words, words)
        limits = (args.max_source_positions, args.max_target_positions)
        return cls(transformer, dictionaries, task.pairs, limits)

    def _encoder(self, target: str) -> TaggedEncoder:
        """Return the encoder of sources that are translated into ``target``."""
        return TaggedEncoder(self.transformer.encoder, self.tags[target])

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        pair: Optional[str] = None,
        **_unused: Any,
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Return teacher-forced logits (B, T, V) of the direction ``pair`` (default: the first)."""
        encoder = self._encoder(LanguagePair.parse(pair or self.pairs[0]).target)
        output: Tuple[Tensor, Dict[str, Any]] = self.transformer.decoder(
            prev_output_tokens, encoder_out=encoder(src_tokens, src_lengths)
        )
        return output

    def direction(self, pair: str, need_attention: bool = False) -> FairseqEncoderDecoderModel:
        """Return an encoder-decoder model of one direction, which shares this model's parameters.

        ValueError for a language that no pair was trained to read, or to write.
        """
        check_trained(pair, self.pairs)
        encoder = self._encoder(target_of(pair))
        direction = FairseqEncoderDecoderModel(encoder, self.transformer.decoder)
        return direction.train(self.training)

    def pair_parameters(self, pair: str) -> List[str]:
        """Return the names of the parameters that training on ``pair`` moves.

        All but the tags of other languages.
        """
        tag = f"tags.{target_of(pair)}"
        names = [name for name, _ in self.named_parameters()]
        return [name for name in names if name == tag or not name.startswith("tags.")]


register_sizes("tagged_transformer")
