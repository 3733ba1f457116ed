"""A trained model that translates a data set, through fairseq's own functions."""

from argparse import Namespace
from pathlib import Path

from . import REPOSITORY


class Translator:
    """A checkpoint, its task and its batches.

    Args:
        args: with data, source_lang, target_lang, gen_subset, beam, and longest, the
            words of a hypothesis at most.
        checkpoint, task: its file and the task that translates with it.
        sentences: at a time.
        options: more of fairseq-generate, one string.
    """

    def __init__(self, args, checkpoint, task: str, sentences: int, options: str = ""):
        from fairseq import checkpoint_utils, tasks
        from fairseq import options as fairseq_options
        from fairseq.dataclass.utils import convert_namespace_to_omegaconf

        words = f"{args.data} --path {checkpoint} --task {task} -s {args.source_lang} "
        words += f"-t {args.target_lang} --beam {args.beam} --max-len-a 0 "
        words += f"--max-len-b {args.longest} {options}"
        parser = fairseq_options.get_generation_parser()
        parsed = fairseq_options.parse_args_and_arch(parser, words.split())
        cfg = convert_namespace_to_omegaconf(parsed)
        self.task = tasks.setup_task(cfg.task)
        self.models, saved = checkpoint_utils.load_model_ensemble([str(checkpoint)], task=self.task)
        for model in self.models:
            model.prepare_for_inference_(cfg)
        self.task.load_dataset(args.gen_subset, task_cfg=saved.task)
        self.generator = self.task.build_generator(self.models, cfg.generation)
        iterator = self.task.get_batch_iterator(
            self.task.dataset(args.gen_subset),
            max_sentences=sentences,
            required_batch_size_multiple=1,
        )
        self.batches = list(iterator.next_epoch_itr(shuffle=False))

    def translate(self, batches=None):
        """{number of a sentence: its best translation}, of all batches or of some."""
        found = {}
        for batch in self.batches if batches is None else batches:
            hypotheses = self.task.inference_step(self.generator, self.models, batch)
            for number, nbest in zip(batch["id"].tolist(), hypotheses):
                found[number] = self.task.target_dictionary.string(nbest[0]["tokens"])
        return found

    def sources(self):
        """[numbers, sentences as lists of words] of each batch."""
        words = self.task.source_dictionary
        for batch in self.batches:
            rows = batch["net_input"]["src_tokens"]
            yield batch["id"].tolist(), [words.string(row[row.ne(words.pad())]) for row in rows]


def add_arguments(parser) -> None:
    """What both scripts that translate with a trained model are told."""
    parser.add_argument("checkpoint", type=Path, metavar="CHECKPOINT")
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("-s", "--source-lang", required=True)
    parser.add_argument("-t", "--target-lang", required=True)
    parser.add_argument("--gen-subset", default="test", help="(default test)")


def set_up(threads: int) -> None:
    """Let fairseq know the package; so many threads."""
    import torch
    from fairseq import utils

    torch.set_num_threads(threads)
    utils.import_user_module(Namespace(user_dir=str(REPOSITORY / "fairseq_ext")))
