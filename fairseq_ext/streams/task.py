"""The task base of every system that trains several lang pairs into one model.

Training and validation run on a dict {pair: sample}; inference runs on one direction, chosen by
``-s`` and ``-t``, with the ordinary dataset and generator. Models follow protocols in model.py.
"""

import os
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Type

from fairseq import utils
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from omegaconf import OmegaConf
from torch import Tensor, nn

from ..common.beam_search import BeamSearchGenerator
from ..common.fast_search import fast_search
from .back_translation import BackTranslation
from .bleu import PairBleu
from .config import StreamsConfig
from .dataset import Sample
from .direction import Direction
from .lang_pairs import parse_labelled_pairs, parse_lang_pairs
from .language_pair import LanguagePair, languages, pair_of, target_of
from .loading import Loading
from .monolingual import monolingual_streams
from .pair_data import load_dictionary
from .pair_parallel import PairParallel, pair_sizes
from .parameter_groups import check_frozen, frozen_pairs, train_only
from .patience import PairPatience
from .requested_direction import requested_direction
from .schedule import check_join_at, check_schedule
from .state import RunState
from .stored_pairs import store_pairs, stored_pairs
from .subwords import DirectionCoder, SubwordsByLanguage, Uncut, build_subwords
from .synthetic import LossThreshold, check_directions, check_synthetic, trained_streams


class StreamsTask(Loading):
    """Several lang pairs in training, one direction at inference.

    Attributes:
        pairs: those of the model.
        synthetic: streams of synthetic pairs that training takes besides.
        requested: what -s and -t ask for, or the only pair in the data folder.
        pair: the same, once the model translates it; None while all pairs are trained or validated.
        dictionaries: {lang: dictionary}.
        from_checkpoint: True if the model is a trained one, which is not trained on.
        frozen: pairs of which nothing is trained.
        pair_parallel: what several workers with pairs of their own do.
        pair_patience: what lets pairs leave in training.
        subwords: what cuts typed lines.
        dictionary_class: of the dictionaries.
        keep_attention: let hypotheses hold their attention, also without an option of alignments.
        run_state: what the order of batches depends on besides the options.
    """

    cfg: StreamsConfig
    tgt_dict: Dictionary
    dictionary_class: Type[Dictionary] = Dictionary
    from_checkpoint = False
    keep_attention = False

    def __init__(
        self,
        cfg: StreamsConfig,
        pairs: List[str],
        dictionaries: Dict[str, Dictionary],
        requested: Optional[LanguagePair] = None,
    ):
        self.pairs, self.requested = pairs, requested
        self.pair: Optional[str] = None
        self._need_attention = False
        self.dictionaries = dictionaries
        # parameters that are trained, and those without a gradient in the present update
        self._trained: List[nn.Parameter] = []
        self._untouched: List[nn.Parameter] = []
        self.run_state = RunState()
        self.pair_parallel = PairParallel(cfg)
        self.subwords = SubwordsByLanguage()
        self.frozen: List[str] = []
        self.synthetic: List[str] = []
        self.loss_threshold = LossThreshold(None, [], self.run_state)
        self.back_translation = BackTranslation(cfg, dictionaries, self.source_marks)
        # fairseq-generate asks for the dictionaries before there is a model
        direction = requested or LanguagePair.parse(pairs[0])
        super().__init__(cfg, dictionaries[direction.sources[0]], dictionaries[direction.target])

    @classmethod
    def training_pairs(cls, cfg: StreamsConfig, requested: Optional[LanguagePair]) -> List[str]:
        """Return the directions that a run with these options trains; systems may add to them.

        Args:
            cfg: the options.
            requested: trained where there is no --lang-pairs.
        """
        return parse_lang_pairs(cfg.lang_pairs) if cfg.lang_pairs else [str(requested)]

    @classmethod
    def setup_task(cls, cfg: StreamsConfig, **kwargs: Any) -> "StreamsTask":
        """Return the task of the options; ValueError, naming the option, where they do not fit."""
        paths = utils.split_paths(cfg.data) if cfg.data else []
        if not paths or not os.path.isdir(paths[0]):
            raise ValueError(f"data {cfg.data!r}: not a folder made by fairseq-preprocess")
        requested = requested_direction(cfg, paths[0])
        if cfg.left_pad_target:
            raise ValueError("--left-pad-target True: these models need targets padded right")
        pairs = cls.training_pairs(cfg, requested)
        # both are given for inference alone, which has no schedule
        if not (cfg.lang_pairs and requested):
            schedule = cls.schedule_of(cfg)
            check_schedule(schedule, pairs, cfg.main_pair, cfg.schedule_temperature)
        langs = languages(pairs)
        # at inference -s and -t may name others, which the checkpoint's model knows
        if requested:
            langs += [*requested.sources, requested.target]
        dictionaries = {
            lang: load_dictionary(paths, lang, cls.dictionary_class)
            for lang in dict.fromkeys(langs)
        }
        return cls(cfg, pairs, dictionaries, requested)

    def choose_streams(self) -> None:
        """Set ``synthetic``; ValueError, naming the option, for streams that there cannot be.

        Of a training alone: what reads a checkpoint names pairs of the model, to which the
        --synthetic-share and --join-at of the training's streams do not fit.
        """
        labelled = parse_labelled_pairs(self.cfg.lang_pairs)
        lines: List[str] = []
        if self.cfg.monolingual is not None:
            text, pairs = self.cfg.monolingual, self.back_translated_pairs
            lines = monolingual_streams(text, self.pairs, pairs)
        self.synthetic = [*labelled, *lines]
        self.synthetic_share = check_synthetic(self.cfg, self.synthetic)
        can = {pair_of(stream): self.can_translate(pair_of(stream)) for stream in labelled}
        check_directions(labelled, self.pairs, can)
        self.loss_threshold = LossThreshold(self.cfg.synthetic_after_loss, lines, self.run_state)
        check_join_at(self.joins, self.schedule, self.cfg.main_pair)

    @property
    def back_translated_pairs(self) -> List[str]:
        """Return the directions that may be trained on --monolingual; systems may allow fewer."""
        return self.pairs

    # ---------------------------------------------------------------- model

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> BaseFairseqModel:
        """Return the model for the pairs of the run or, from a checkpoint, of the checkpoint."""
        self.from_checkpoint = from_checkpoint
        stored = self._pairs_of_checkpoint(cfg) if from_checkpoint else []
        if stored:
            self._take_pairs(stored)
        if not from_checkpoint:
            self._check_training_options()
            store_pairs(cfg, self.pairs)
            self.choose_streams()
        # not TranslationTask's, which builds its own BLEU
        model = FairseqTask.build_model(self, cfg, from_checkpoint)
        if not from_checkpoint:
            self._prepare_training(model)
        if self.cfg.eval_bleu:
            self.bleu = self._build_bleu(model)
        return model

    def _take_pairs(self, pairs: List[str]) -> None:
        """Translate with the pairs of a checkpoint, whose dictionaries the data folder has."""
        self.pairs = pairs
        paths = utils.split_paths(self.cfg.data)
        for lang in languages(pairs):
            if lang not in self.dictionaries:
                self.dictionaries[lang] = load_dictionary(paths, lang, self.dictionary_class)
        self.choose_direction()

    def _check_training_options(self) -> None:
        """Raise ValueError for options of a translation, or that do not go with several pairs."""
        if self.cfg.bpe_models:
            raise ValueError(
                f"--bpe-models {self.cfg.bpe_models!r}: only fairseq-interactive and "
                "fairseq-generate know texts; allowed in training: leave it out"
            )
        if self.cfg.lang_pairs and self.requested:
            raise ValueError(
                f"--lang-pairs {self.cfg.lang_pairs} and -s {self.requested.source} "
                f"-t {self.requested.target}: training takes one or the other"
            )
        if str(self.cfg.ddp_comm_hook) == "fp16":
            raise ValueError(
                "--ddp-comm-hook fp16: gradients are exchanged once, after all pairs of an update, "
                "which torch's hooks do not see; allowed: none"
            )

    def _prepare_training(self, model: BaseFairseqModel) -> None:
        """Freeze, and set up what depends on the pairs that are trained."""
        self._freeze(model)  # first: the next ones ask for ``trained_pairs``
        self.pair_patience = self.build_patience()
        if self.cfg.pair_parallel:
            self.pair_parallel.sizes = pair_sizes(model, self.trained_pairs)

    def _pairs_of_checkpoint(self, cfg: Any) -> List[str]:
        """Return the pairs of a checkpoint's model; none for a model of one direction."""
        stored, named = stored_pairs(cfg), self.cfg.lang_pairs
        # fairseq-validate puts its --lang-pairs in the place of the pairs of the model, which may
        # have their reverses too
        if named and not self.requested and stored == parse_lang_pairs(named):
            return self.training_pairs(self.cfg, None)
        return stored

    def _freeze(self, model: nn.Module) -> None:
        """Freeze what --train-only leaves out; pairs of which nothing is left take no part."""
        if self.cfg.train_only:
            train_only(model, self.cfg.train_only)
            self.frozen = frozen_pairs(model, self.pairs)
            trained = trained_streams(self.synthetic, lambda pairs: frozen_pairs(model, pairs))
            check_frozen(self.frozen, self.cfg, self.pairs, self.schedule, self.synthetic, trained)
            self.synthetic = trained

    def build_patience(self) -> PairPatience:
        """Return what lets pairs leave that stop improving; systems may decide otherwise."""
        return PairPatience(self.cfg, self.trained_pairs, self.joins, self.run_state)

    def can_translate(self, pair: str) -> bool:
        """True if a model of ``self.pairs`` translates ``pair``; systems may allow more."""
        return pair in self.pairs

    def choose_direction(self) -> None:
        """Make -s and -t the task's direction; ValueError if the model does not translate it."""
        if not self.requested:
            return
        if not self.can_translate(str(self.requested)):
            raise ValueError(
                f"-s {self.requested.source} -t {self.requested.target}: the checkpoint translates "
                + ", ".join(self.pairs)
            )
        self.pair = str(self.requested)

    def scorer(self) -> PairBleu:
        """Return what scores validation batches with --eval-bleu; systems may score more."""
        return PairBleu(self.cfg, self.dictionaries)

    def _build_bleu(self, model: Any) -> PairBleu:
        """Return the scorer with a generator for each pair that is validated."""
        bleu, target = self.scorer(), self.tgt_dict
        for pair in self._logged_pairs():
            # fairseq gives it to the generator
            self.tgt_dict = self.dictionaries[target_of(pair)]
            models = [model.direction(pair)]
            generator = self.build_search(pair, models, bleu.generation)
            bleu.generators[pair] = generator
        self.tgt_dict = target
        return bleu

    def build_generator(self, models: List[BaseFairseqModel], args: Any, **options: Any) -> Any:
        """Return the search by ``common/beam_search.py`` over the models' chosen direction."""
        replaces = getattr(args, "replace_unk", None) is not None
        aligns = replaces or bool(getattr(args, "print_alignment", None))
        self._need_attention = self.keep_attention or aligns
        return self.build_search(self.pair, self._directions(models), args, **options)

    def build_search(
        self, pair: Optional[str], directions: List[Direction], args: Any, **options: Any
    ) -> Any:
        """Return the search by ``common/beam_search.py`` for the models of a pair."""
        return super().build_generator(directions, args, **fast_search(args, options))

    def inference_step(
        self, generator: Any, models: List[BaseFairseqModel], *more: Any, **options: Any
    ) -> List[List[Sample]]:
        """Return the hypotheses of every sentence in the chosen direction."""
        # a search has the directions that it was built with; those that score do not
        is_search = isinstance(generator, BeamSearchGenerator)
        directions = generator.model.models if is_search else self._directions(models)
        return super().inference_step(generator, directions, *more, **options)

    def _directions(self, models: Sequence[Any]) -> List[Any]:
        """Return the chosen direction of each model; ValueError where none is chosen."""
        if self.pair is None:
            raise ValueError(
                f"-s and -t: choose a direction that the checkpoint translates: "
                f"{', '.join(self.pairs)}"
            )
        directions = []
        for model in models:
            direction = model.direction(self.pair, self._need_attention)
            # fairseq's note that a model is not trained any more
            direction._is_generation_fast = model._is_generation_fast
            directions.append(direction)
        return directions

    # ---------------------------------------------------------------- lines that are typed

    def build_bpe(self, args: Any) -> Any:
        """Return what joins the target's sub-words; what cuts the sources goes to ``subwords``.

        Texts that are not cut stay as they are.
        """
        coder, name = self._build_coder(args), getattr(args, "_name", None)
        if coder is None or self.requested is None:
            return coder
        uncut = [lang for lang in self.requested.sources if not self.is_cut(lang, name)]
        self.subwords.coders = {**self.subwords.coders, **dict.fromkeys(uncut, Uncut())}
        if self.is_cut(self.requested.target, name):
            return coder
        # sentencepiece would make one symbol of several
        return DirectionCoder(coder, Uncut())

    def _build_coder(self, args: Any) -> Any:
        """Return --bpe's for the target; with --bpe-models, the sources' go to ``subwords``."""
        if not self.cfg.bpe_models:
            return super().build_bpe(args)
        assert self.requested is not None  # there is something to translate
        self.subwords.coders, target = build_subwords(
            self.cfg.bpe_models, args, self.requested, super().build_bpe
        )
        return target

    def is_cut(self, lang: str, bpe: Optional[str]) -> bool:
        """True if the sub-word model of this --bpe may have cut texts; systems may know better."""
        return True

    def build_tokenizer(self, args: Any) -> Any:
        """Return --tokenizer's; of several sources each has its own, which goes to ``subwords``."""
        sources = self.requested.sources if self.requested else ()
        if len(sources) > 1 and getattr(args, "_name", None) == "moses":
            build = super().build_tokenizer
            of_source = {lang: {**args, "source_lang": lang} for lang in sources}
            self.subwords.tokenizers = {
                lang: build(OmegaConf.create(options)) for lang, options in of_source.items()
            }
        return super().build_tokenizer(args)

    def get_interactive_tokens_and_lengths(
        self, lines: List[str], encode_fn: Callable[..., str]
    ) -> Tuple[List[Tensor], List[int]]:
        """Return tokens and lengths of lines, cut by the sub-words of the source language."""
        source = self.requested.source if self.requested else ""
        encode = partial(self.subwords.encode, source, encode_fn=encode_fn)
        return super().get_interactive_tokens_and_lengths(lines, encode)
