"""A trained model that translates a data set, through fairseq's own functions."""

import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from fairseq import checkpoint_utils, options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

Batch = Dict[str, Any]  # of fairseq


def spaced(batches: Sequence[Any], number: int) -> List[Any]:
    """Return so many of the minibatches, evenly spaced from the first to the last."""
    return [batches[(2 * place + 1) * len(batches) // (2 * number)] for place in range(number)]


class TrainedModel:
    """A checkpoint, its task, generator and batches.

    Args:
        words: of fairseq-generate, with --path.
        subset: of the data.
        sentences: at a time.
        device, half: where the models compute, and whether in 16 bits.
    """

    def __init__(
        self,
        words: Sequence[object],
        subset: str,
        sentences: int,
        device: str = "cpu",
        half: bool = False,
    ):
        parser = options.get_generation_parser()
        parsed = options.parse_args_and_arch(parser, list(map(str, words)))
        cfg = convert_namespace_to_omegaconf(parsed)
        self.task = tasks.setup_task(cfg.task)
        path = [cfg.common_eval.path]
        self.models, saved = checkpoint_utils.load_model_ensemble(path, task=self.task)
        for model in self.models:
            if half:
                model.half()
            model.to(device).prepare_for_inference_(cfg)
        self.task.load_dataset(subset, task_cfg=saved.task)
        self.generator = self.task.build_generator(self.models, cfg.generation)
        iterator = self.task.get_batch_iterator(
            self.task.dataset(subset), max_sentences=sentences, required_batch_size_multiple=1
        )
        self.batches: List[Batch] = list(iterator.next_epoch_itr(shuffle=False))

    def hypotheses(self, batch: Batch) -> List[List[Dict[str, Any]]]:
        """Return the hypotheses of a batch: for every sentence the best first."""
        return self.task.inference_step(self.generator, self.models, batch)


class Translator(TrainedModel):
    """A trained model for the scripts that take a checkpoint.

    Args:
        args: with data, source_lang, target_lang, gen_subset, beam, and longest, the
            words of a hypothesis at most.
        checkpoint, task: its file and the task that translates with it.
        sentences: at a time.
        more: options of fairseq-generate, one string; no paths.
    """

    def __init__(
        self, args: Namespace, checkpoint: Path, task: str, sentences: int, more: str = ""
    ):
        words = [args.data, "--path", checkpoint, "--task", task, "-s", args.source_lang]
        words += ["-t", args.target_lang, "--beam", args.beam, "--max-len-a", 0]
        words += ["--max-len-b", args.longest, *more.split()]
        super().__init__(words, args.gen_subset, sentences)

    def translate(self, batches: Optional[Sequence[Batch]] = None) -> Dict[int, str]:
        """Return {sentence number: best translation} of these batches, by default of all."""
        translations = {}
        for batch in self.batches if batches is None else batches:
            for number, nbest in zip(batch["id"].tolist(), self.hypotheses(batch)):
                translations[number] = self.task.target_dictionary.string(nbest[0]["tokens"])
        return translations

    def sources(self) -> Iterator[Tuple[List[int], List[str]]]:
        """Yield (sentence numbers, sentences) of each batch."""
        words = self.task.source_dictionary
        for batch in self.batches:
            rows = batch["net_input"]["src_tokens"]
            yield batch["id"].tolist(), [words.string(row[row.ne(words.pad())]) for row in rows]


def timed_pass(translate: Callable[[], Dict[int, str]]) -> Tuple[float, int]:
    """Return (seconds, sentences) of a call, which returns {sentence number: translation}."""
    start = time.perf_counter()
    sentences = len(translate())
    return time.perf_counter() - start, sentences


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of both scripts that translate with a trained model."""
    parser.add_argument("checkpoint", type=Path, metavar="CHECKPOINT", help="trained model")
    parser.add_argument("--gen-subset", default="test", help="subset to translate (default test)")
    add_data(parser)


def add_data(parser: ArgumentParser) -> None:
    """Add the arguments of binarised data and its languages."""
    parser.add_argument("data", type=Path, metavar="DATA", help="folder with binarised data")
    parser.add_argument("-s", "--source-lang", required=True, help="source language")
    parser.add_argument("-t", "--target-lang", required=True, help="target language")
