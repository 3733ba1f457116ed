"""A system in training and in translation, through fairseq's own Trainer and tasks."""

import logging
import os
import resource
import shlex
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import numpy as np
import torch
from fairseq import options, tasks, utils
from fairseq.data import data_utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.trainer import Trainer

from . import limits
from .corpus import LANGS
from .families import Row
from .products import Products, synchronise
from .translation import Batch, TrainedModel, spaced

CLEAR_REFS = "/proc/self/clear_refs"
# sentences of a turn of translation: one at a time takes longer
TRANSLATED = {1: 8}


def prepare(precision: str, threads: int) -> None:
    """Set the number of threads and how products are computed; silence fairseq's log."""
    logging.disable(logging.INFO)
    torch.set_num_threads(threads)
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"


def common_flags(args: Namespace) -> str:
    """Return the options of all trainings. Batching is included in the timing."""
    flags = "--lr 0.0005 --lr-scheduler fixed --seed 1 --no-save --num-workers 0"
    flags += f" --max-tokens {args.max_tokens} {device_flags(args)}"
    return f"{flags} {args.flags}"


def device_flags(args: Namespace) -> str:
    """Return the options of device and precision."""
    precision = f"--{args.precision}" if args.precision in ("bf16", "amp", "fp16") else ""
    return f"{'--cpu ' * (args.device == 'cpu')}{precision}"


class System:
    """One model in training: its task, its trainer, and the minibatches of a turn.

    The minibatches are the same in every turn and for every system: ``args.updates`` batches of
    fairseq's own, sampled evenly by length from an epoch. Batching is included in the timing.
    """

    def __init__(self, data: Path, flags: str, args: Namespace):
        words = [str(data), *flags.split(), *shlex.split(common_flags(args))]
        parsed = options.parse_args_and_arch(options.get_training_parser(), words)
        self.cfg = cfg = convert_namespace_to_omegaconf(parsed)
        torch.manual_seed(1)
        self.device, self.task = args.device, tasks.setup_task(cfg.task)
        model = self.task.build_model(cfg.model)
        self.trainer = Trainer(cfg, self.task, model, self.task.build_criterion(cfg.criterion))
        self.task.load_dataset("train")
        # fairseq forgets the peak of the GPU's memory after every update otherwise
        self.trainer.cuda_env = None
        self.iterator = self.trainer.get_train_iterator(1)
        chosen = spaced(minibatches(data, cfg.dataset), args.updates)
        self.indices = [indices_of(lines, self.iterator.dataset) for lines in chosen]

    def batches(self) -> Iterator[Batch]:
        """Yield the minibatches of a turn."""
        for indices in self.indices:
            yield self.iterator.collate_fn([self.iterator.dataset[index] for index in indices])

    def seconds(self) -> Tuple[float, int]:
        """Return (seconds, target tokens) of a turn."""
        synchronise(self.device)
        tokens, start = 0, time.perf_counter()
        for batch in self.batches():
            self.trainer.train_step([batch])
            tokens += target_tokens(batch)
        synchronise(self.device)
        return time.perf_counter() - start, tokens

    def products(self) -> Products:
        """Return the matrix products of a turn."""
        batches = list(self.batches())
        with Products(sum(map(target_tokens, batches))) as products:
            for batch in batches:
                self.trainer.train_step([batch])
        return products

    def padding(self) -> Tuple[int, int]:
        """Return (padding positions, all positions) of the sentences of a turn, on both sides."""
        sides = [
            side
            for batch in self.batches()
            for part in samples(batch)
            for side in (part["net_input"]["src_tokens"], part["target"])
        ]
        pad = self.task.target_dictionary.pad()
        return sum(int(side.eq(pad).sum()) for side in sides), sum(map(torch.numel, sides))

    def parameters(self) -> int:
        """Return the number of unique trained scalars, those of the criterion included."""
        trainer = self.trainer
        unique = {*trainer.model.parameters(), *trainer.criterion.parameters()}
        return sum(parameter.numel() for parameter in unique if parameter.requires_grad)


def minibatches(data: Path, dataset: Any) -> List[Sequence[int]]:
    """Return fairseq's minibatches of the corpus in ``data``, as lists of numbers of its lines.

    dataset: cfg.dataset, with the options of batching. Sorted by the first language's side, as
    fairseq sorts by the source.
    """
    pair = "-".join(LANGS)
    sides = [data_utils.load_indexed_dataset(str(data / f"train.{pair}.{lang}")) for lang in LANGS]
    # copies: the arrays end with their datasets
    first, second = (np.array(side.sizes, dtype=np.int64) for side in sides)
    order = np.lexsort((second, first))
    return data_utils.batch_by_size(
        order,
        num_tokens_fn=lambda line: max(first[line], second[line]),
        num_tokens_vec=np.maximum(first, second)[order],
        max_tokens=dataset.max_tokens,
        max_sentences=dataset.batch_size,
        required_batch_size_multiple=dataset.required_batch_size_multiple,
    )


def indices_of(lines: Sequence[int], dataset: Any) -> List[int]:
    """Return the indices in a dataset of these lines of the corpus, for every pair in it."""
    starts = getattr(dataset, "starts", {"the only pair": 0})
    return [start + int(line) for start in starts.values() for line in lines]


def samples(batch: Batch) -> List[Batch]:
    """Return the samples of a minibatch: a single one, or one for each pair."""
    return [batch] if "net_input" in batch else list(batch.values())


def target_tokens(batch: Batch) -> int:
    """Return the target tokens of a minibatch."""
    return sum(part["ntokens"] for part in samples(batch))


def operations_per_token(data: Path, flags: str, args: Namespace) -> float:
    """Return the operations of the training's matrix products per target token."""
    products = System(data, flags, args).products()
    return products.operations() / products.tokens


class SystemTranslator(TrainedModel):
    """A system that translates the validation set as fairseq-generate does.

    The model goes through a checkpoint; the task builds the generator and takes the steps.
    Hypotheses are forced to one length: hardly trained models would end them anywhere.
    """

    def __init__(
        self,
        system: System,
        task: str,
        beam: int,
        sentences: int,
        folder: Path,
        args: Namespace,
    ):
        self.device = args.device
        path = folder / "checkpoint.pt"
        if not path.exists():
            system.trainer.consolidate_optimizer()
            system.trainer.save_checkpoint(str(path), {"train_iterator": {"epoch": 1}})
        words = [system.cfg.task.data, "--path", path, *task.split(), *device_flags(args).split()]
        words += ["--beam", beam, "--min-len", args.length, "--max-len-a", 0]
        words += ["--max-len-b", args.length]
        super().__init__(words, "valid", sentences, args.device, args.precision == "fp16")
        number = TRANSLATED.get(sentences, sentences) // sentences
        self.batches = spaced(self.batches, min(number, len(self.batches)))
        self.sentences = sum(len(batch["id"]) for batch in self.batches)
        if args.device == "cuda":
            self.batches = [utils.move_to_cuda(batch) for batch in self.batches]

    def seconds(self) -> float:
        """Return the seconds of one pass."""
        synchronise(self.device)
        start = time.perf_counter()
        self.translate()
        synchronise(self.device)
        return time.perf_counter() - start

    def translate(self) -> None:
        """Do one pass."""
        for batch in self.batches:
            self.hypotheses(batch)

    def products(self) -> Products:
        """Return the matrix products of one pass."""
        with Products(self.sentences) as products:
            self.translate()
        return products


class Member:
    """A row of the tables, trained and measured; it takes and returns plain numbers and dicts."""

    def __init__(self, row: Row, data: Path, folder: Path, args: Namespace):
        self.row, self.folder, self.args = row, folder, args
        self.translators: Dict[Tuple[int, int], SystemTranslator] = {}
        self.idle = memory(args.device)
        self.systems = [System(data, flags, args) for flags in row.models]

    def first(self) -> None:
        """Do the first update of each model."""
        for system in self.systems:
            system.trainer.train_step([next(system.batches())])
        synchronise(self.args.device)

    def train(self) -> Tuple[float, int]:
        """Do a turn of each model and return (seconds, target tokens)."""
        turns = [system.seconds() for system in self.systems]
        return sum(seconds for seconds, _ in turns), sum(tokens for _, tokens in turns)

    def translate(self, beam: int, sentences: int) -> Tuple[float, int]:
        """Return (seconds, sentences) of one pass."""
        translator = self._translator(beam, sentences)
        return translator.seconds(), translator.sentences

    def _translator(self, beam: int, sentences: int) -> SystemTranslator:
        if (beam, sentences) not in self.translators:
            self.translators[beam, sentences] = SystemTranslator(
                self.systems[0], self.row.task, beam, sentences, self.folder, self.args
            )
        return self.translators[beam, sentences]

    def forget_peak(self) -> None:
        """Reset the peak of memory."""
        if self.args.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        elif os.access(CLEAR_REFS, os.W_OK):
            with open(CLEAR_REFS, "w", encoding="ascii") as stream:
                stream.write("5")

    def peak(self) -> int:
        """Return the peak in bytes since then, without what the process used before the models."""
        return peak_memory(self.args.device) - self.idle

    def parameters(self) -> int:
        """Return the number of unique trained scalars of all its models."""
        return sum(system.parameters() for system in self.systems)

    def machine(self) -> Dict[str, float]:
        """Return the peak rates of the machine, in operations and in bytes per second."""
        args = self.args
        return {
            "operations": limits.product_rate(args.precision, args.device),
            "bytes": limits.bandwidth(1 << 28, args.device),
        }

    def training_cost(self) -> Dict[str, Any]:
        """Return the operations and the least time of an update per target token."""
        products_of_models = [system.products() for system in self.systems]
        padding, places = map(sum, zip(*(system.padding() for system in self.systems)))
        tokens = sum(products.tokens for products in products_of_models)
        limit = [
            limits.best_training_time(
                products, system.parameters(), self.args.updates, self.args.device
            )
            for products, system in zip(products_of_models, self.systems)
        ]
        return {
            "operations": sum(products.operations() for products in products_of_models) / tokens,
            "seconds": sum(seconds for seconds, _ in limit) / tokens,
            "bound": limit[0][1],
            "padding": padding / places,
            "parameters": self.parameters(),
        }

    def translation_cost(self, beam: int, sentences: int) -> Dict[str, Any]:
        """Return the operations and the least time of a search per sentence."""
        translator = self._translator(beam, sentences)
        products = translator.products()
        seconds, bound = limits.best_translation_time(products, self.args.device)
        number = translator.sentences
        return {
            "operations": products.operations() / number,
            "seconds": seconds / number,
            "bound": bound,
        }


def memory(device: str) -> int:
    """Return the bytes that this process uses now: on the GPU, or in main memory."""
    return torch.cuda.memory_allocated() if device == "cuda" else _status("VmRSS")


def peak_memory(device: str) -> int:
    """Return the peak in bytes; of main memory since the start where it cannot be reset."""
    return torch.cuda.max_memory_allocated() if device == "cuda" else _status("VmHWM")


def _status(name: str) -> int:
    try:
        with open("/proc/self/status", encoding="ascii") as stream:
            lines = dict(line.split(":", 1) for line in stream)
    except OSError:  # no Linux: the peak stands for both, in kilobytes or, on macOS, in bytes
        unit = 1 if os.uname().sysname == "Darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return int(lines[name].split()[0]) * 1024
