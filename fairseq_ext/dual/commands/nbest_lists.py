"""n-best lists with the terms of Eq. 7, as fairseq-generate makes them with its options."""

from __future__ import annotations

import ast
import math
import pickle
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, NamedTuple, Sequence, Tuple

from ...compat.user_errors import option_of
from ...tools import UsageError

if TYPE_CHECKING:
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.models import BaseFairseqModel
    from torch import Tensor

    from ..task import DualTranslationTask

# what fairseq raises for a wrong checkpoint, folder, --bpe or --model-overrides
FAULTY = (ValueError, OSError, RuntimeError, EOFError, SyntaxError, pickle.UnpicklingError)
# options of fairseq-generate that change what is printed or written, and that tune-alpha ignores
IGNORED = ("prefix_size", "constraints", "replace_unk", "lm_path", "results_path")


class Candidate(NamedTuple):
    """One translation of a sentence: its text and its ``Terms`` of Eq. 7."""

    text: str
    terms: Any


def parse_words(words: Sequence[str]) -> FairseqConfig:
    """Return the configuration of fairseq-generate for these words."""
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    # of options given twice argparse takes the last: the user's words win
    default = ["--task", "dual_translation", "--gen-subset", "valid"]
    args = options.parse_args_and_arch(options.get_generation_parser(), [*default, *words])
    return convert_namespace_to_omegaconf(args)


def ranking_config(words: Sequence[str]) -> FairseqConfig:
    """Return the configuration with which fairseq-generate ranks by Eq. 7.

    Raises UsageError for words with which alpha cannot be chosen.
    """
    cfg = parse_words(words)
    if cfg.task._name != "dual_translation":
        raise UsageError(f"--task {cfg.task._name}: allowed: dual_translation")
    if cfg.common_eval.path is None:
        raise UsageError("--path CHECKPOINT is missing after --")
    options = {**cfg.generation, "results_path": cfg.common_eval.results_path}
    for name in IGNORED:
        value = options[name]
        if value:
            option = option_of(name)
            raise UsageError(f"{option} {value}: tune-alpha does not look at it; leave it out")
    if cfg.dataset.num_shards > 1:
        raise UsageError(
            f"--num-shards {cfg.dataset.num_shards}: alpha is chosen on the whole set; leave it out"
        )
    if cfg.task.dual_alpha != 1:
        raise UsageError(
            f"--dual-alpha {cfg.task.dual_alpha}: tune-alpha finds it; leave it out, or name the "
            "values with --alpha before --"
        )
    # with any value below 1 the reverse models score the lists
    return parse_words([*words, "--dual-alpha", "0.5"])


def load_batches(
    cfg: FairseqConfig,
) -> Tuple[DualTranslationTask, List[BaseFairseqModel], Iterable[Dict[str, Any]]]:
    """Return task, models and the batches in order, as fairseq-generate makes them."""
    import torch
    from fairseq import checkpoint_utils, tasks, utils

    from ...compat.checkpoints.model_overrides import overrides_of

    if cfg.common.seed is not None and not cfg.generation.no_seed_provided:
        utils.set_torch_seed(cfg.common.seed)  # of --sampling
    task = tasks.setup_task(cfg.task)
    overrides = ast.literal_eval(cfg.common_eval.model_overrides)
    paths = utils.split_paths(cfg.common_eval.path)
    # as in fairseq_cli.generate: architecture and dictionaries come from the checkpoint
    shards = cfg.checkpoint.checkpoint_shard_count
    with overrides_of(cfg, "fairseq-generate"):
        models, saved = checkpoint_utils.load_model_ensemble(
            paths,
            overrides,
            task,
            strict=shards == 1,
            suffix=cfg.checkpoint.checkpoint_suffix,
            num_shards=shards,
        )
    task.load_dataset(cfg.dataset.gen_subset, task_cfg=saved.task)
    for model in models:
        if cfg.common.fp16:
            model.half()
        if torch.cuda.is_available() and not cfg.common.cpu:
            model.cuda()
        model.prepare_for_inference_(cfg)
    max_tokens = cfg.dataset.max_tokens
    if max_tokens is None and cfg.dataset.batch_size is None:
        max_tokens = 12000  # the default of fairseq-generate
    # the batches of fairseq-generate, so that padding and thus rounding are the same
    limits = [task.max_positions(), *(model.max_positions() for model in models)]
    batches = task.get_batch_iterator(
        dataset=task.dataset(cfg.dataset.gen_subset),
        max_tokens=max_tokens,
        max_sentences=cfg.dataset.batch_size,
        max_positions=utils.resolve_max_positions(*limits),
        ignore_invalid_inputs=cfg.dataset.skip_invalid_size_inputs_valid_test,
        required_batch_size_multiple=cfg.dataset.required_batch_size_multiple,
        num_workers=cfg.dataset.num_workers,
    )
    return task, models, batches.next_epoch_itr(shuffle=False)


def plain_text(
    cfg: FairseqConfig, task: DualTranslationTask, generator: Any
) -> Callable[[Tensor], str]:
    """Return a function tokens -> text, which fairseq-generate prints on its D- lines."""
    from fairseq import utils

    bpe, tokenizer = task.build_bpe(cfg.bpe), task.build_tokenizer(cfg.tokenizer)

    def text(tokens: Tensor) -> str:
        _, line, _ = utils.post_process_prediction(
            hypo_tokens=tokens.int().cpu(),
            src_str="",
            alignment=None,
            align_dict=None,
            tgt_dict=task.target_dictionary,
            remove_bpe=cfg.common_eval.post_process,
            extra_symbols_to_ignore=generator.symbols_to_strip_from_output,
        )
        for step in (bpe, tokenizer):
            line = step.decode(line) if step else line
        return line

    return text


def nbest_lists(cfg: FairseqConfig) -> List[List[Candidate]]:
    """Return the n-best list of every sentence in the order of the beam search."""
    from fairseq import utils

    task, models, batches = load_batches(cfg)
    generator = task.build_generator(models, cfg.generation)
    text = plain_text(cfg, task, generator)
    nbest_by_number: Dict[int, List[Candidate]] = {}
    for sample in batches:
        device = next(models[0].parameters()).device
        sample = utils.move_to_cuda(sample) if device.type == "cuda" else sample
        lists = task.inference_step(generator, models, sample)
        for number, nbest in zip(sample["id"].tolist(), lists):
            # the lists are in the order of ``ranking_config``, the ranks are those of the search
            by_rank = sorted(nbest, key=lambda hypothesis: hypothesis["rank"])
            nbest_by_number[number] = [
                Candidate(text(hypothesis["tokens"]), hypothesis["terms"])
                for hypothesis in without_ruled_out(by_rank)
            ]
    # batches are in the order of sentence lengths, references in that of the file
    return [nbest_by_number[number] for number in sorted(nbest_by_number)]


def without_ruled_out(nbest: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return the hypotheses that --match-source-len has not ruled out; the first if it has all."""
    return [entry for entry in nbest if float(entry["score"]) > -math.inf] or nbest[:1]
