"""Training and translation beside other toolkits: processor time per target token in one run.

    pip install joeynmt transformers
    python benchmarks/peers.py

Transformers of the same sizes, with one matrix for all embeddings, and the same batches: stock
fairseq, this suite's dual model (both directions), Joey NMT and the Marian model of Hugging Face's
transformers. fairseq's are trained by its Trainer, the others by their own model, loss and
torch.optim.Adam; label smoothing is 0.1 in all. Translation is each toolkit's own beam search, of
as many words for all. The programs take turns; each figure is the median over the turns, in time of
the processor. Writes OUTPUT.json and OUTPUT.md.
"""

import abc
import statistics
import tempfile
import time
from argparse import Namespace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Optional, Protocol, Sequence, Tuple

import torch
from speed import cli, families, passes
from speed.corpus import write_corpus
from speed.harness import Clock, Figures, in_turns
from speed.systems import System, SystemTranslator, prepare, samples
from torch import Tensor
from torch.nn import functional as F

from fairseq_ext.tools import UsageError

COLUMNS = ("tokens/s", "ratio", "sentences/s", "ratio in translation")
STOCK, SUITE, JOEY, MARIAN = "stock fairseq", "this suite, dual", "Joey NMT", "Marian, transformers"
SMOOTHING, DROPOUT, BETAS = 0.1, 0.2, (0.9, 0.999)
BEGIN, PAD, END = 0, 1, 2  # of fairseq's dictionaries


class Program(Protocol):
    """A toolkit with its model."""

    def train(self) -> int:
        """Do the updates of a turn; return their target tokens."""

    def translate(self) -> int:
        """Translate the sentences of a turn; return their number."""


class Fairseq:
    """The models of a row of ``speed.families``, by fairseq's Trainer and generator."""

    def __init__(self, row: families.Row, data: Path, folder: Path, args: Namespace):
        folder.mkdir()
        self.system = System(data, row.models[0], args)
        self.translator = SystemTranslator(
            self.system, row.task, args.beam, args.sentences, folder, args
        )

    def train(self) -> int:
        """Do the updates of a turn."""
        return self.system.seconds()[1]

    def translate(self) -> int:
        """Translate the sentences of a turn."""
        self.translator.translate()
        return self.translator.sentences


class Other(abc.ABC):
    """A model of another toolkit on the batches of stock fairseq, in its own layout.

    Args:
        stock: which has the batches.
        args: beam, length and the models' sizes.
    """

    model: Any

    def __init__(self, stock: Fairseq, args: Namespace):
        self.args = args
        self.pairs = [
            (left_aligned(part["net_input"]["src_tokens"]), part["target"])
            for batch in stock.system.batches()
            for part in samples(batch)
        ]
        self.sources = [
            left_aligned(batch["net_input"]["src_tokens"]) for batch in stock.translator.batches
        ]

    def _start(self, model: Any) -> None:
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=0.0005, betas=BETAS)

    @abc.abstractmethod
    def loss(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the loss of a batch per target token; (B, S) and (B, T), padded on the right."""

    @abc.abstractmethod
    def search(self, source: Tensor) -> Tensor:
        """Return hypotheses (B, ..) of sources (B, S)."""

    def train(self) -> int:
        """Do the updates of a turn."""
        self.model.train()
        for source, target in self.pairs:
            self.loss(source, target).backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        return sum(int(target.ne(PAD).sum()) for _, target in self.pairs)

    def translate(self) -> int:
        """Translate the sentences of a turn. RuntimeError for hypotheses that are too short."""
        self.model.eval()
        with torch.no_grad():
            for source in self.sources:
                words = self.search(source)[:, -self.args.length :]
                if words.size(1) < self.args.length:
                    raise RuntimeError(f"{type(self).__name__}: {words.size(1)} words")
        return sum(map(len, self.sources))


def left_aligned(tokens: Tensor) -> Tensor:
    """Return tokens (B, S) with the padding of every row moved to its end."""
    order = tokens.eq(PAD).long().argsort(dim=1, stable=True)
    return tokens.gather(1, order)


class Joey(Other):
    """Joey NMT's Transformer, its loss and its beam search."""

    end = 3  # its number of fairseq's END, 2, which is its begin

    def __init__(self, stock: Fairseq, args: Namespace):
        super().__init__(stock, args)
        from joeynmt.model import build_model
        from joeynmt.vocabulary import Vocabulary

        side = {
            "type": "transformer",
            "num_layers": args.layers,
            "num_heads": args.heads,
            "embeddings": {"embedding_dim": args.embed_dim, "scale": True},
            "hidden_size": args.embed_dim,
            "ff_size": args.ffn_embed_dim,
            "dropout": DROPOUT,
        }
        symbols: Dict[str, Any] = {"unk_token": "<unk>", "pad_token": "<pad>"}
        symbols.update(bos_token="<s>", eos_token="</s>", sep_token=None, lang_tags=[])
        # in its order; fairseq's words have the same numbers, four and more
        numbers = {"unk_id": 0, "pad_id": PAD, "bos_id": 2, "eos_id": self.end}
        words = [f"w{number}" for number in range(args.vocab - 4)]
        ordered = Vocabulary(words, SimpleNamespace(**symbols, **numbers))
        shape = {"encoder": side, "decoder": side, "tied_embeddings": True, "tied_softmax": True}
        model = build_model({**shape, "initializer": "xavier_uniform"}, ordered, ordered)
        model.loss_function = ("crossentropy", SMOOTHING)
        self._start(model)

    def _renumbered(self, tokens: Tensor) -> Tensor:
        return tokens.masked_fill(tokens.eq(END), self.end)

    def loss(self, source: Tensor, target: Tensor) -> Tensor:
        """As its TrainManager, with normalization "tokens"."""
        from joeynmt.batch import Batch

        source = self._renumbered(source)
        target = torch.cat([target.new_full((len(target), 1), 2), self._renumbered(target)], 1)
        lengths, numbers = source.ne(PAD).sum(1), torch.arange(len(source))
        batch = Batch(
            source, lengths, None, target, None, numbers, torch.device("cpu"), PAD, self.end
        )
        total, *_ = self.model(return_type="loss", **vars(batch))
        return batch.normalize(total, "tokens")

    def search(self, source: Tensor) -> Tensor:
        """As its ``search``, with the beam of ``args``."""
        from joeynmt.search import beam_search

        source = self._renumbered(source)
        mask = source.ne(PAD).unsqueeze(1)
        lengths = source.ne(PAD).sum(1)
        encoded, hidden, *_ = self.model(
            return_type="encode", src=source, src_length=lengths, src_mask=mask
        )
        length = self.args.length
        words, *_ = beam_search(
            model=self.model, beam_size=self.args.beam, encoder_output=encoded,
            encoder_hidden=hidden, src_mask=mask, max_output_length=length, alpha=1.0,
            min_output_length=length,
        )  # fmt: skip
        return torch.as_tensor(words)


class Marian(Other):
    """The Marian model of Hugging Face's transformers, and its ``generate``."""

    def __init__(self, stock: Fairseq, args: Namespace):
        super().__init__(stock, args)
        from transformers import MarianConfig, MarianMTModel

        sides = {}
        for side in ("encoder", "decoder"):
            sides[f"{side}_layers"] = args.layers
            sides[f"{side}_attention_heads"] = args.heads
            sides[f"{side}_ffn_dim"] = args.ffn_embed_dim
        config = MarianConfig(
            vocab_size=args.vocab, d_model=args.embed_dim, **sides, dropout=DROPOUT,
            activation_function="relu", scale_embedding=True, bos_token_id=BEGIN, pad_token_id=PAD,
            eos_token_id=END, decoder_start_token_id=END, forced_eos_token_id=None,
        )  # fmt: skip
        self._start(MarianMTModel(config))

    def loss(self, source: Tensor, target: Tensor) -> Tensor:
        """Cross entropy with label smoothing of its logits, as transformers' Trainer has it."""
        before = torch.cat([target.new_full((len(target), 1), END), target[:, :-1]], 1)
        logits = self.model(
            input_ids=source, attention_mask=source.ne(PAD), decoder_input_ids=before
        ).logits
        return F.cross_entropy(
            logits.flatten(0, 1), target.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING
        )

    def search(self, source: Tensor) -> Tensor:
        """Beam search with its cache of keys and values."""
        length = self.args.length
        return self.model.generate(
            input_ids=source, attention_mask=source.ne(PAD), num_beams=self.args.beam,
            do_sample=False, min_new_tokens=length, max_new_tokens=length,
        )  # fmt: skip


def processor_time(work: Callable[[], int]) -> Tuple[float, int]:
    """Return (seconds of the processor, what ``work`` returns)."""
    start = time.process_time()
    number = work()
    return time.process_time() - start, number


def programs(data: Path, folder: Path, args: Namespace) -> Dict[str, Program]:
    """Return {name: program}. Raises UsageError naming what is not installed."""
    stock_row, dual_row = families.rows("dual", args)
    stock = Fairseq(stock_row, data, folder / "stock", args)
    try:
        others = {JOEY: Joey(stock, args), MARIAN: Marian(stock, args)}
    except ImportError as error:
        raise UsageError(f"pip install joeynmt transformers ({error})") from error
    return {STOCK: stock, SUITE: Fairseq(dual_row, data, folder / "dual", args), **others}


def measure(data: Path, folder: Path, args: Namespace) -> Dict[str, Figures]:
    """Return {program: figures}."""
    members, say = programs(data, folder, args), Clock()
    trained = in_turns(members, lambda m: processor_time(m.train), args.repeats, say)
    searched = in_turns(members, lambda m: processor_time(m.translate), args.repeats, say)
    tokens = {name: 1 / statistics.median(turns) for name, turns in trained.items()}
    sentences = {name: 1 / statistics.median(turns) for name, turns in searched.items()}
    return {
        name: {
            "tokens/s": tokens[name],
            "ratio": tokens[name] / tokens[STOCK],
            "sentences/s": sentences[name],
            "ratio in translation": sentences[name] / sentences[STOCK],
            "turns": [trained[name], searched[name]],
        }
        for name in members
    }


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Measure and report."""
    parser = cli.make_parser(__doc__)
    cli.add_output(parser, "peers")
    recurrent = "hidden", "context"  # sizes of models that are not here
    sizes = {name: size for name, size in cli.SIZES.items() if name not in recurrent}
    sizes.update(beam=5, sentences=64)
    cli.add_numbers(parser, train_sentences=4000, **sizes)
    cli.add_threads(parser)
    cli.add_flags(parser)
    args = parser.parse_args(arguments)
    args.hidden = args.embed_dim
    cli.check_models(args)
    cli.check_corpus(args)
    args.device, args.precision = "cpu", "fp32"
    prepare(args.precision, args.threads)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        valid = 3 * args.sentences
        data = write_corpus(folder, args.train_sentences, args.vocab, args.length, valid=valid)
        results = measure(data, folder, args)
    versions: List[str] = [f"{name} {version(name)}" for name in ("joeynmt", "transformers")]
    sizes_text = f"{', '.join(versions)}; beam {args.beam}, {args.sentences} sentences at a time"
    passes.report(args, results, COLUMNS, sizes_text, what="program")


if __name__ == "__main__":
    cli.run_script(main)
