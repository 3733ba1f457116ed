"""A model for each direction, trained in one run; the directions share nothing.

Dual supervised learning trains them, and they are its baseline:

- ``dual_supervised_transformer``: two of fairseq's ``transformer`` with its options, parameters and
  functions;
- ``dual_supervised_lstm_classifier``: the classifier and the conditional language model that
  ``dual_lstm_classifier`` is with --one-way.
"""

from argparse import ArgumentParser, Namespace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel, register_model
from fairseq.models.transformer import TransformerModel
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from ...streams.language_pair import LanguagePair, sides
from ...streams.model import StreamsModel
from ..lstm_classifier.config import DualLSTMConfig, register_architectures
from ..lstm_classifier.model import DualLSTMClassifierModel
from ..reverse_models import model_of_direction
from ..stock_transformer import build_transformer, register_sizes


class SeparateModels(StreamsModel):
    """A model for each direction.

    Args:
        models: {pair: model}.
        dictionaries: {lang: dictionary}.
        max_positions: (source, target) limits in tokens.
    """

    def __init__(
        self,
        models: Mapping[str, BaseFairseqModel],
        dictionaries: Dict[str, Dictionary],
        max_positions: Tuple[int, int],
    ):
        super().__init__(dictionaries, list(models), max_positions)
        self.models = nn.ModuleDict(dict(models))

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        pair: Optional[str] = None,
        **_unused: Any,
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Return teacher-forced logits (B, T, V) of the direction ``pair`` (default: the first)."""
        # a pair without a model of its own is an error here, not a direction made of others
        return self.models[pair or self.pairs[0]](src_tokens, src_lengths, prev_output_tokens)

    def direction(self, pair: str, need_attention: bool = False) -> BaseFairseqModel:
        """Return the encoder-decoder model of one direction; ValueError if it is not trained."""
        if pair not in self.models:
            raise ValueError(f"direction {pair!r}: the model has {', '.join(self.models)}")
        return model_of_direction(self.models[pair], pair)

    def pair_parameters(self, pair: str) -> List[str]:
        """Return the names of the parameters that training on ``pair`` moves."""
        parameters = self.models[pair].named_parameters()
        # without b_hh of the LSTMs, which stays zero
        return [f"models.{pair}.{name}" for name, value in parameters if value.requires_grad]


@register_model("dual_supervised_transformer")
class DualSupervisedTransformerModel(SeparateModels):
    """A stock transformer for each direction."""

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        """Add the options of fairseq's transformer."""
        TransformerModel.add_args(parser)

    @classmethod
    def build_model(cls, args: Namespace, task: FairseqTask) -> "DualSupervisedTransformerModel":
        """Return a transformer for each lang pair.

        Raises ValueError for ``--adaptive-softmax-cutoff``, which gives no logits, and for a file
        of embeddings that would be read for several languages.
        """
        check_embedding_files(args, task.pairs)
        models: Dict[str, BaseFairseqModel] = {}
        dictionaries: Dict[str, Dictionary] = {}
        for pair in task.pairs:
            source, target = (task.dictionaries[lang] for lang in LanguagePair.parse(pair))
            models[pair] = build_transformer(args, source, target)
            # a language that is in several pairs has one dictionary
            dictionaries.update(zip(LanguagePair.parse(pair), (source, target)))
        return cls(models, dictionaries, (args.max_source_positions, args.max_target_positions))


def check_embedding_files(args: Namespace, pairs: Sequence[str]) -> None:
    """Raise ValueError for a file of one language's vectors that several languages would read.

    With --share-all-embeddings all of them have one matrix, and the file the vectors of all words.
    """
    if getattr(args, "share_all_embeddings", False):
        return  # fairseq asks for the same dictionary and file on both sides
    for side, langs in zip(("encoder", "decoder"), sides(pairs)):
        path = getattr(args, f"{side}_embed_path", None)
        if path and len(langs) > 1:
            raise ValueError(
                f"--{side}-embed-path {path}: the {side}s are of {', '.join(langs)}, one file is "
                "of one language; allowed: leave it out, --one-way, or --share-all-embeddings"
            )


@register_model("dual_supervised_lstm_classifier", dataclass=DualLSTMConfig)
class DualSupervisedLSTMClassifierModel(SeparateModels):
    """A classifier and a conditional language model, each with an LSTM and an E_y of its own."""

    @classmethod
    def build_model(
        cls, cfg: DualLSTMConfig, task: FairseqTask
    ) -> "DualSupervisedLSTMClassifierModel":
        """Return the two models; ValueError as for ``dual_lstm_classifier``."""
        # each of one pair alone: nothing is shared, also not E_y
        models = {pair: DualLSTMClassifierModel.of_pairs([pair], cfg, task) for pair in task.pairs}
        first = next(iter(models.values()))
        return cls(models, first.dictionaries, first.max_positions())

    @property
    def label_lang(self) -> str:
        """Return the side of the labels."""
        return str(self.models[self.pairs[0]].label_lang)


register_sizes("dual_supervised_transformer")
register_architectures("dual_supervised_lstm_classifier")
