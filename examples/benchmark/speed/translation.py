"""A trained model that translates a data set, through fairseq's own functions."""

from argparse import Namespace
from pathlib import Path

from . import REPOSITORY


class Trained:
    """A checkpoint, its task, generator and batches.

    Args:
        words: of fairseq-generate, with --path.
        subset: of the data.
        sentences: at a time.
        device, half: where the models compute, and whether in 16 bits.
    """

    def __init__(self, words, subset: str, sentences: int, device="cpu", half=False):
        from fairseq import checkpoint_utils, options, tasks
        from fairseq.dataclass.utils import convert_namespace_to_omegaconf

        words = [str(word) for word in words]
        parsed = options.parse_args_and_arch(options.get_generation_parser(), words)
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
        self.batches = list(iterator.next_epoch_itr(shuffle=False))

    def hypotheses(self, batch):
        """Return the hypotheses of a batch."""
        return self.task.inference_step(self.generator, self.models, batch)


class Translator(Trained):
    """A trained model for the scripts that take a checkpoint.

    Args:
        args: with data, source_lang, target_lang, gen_subset, beam, and longest, the
            words of a hypothesis at most.
        checkpoint, task: its file and the task that translates with it.
        sentences: at a time.
        options: more of fairseq-generate, one string; no paths.
    """

    def __init__(self, args, checkpoint, task: str, sentences: int, options: str = ""):
        words = [args.data, "--path", checkpoint, "--task", task, "-s", args.source_lang]
        words += ["-t", args.target_lang, "--beam", args.beam, "--max-len-a", 0]
        words += ["--max-len-b", args.longest, *options.split()]
        super().__init__(words, args.gen_subset, sentences)

    def translate(self, batches=None):
        """Return {sentence number: best translation} of all batches, or of the given ones."""
        translations = {}
        for batch in self.batches if batches is None else batches:
            for number, nbest in zip(batch["id"].tolist(), self.hypotheses(batch)):
                translations[number] = self.task.target_dictionary.string(nbest[0]["tokens"])
        return translations

    def sources(self):
        """Yield (sentence numbers, sentences as lists of words) of each batch."""
        words = self.task.source_dictionary
        for batch in self.batches:
            rows = batch["net_input"]["src_tokens"]
            yield batch["id"].tolist(), [words.string(row[row.ne(words.pad())]) for row in rows]


def add_arguments(parser) -> None:
    """Add the arguments of both scripts that translate with a trained model."""
    parser.add_argument("checkpoint", type=Path, metavar="CHECKPOINT", help="trained model")
    parser.add_argument("data", type=Path, metavar="DATA", help="folder with binarised data")
    parser.add_argument("-s", "--source-lang", required=True, help="source language")
    parser.add_argument("-t", "--target-lang", required=True, help="target language")
    parser.add_argument("--gen-subset", default="test", help="subset to translate (default test)")


def set_up(threads: int) -> None:
    """Register the package with fairseq and set the number of threads."""
    import torch
    from fairseq import utils

    torch.set_num_threads(threads)
    utils.import_user_module(Namespace(user_dir=str(REPOSITORY / "fairseq_ext")))
