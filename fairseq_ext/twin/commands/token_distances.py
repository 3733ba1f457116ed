"""L_t and -log P_f of every token of a data set, by a checkpoint with its backward network."""

import math
from argparse import Namespace
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Tuple
from zipfile import BadZipFile

from ...compat.checkpoints.configurations import chosen_name, options_of, stored_name
from ...compat.user_errors import os_error_text
from ...tools import UsageError
from ...tools.checkpoint.reading import read
from .export import twin_models
from .words import Token

if TYPE_CHECKING:
    from fairseq.data import Dictionary
    from fairseq.models import BaseFairseqModel
    from fairseq.tasks import FairseqTask

    from ..criterion import TwinCriterion


def load(args: Namespace) -> Tuple["BaseFairseqModel", "TwinCriterion", "FairseqTask"]:
    """Return (model, criterion, task) of a checkpoint, all for evaluation."""
    from fairseq import tasks
    from omegaconf import DictConfig

    from ...common.stored import WITHOUT_SCORES
    from ...compat.checkpoints.refusals import check_dictionaries
    from ...streams.stored_pairs import stored_pairs
    from ..criterion import TwinCriterion

    state = read(args.checkpoint, *twin_models())
    _check_trained(state, args.checkpoint)
    # legacy models store a Namespace
    run = DictConfig(state["cfg"], flags={"allow_objects": True})
    run.task.data = args.data
    options = options_of(run.task)
    if args.features is not None:
        if "features" not in options:
            raise UsageError(
                f"--features {args.features}: {args.checkpoint} is of the task "
                f"{chosen_name(options, 'task')}, which reads none; leave it out"
            )
        options["features"] = args.features
    options.update({name: value for name, value in WITHOUT_SCORES.items() if name in options})
    # the pair comes from --pair, among all that the checkpoint was trained for
    if "lang_pairs" in options:
        options["source_lang"] = options["target_lang"] = None
        # a training with -s and -t named its pairs to the model alone
        options["lang_pairs"] = options["lang_pairs"] or ",".join(stored_pairs(run.model))
    try:
        task = tasks.setup_task(run.task)
        model = task.build_model(run.model)
        model.load_state_dict(state["model"])
        check_dictionaries(args.checkpoint, state, task)
        # with the backward network, which commands that evaluate leave out
        criterion = TwinCriterion.of_checkpoint(run.criterion, state["criterion"], task)
        task.load_dataset(args.subset)
    except FileNotFoundError as error:
        raise UsageError(f"DATA {args.data}: {os_error_text(error)}") from error
    except (ValueError, RuntimeError, KeyError) as error:
        raise UsageError(f"DATA {args.data}: {error}") from error
    return model.eval(), criterion, task


def _check_trained(state: Dict[str, Any], path: str) -> None:
    """Raise UsageError unless the checkpoint holds a backward network."""
    name = stored_name(state, "criterion")
    if name != "twin" or not state.get("criterion"):
        raise UsageError(
            f"CHECKPOINT {path} has no backward network (criterion {name}); allowed: one of a "
            "training with --criterion twin --twin-target backward, as fairseq-train wrote it"
        )


def batches(
    args: Namespace, model: "BaseFairseqModel", task: "FairseqTask"
) -> Iterator[Dict[str, Any]]:
    """Yield the samples of the subset, in order, until there are enough sentences."""
    from fairseq import utils

    from ...streams.task import StreamsTask

    dataset, pair = task.dataset(args.subset), args.pair
    if isinstance(task, StreamsTask):
        datasets = dataset.datasets
        if pair not in datasets:
            what = f"--pair {pair}:" if pair else "--pair is missing;"
            raise UsageError(f"{what} allowed: {', '.join(datasets)}")
        dataset = datasets[pair]
    elif pair:
        raise UsageError(f"--pair {pair}: {args.checkpoint} is of one direction; leave it out")
    limits = utils.resolve_max_positions(task.max_positions(), model.max_positions())
    indices = dataset.ordered_indices()
    indices, _ = dataset.filter_indices_by_size(indices, limits)
    # the first sentences of the set, in batches by length
    chosen = set(sorted(indices.tolist())[: args.sentences])
    # the order by length stays
    indices = indices[[index in chosen for index in indices.tolist()]]
    longest = max(map(dataset.num_tokens, chosen), default=0)
    if longest > args.max_tokens:
        raise UsageError(
            f"--max-tokens {args.max_tokens}: --subset {args.subset} has a sentence of {longest}; "
            "allowed: at least that"
        )
    for batch in dataset.batch_by_size(indices, max_tokens=args.max_tokens):
        sample = dataset.collater([_item(dataset, index, args.data) for index in batch])
        if pair:
            sample["net_input"]["pair"] = pair
        yield sample


def _item(dataset: Any, index: int, data: str) -> Dict[str, Any]:
    """Return an entry; UsageError naming the file where its features cannot be read."""
    try:
        return dataset[index]
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        # of speech_to_text and of image_captioning; the error does not always say the file
        paths = getattr(dataset, "audio_paths", getattr(dataset, "paths", None))
        path = "" if paths is None else str(paths[index])
        place = "" if path in str(error) else f"{path}: "
        raise UsageError(f"DATA {data}: {place}{error}") from error


def collect(
    model: "BaseFairseqModel",
    criterion: "TwinCriterion",
    samples: Iterable[Dict[str, Any]],
    dictionary: "Dictionary",
) -> List[Token]:
    """Return the matched tokens of the samples, by sentence and position."""
    tokens = []
    for sample in samples:
        target = sample["target"]
        logits, penalty, is_matched = criterion.token_distances(model, sample)
        nll = -logits.float().log_softmax(dim=2).gather(2, target.unsqueeze(2)).squeeze(2)  # (B, T)
        # the last real token of a row is known to the backward network: it has no L_t
        for row, position in is_matched.nonzero().tolist():
            symbol = dictionary[int(target[row, position])]
            numbers = penalty[row, position].item(), nll[row, position].item()
            tokens.append(Token(int(sample["id"][row]), position, symbol, *numbers))
    return sorted(tokens)


def check_finite(tokens: List[Token], path: str) -> None:
    """Raise UsageError where the numbers of a token are none: the training has diverged."""
    for token in tokens:
        if not (math.isfinite(token.penalty) and math.isfinite(token.nll)):
            raise UsageError(
                f"CHECKPOINT {path}: sentence {token.sentence}, position {token.position}: L_t is "
                f"{token.penalty:g} and -log P_f {token.nll:g}; allowed: finite numbers"
            )
