"""Options of the tasks that train several lang pairs."""

from dataclasses import dataclass, field
from typing import Any, List, Optional

from fairseq.dataclass import ChoiceEnum
from fairseq.tasks.translation import TranslationConfig
from omegaconf import II

from .schedule import SCHEDULES

# how the sources of synthetic pairs are made in training
SYNTHETIC_SOURCES = ("greedy", "sampling", "noised_beam")


@dataclass
class StreamsConfig(TranslationConfig):
    """Options of the tasks ``dual_translation``, ``multiway_translation`` and ``routed_mtl``."""

    lang_pairs: Optional[str] = field(
        default=None,
        metadata={
            "help": "directions to train, e.g. de-en,en-fr; at inference -s and -t choose one, and "
            "the list comes from the checkpoint"
        },
    )
    schedule: ChoiceEnum(SCHEDULES) = field(
        default="cycle",
        metadata={
            "help": "pairs that take part in each update: joint (all), cycle (one after the "
            "other), main+aux (--main-pair and a random other pair), temperature (one, drawn by "
            "size)"
        },
    )
    main_pair: Optional[str] = field(
        default=None, metadata={"help": "main pair of --schedule main+aux"}
    )
    schedule_temperature: float = field(
        default=1.0,
        metadata={
            "help": "T in the probability size^(1/T) with which --schedule temperature draws a pair"
        },
    )
    join_at: Optional[str] = field(
        default=None,
        metadata={
            "help": "number of updates of the run after which a pair takes part, e.g. "
            "en-fr=5000,de-fr=200"
        },
    )
    pair_patience: int = field(
        default=0,
        metadata={
            "help": "number of validations in a row without a better score (BLEU with --eval-bleu, "
            "else loss) after which a pair leaves when the next epoch begins; the run ends when "
            "all pairs have left; 0 = off"
        },
    )
    train_only: Optional[str] = field(
        default=None,
        metadata={
            "help": "groups of parameters to train, e.g. shared,output; all other parameters keep "
            "their values (start from a trained model with --finetune-from-model)"
        },
    )
    pair_parallel: bool = field(
        default=False,
        metadata={
            "help": "let each worker train its own pairs and synchronise only the parameters that "
            "pairs of several workers use (with one worker this is the plain run)"
        },
    )
    bpe_models: Optional[str] = field(
        default=None,
        metadata={
            "help": "for fairseq-interactive: file of --bpe for each language, e.g. "
            "de=de.model,fr=fr.model; the other languages use --sentencepiece-model or --bpe-codes"
        },
    )
    monolingual: Optional[str] = field(
        default=None,
        metadata={
            "help": "languages with monolingual text, e.g. de,en, in train.de-None.de of the data "
            "folder (fairseq-preprocess --only-source -s de): a line becomes the target of a pair "
            "whose source the model translates itself (Sennrich et al. 2016, Niu et al. 2018)"
        },
    )
    monolingual_max_len: int = field(
        default=0,
        metadata={"help": "leave out lines of --monolingual with more tokens; 0 = off"},
    )
    synthetic_share: str = field(
        default="0.5",
        metadata={
            "help": "share of the updates that train on synthetic pairs, those of --monolingual "
            "and those with a label in --lang-pairs; 0=0.1,5000=0.5 grows over 5000 updates; "
            "de-en@bt=0.3,en-de@mono=0.2 gives each stream its own"
        },
    )
    synthetic_after_loss: Optional[float] = field(
        default=None,
        metadata={
            "help": "begin with the lines of a language when the validation loss of the direction "
            "that translates them is at most this, in bits as it is logged (--join-at "
            "en-de@mono=5000 begins after updates)"
        },
    )
    synthetic_sources: ChoiceEnum(SYNTHETIC_SOURCES) = field(
        default="greedy",
        metadata={
            "help": "how lines of --monolingual are translated: greedy, sampling, or noised_beam, "
            "beam search with words deleted, replaced and moved (Edunov et al. 2018)"
        },
    )
    synthetic_beam: Optional[int] = field(
        default=None,
        metadata={"help": "beam of --synthetic-sources noised_beam (default: 5, as the paper)"},
    )
    synthetic_tag: bool = field(
        default=False,
        metadata={
            "help": "begin synthetic sources with <s>, which no real source has (tagged "
            "back-translation, Caswell et al. 2019)"
        },
    )
    synthetic_ema: bool = field(
        default=False,
        metadata={
            "help": "translate lines of --monolingual with the average of the parameters that "
            "--store-ema keeps, in place of the present ones"
        },
    )
    # A task is given its own group of options only. The plan of the epochs needs these of other
    # groups: how long the run is and how many batches an update has, on which its order depends.
    seed: int = II("common.seed")
    disable_validation: bool = II("dataset.disable_validation")
    max_update: int = II("optimization.max_update")
    max_epoch: int = II("optimization.max_epoch")
    update_freq: List[int] = II("optimization.update_freq")
    # which several pairs refuse
    ddp_comm_hook: Any = II("distributed_training.ddp_comm_hook")
    # what --pair-parallel does not go together with
    ddp_backend: Any = II("distributed_training.ddp_backend")
    zero_sharding: Any = II("distributed_training.zero_sharding")
    fp16: bool = II("common.fp16")
    bf16: bool = II("common.bf16")
    amp: bool = II("common.amp")
    store_ema: bool = II("ema.store_ema")
    use_bmuf: bool = II("optimization.use_bmuf")
    no_save_optimizer_state: bool = II("checkpoint.no_save_optimizer_state")


def is_given(value: object, default: object) -> bool:
    """True if an option's value is another than its default.

    Their texts are compared: an enumeration is read from a checkpoint as text.
    """
    return str(value) != str(default)
