"""A system in training and in translation, through fairseq's own Trainer and beam search."""

import itertools
import time
from pathlib import Path

import torch
from corpus import LANGS
from products import Products

DIRECTIONS = tuple("-".join(pair) for pair in (LANGS, LANGS[::-1]))
STOCK, OURS = "label_smoothed_cross_entropy", "chunked_label_smoothed_cross_entropy"
TWO_STOCK, TWO_STOCK_OURS, DUAL = "two stock", "two stock, our criterion", "dual"
LSTM, MULTIWAY, ROUTED = "stock lstm", "multiway", "routed"
TRANSFORMER, DUO = "stock transformer", "duo"


class System:
    """One model in training: its task, its trainer and an endless supply of minibatches."""

    def __init__(self, data: Path, flags, args):
        from fairseq import options, tasks
        from fairseq.dataclass.utils import convert_namespace_to_omegaconf
        from fairseq.trainer import Trainer

        flags = [str(data), *flags, *common_flags(args)]
        parser = options.get_training_parser()
        cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, flags))
        torch.manual_seed(1)
        self.cfg, self.task = cfg, tasks.setup_task(cfg.task)
        model = self.task.build_model(cfg.model)
        self.trainer = Trainer(cfg, self.task, model, self.task.build_criterion(cfg.criterion))
        self.task.load_dataset("train")
        self.batches = self._batches()

    def _batches(self):
        iterator = self.trainer.get_train_iterator(1)
        while True:
            yield from iterator.next_epoch_itr(shuffle=False)

    def seconds(self, updates: int):
        """(seconds, target tokens) of so many updates."""
        tokens, start = 0, time.perf_counter()
        for batch in itertools.islice(self.batches, updates):
            self.trainer.train_step([batch])
            parts = [batch] if "net_input" in batch else list(batch.values())
            tokens += sum(part["ntokens"] for part in parts)
        synchronise()
        return time.perf_counter() - start, tokens

    def products(self) -> Products:
        """The matrix products of one update."""
        batch = next(self.batches)
        parts = [batch] if "net_input" in batch else list(batch.values())
        with Products(sum(part["ntokens"] for part in parts)) as found:
            self.trainer.train_step([batch])
        return found

    def parameters(self) -> int:
        """Unique trainable parameters."""
        return sum(p.numel() for p in self.trainer.model.parameters() if p.requires_grad)


class Translator:
    """One direction of a system, translating the validation set by beam search."""

    def __init__(self, system: System, pair: str, args):
        from fairseq.tasks.translation import load_langpair_dataset
        from omegaconf import OmegaConf

        self.task, model = system.task, system.trainer.get_model()
        source, target = pair.split("-")
        if hasattr(model, "direction"):
            model = model.direction(pair)
        dictionary = self.task.target_dictionary
        self.dataset = load_langpair_dataset(
            str(system.cfg.task.data), "valid", source, dictionary, target, dictionary,
            combine=False, dataset_impl=None, upsample_primary=1, left_pad_source=True,
            left_pad_target=False, max_source_positions=1024, max_target_positions=1024,
        )  # fmt: skip
        self.sentences = args.sentences
        # all hypotheses of one length: hardly trained models would end them anywhere
        length = {"min_len": args.length, "max_len_a": 0, "max_len_b": args.length}
        generation = OmegaConf.create({"beam": args.beam, **length})
        from fairseq.tasks.translation import TranslationTask

        self.generator = TranslationTask.build_generator(self.task, [model], generation)

    def seconds(self):
        """(seconds, sentences) of one pass."""
        order, start = self.dataset.ordered_indices(), time.perf_counter()
        for first in range(0, len(order), self.sentences):
            chosen = order[first : first + self.sentences]
            batch = self.dataset.collater([self.dataset[int(index)] for index in chosen])
            if torch.cuda.is_available():
                batch = move(batch)
            self.generator.generate(None, batch)
        synchronise()
        return time.perf_counter() - start, len(order)


def move(batch):
    from fairseq import utils

    return utils.move_to_cuda(batch)


def synchronise():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def common_flags(args):
    flags = "--optimizer adam --lr 0.0005 --lr-scheduler fixed --seed 1 --no-save"
    return f"{flags} --max-tokens {args.max_tokens} {args.flags}".split()


def transformer_flags(args, pair):
    source, target = pair.split("-")
    flags = f"-s {source} -t {target} --arch transformer --share-all-embeddings --dropout 0.2"
    for side in ("encoder", "decoder"):
        flags += f" --{side}-layers {args.layers} --{side}-embed-dim {args.embed_dim}"
        flags += f" --{side}-ffn-embed-dim {args.ffn_embed_dim}"
        flags += f" --{side}-attention-heads {args.heads}"
    return flags


def dual_flags(args):
    flags = f"--task dual_translation -s {LANGS[0]} -t {LANGS[1]} --arch dual_transformer"
    flags += f" --layers {args.layers} --embed-dim {args.embed_dim} --dropout 0.2"
    flags += f" --ffn-embed-dim {args.ffn_embed_dim} --attention-heads {args.heads}"
    return f"{flags} --share-all-embeddings"


def duo_flags(args):
    """The four additions of the paper's Table 6, at the sizes of the stock model."""
    flags = f"-s {LANGS[0]} -t {LANGS[1]} --arch duo_transformer --share-all-embeddings"
    flags += f" --layers {args.layers} --embed-dim {args.embed_dim} --dropout 0.2"
    return f"{flags} --ffn-embed-dim {args.ffn_embed_dim} --attention-heads {args.heads}"


def lstm_flags(args):
    """Bidirectional encoder, attention, one layer: the widths of the models beside it."""
    flags = f"-s {LANGS[0]} -t {LANGS[1]} --arch lstm --encoder-bidirectional --dropout 0"
    for side in ("encoder", "decoder"):
        flags += f" --{side}-embed-dim {args.embed_dim} --{side}-hidden-size {args.hidden}"
    return f"{flags} --decoder-out-embed-dim {args.hidden}"


def multiway_flags(args):
    flags = f"--task multiway_translation --lang-pairs {DIRECTIONS[0]} --arch multiway_gru"
    flags += f" --embed-dim {args.embed_dim} --hidden-size {args.hidden} --dropout 0"
    flags += f" --context-size {args.context} --readout-size {args.hidden}"
    return f"{flags} --init-hidden-size {args.hidden // 2} --init-size {args.hidden // 2}"


def routed_flags(args):
    """One translation task; its shared blocks, its own block and the router all work for it."""
    flags = f"--task routed_mtl --lang-pairs {DIRECTIONS[0]} --main-pair {DIRECTIONS[0]}"
    flags += f" --arch routed_gru --embed-dim {args.embed_dim} --hidden-size {args.hidden}"
    return f"{flags} --attention-size {args.context} --dropout 0"


RECURRENT = {"multiway": (MULTIWAY, multiway_flags), "routed": (ROUTED, routed_flags)}


def build(args, data: Path):
    """{name: its models}; the first is what the others are compared with."""
    label_smoothed = f"--label-smoothing 0.1 --criterion {STOCK}"
    ours = f"--label-smoothing 0.1 --criterion {OURS}"

    def systems(*flags):
        return [System(data, one.split(), args) for one in flags]

    if args.system in RECURRENT:
        plain = "--criterion cross_entropy"
        name, flags = RECURRENT[args.system]
        return {
            LSTM: systems(f"{lstm_flags(args)} {plain}"),
            name: systems(f"{flags(args)} {plain}"),
        }
    if args.system == "duo":
        return {
            TRANSFORMER: systems(f"{transformer_flags(args, DIRECTIONS[0])} {ours}"),
            DUO: systems(f"{duo_flags(args)} {ours}"),
        }
    stock = [transformer_flags(args, pair) for pair in DIRECTIONS]
    return {
        TWO_STOCK: systems(*(f"{one} {label_smoothed}" for one in stock)),
        TWO_STOCK_OURS: systems(*(f"{one} {ours}" for one in stock)),
        DUAL: systems(f"{dual_flags(args)} {ours}"),
    }
