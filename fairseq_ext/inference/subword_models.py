"""The files that cut texts into sub-words: where they are, of which kind, for which language."""

import os
import re
from pathlib import Path
from typing import Any, Dict, Iterable, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from fairseq.data import Dictionary, encoders
from omegaconf import OmegaConf

from ..streams.language_pair import LanguagePair
from ..streams.subwords import FILE_OPTIONS, MARKS, DirectionCoder, Uncut

# the argument ``subwords`` of ``load``: a file for all languages, a file for each, or "none"
SubwordsArgument = Union[None, str, os.PathLike, Mapping[str, Union[str, os.PathLike]]]
NONE = "none"
# names without a language, in the order in which they are looked for
SHARED_NAMES = (
    *("sentencepiece.bpe.model", "sentencepiece.model", "spm.model", "subwords.model"),
    *("bpe.codes", "fastbpe.codes", "bpecodes", "codes", "code"),
)
# of a language L
LANGUAGE_NAMES = (
    *("{0}.sentencepiece.bpe.model", "{0}.model", "sentencepiece.{0}.model", "spm.{0}.model"),
    *("{0}.codes", "codes.{0}", "bpe.{0}.codes"),
)
# kinds that cut any text into its parts
WITHOUT_FILE = ("characters", "bytes")
# a dictionary with a larger part of such entries was made of sub-words
SPELLINGS = {"sentencepiece": re.compile("^\u2581"), "subword_nmt": re.compile("@@$")}
SUBWORD_SHARE = 0.2
# the same of the words of the text, by the counts of the dictionary: where words have no blanks
# between them, as in Khmer, few entries begin with the mark, and one of each sentence does
MARKED_SHARE = 0.01
# --bpe NAME -> options that name files, which are those of all languages
SHARED_FILE_OPTIONS: Dict[str, Tuple[str, ...]] = {
    "byte_bpe": ("sentencepiece_model_path",),
    "gpt2": ("gpt2_encoder_json", "gpt2_vocab_bpe"),
    "hf_byte_bpe": ("bpe_merges", "bpe_vocab"),
    "bert": ("bpe_vocab_file",),
}
# options of --bpe that draw the pieces of a text at random, which is for training alone
DRAWN = ("sentencepiece_enable_sampling",)


class SubwordsMissing(ValueError):
    """A dictionary consists of sub-words, and nothing cuts texts into them.

    reason: the message without what is allowed, for commands, which have options of their own.
    """

    def __init__(self, language: str, kind: str):
        self.reason = (
            f"dict.{language}.txt holds sub-words ({kind}), and no model that makes them was found "
            "beside the checkpoint or in the data folder"
        )
        kinds = "".join(f"bpe={name!r}, " for name in WITHOUT_FILE)
        super().__init__(
            f"{self.reason}; allowed: subwords=FILE, subwords={{LANGUAGE: FILE}}, {kinds}or "
            f"subwords={NONE!r} for texts that are cut already"
        )


class SubwordModels(NamedTuple):
    """Files of sub-word models.

    kind: a name of --bpe, such as "sentencepiece", or None for texts that stay as they are.
    by_language: {language: file}; all languages have the same file where one was found for all.
    options: of that --bpe beside the file; some kinds name files there (``SHARED_FILE_OPTIONS``).
    """

    kind: Optional[str] = None
    by_language: Mapping[str, Path] = {}
    options: Mapping[str, Any] = {}

    def coder(self, language: str) -> Any:
        """Return fairseq's coder of a language; None where texts stay as they are."""
        if self.kind is None:
            return None
        options = {name: value for name, value in self.options.items() if name not in DRAWN}
        values = {"_name": self.kind, **options}
        if self.kind in FILE_OPTIONS:
            values[FILE_OPTIONS[self.kind]] = str(self.by_language[language])
        return encoders.build_bpe(OmegaConf.create(values))

    @property
    def shared_files(self) -> Dict[str, str]:
        """Return {option: file or address} of the options that name one for all languages."""
        names = SHARED_FILE_OPTIONS.get(self.kind or "", ())
        return {name: self.options[name] for name in names if self.options.get(name)}

    def coders(self, languages: Iterable[str]) -> Dict[str, Any]:
        """Return {language: coder}; languages of one file share the coder."""
        of_file: Dict[Optional[Path], Any] = {}
        for language in languages:
            path = self.by_language.get(language)
            if path not in of_file:
                of_file[path] = self.coder(language)
        return {language: of_file[self.by_language.get(language)] for language in languages}


def bpe_of(path: Path) -> str:
    """Return the --bpe of a file: by its beginning, which is text in two of the three formats."""
    with open(path, "rb") as stream:
        head = stream.read(500)
    # the first byte of a sentencepiece model, a tag, is that of a line feed
    if path.suffix == ".model" or head.startswith(b"\n") or b"\0" in head:
        return "sentencepiece"
    first = head.partition(b"\n")[0]
    # fastBPE's codes have a number in a third column, and no line of the version
    words = first.split()
    is_fast = not first.startswith(b"#version") and len(words) == 3 and words[2].isdigit()
    return "fastbpe" if is_fast else "subword_nmt"


def find_subwords(
    folders: Sequence[Path],
    languages: Sequence[str],
    stored: Optional[Mapping[str, Any]] = None,
    named: SubwordsArgument = None,
    kind: Optional[str] = None,
) -> SubwordModels:
    """Return the sub-word models of languages.

    Args:
        folders: to be looked through, in this order.
        languages: of the model.
        stored: the options of --bpe that the training was given.
        named: what the caller says; wins over all else.
        kind: the --bpe, where the file does not show it.

    Raises FileNotFoundError or ValueError for what was given and is not there.
    """
    if isinstance(named, str) and named == NONE:
        return SubwordModels()
    if kind in WITHOUT_FILE and named is not None:
        raise ValueError(f"subwords {named!r}: bpe {kind!r} has no file; allowed: leave it out")
    options = {key: value for key, value in (stored or {}).items() if key != "_name"}
    name = stored.get("_name") if stored else None
    if kind in WITHOUT_FILE and name is None:
        return SubwordModels(kind)
    option = FILE_OPTIONS.get(name or "")
    path = options.pop(option, None) if option else None
    if named is not None:
        return _as_trained(_named(named, languages, kind), name, options)
    if name:
        if option is None:  # the same for all languages; characters and bytes have no file
            models = SubwordModels(name, {}, options)
            files = {key: _moved(file, folders) for key, file in models.shared_files.items()}
            moved = {key: str(place) for key, place in files.items() if place}
            return models._replace(options={**options, **moved})
        present = _moved(path, folders) if path else None
        if present:
            return SubwordModels(name, dict.fromkeys(languages, present), options)
    return _as_trained(_in_folders(folders, languages, kind), name, options)


def _moved(path: str, folders: Sequence[Path]) -> Optional[Path]:
    """Return the file of a training, which may have been moved to one of the folders; or None."""
    places = [Path(path), *(folder / Path(path).name for folder in folders)]
    return next((place for place in places if place.is_file()), None)


def _as_trained(
    models: SubwordModels, name: Optional[str], options: Mapping[str, Any]
) -> SubwordModels:
    """Return models of the training's kind with its options: another separator is no sub-word."""
    return models._replace(options=options) if name and models.kind == name else models


def _named(named: SubwordsArgument, languages: Sequence[str], kind: Optional[str]) -> SubwordModels:
    """Return what the caller names; a mapping has to name all languages."""
    if isinstance(named, Mapping):
        files = {language: Path(path) for language, path in named.items()}
    else:
        assert named is not None  # by the caller
        files = dict.fromkeys(languages, Path(named))
    missing = [language for language in languages if language not in files]
    if missing:
        raise ValueError(
            f"subwords: no file for {missing[0]}; allowed: a file for each of "
            f"{', '.join(languages)}, one for all, or {NONE!r}"
        )
    for language, path in files.items():
        if not path.is_file():
            raise FileNotFoundError(f"subwords: there is no file {path} for {language}")
    return _of_files(files, kind)


def _of_files(files: Mapping[str, Path], kind: Optional[str]) -> SubwordModels:
    """Return the models; ValueError for files of several kinds, and for an unknown one."""
    kinds = {kind} if kind else {bpe_of(path) for path in files.values()}
    if len(kinds) > 1:
        raise ValueError(f"subwords: files of several kinds: {', '.join(sorted(kinds))}")
    (only,) = kinds
    if only not in FILE_OPTIONS:
        raise ValueError(f"bpe {only!r}: allowed: {', '.join(FILE_OPTIONS)}")
    return SubwordModels(only, dict(files))


def _in_folders(
    folders: Sequence[Path], languages: Sequence[str], kind: Optional[str]
) -> SubwordModels:
    """Return what stands in the folders under one of the usual names; nothing where there is none.

    Files by language win: a folder may hold those of other languages as well.
    """
    for folder in folders:
        files = {}
        for language in languages:
            # a language model has texts of no language
            names = (pattern.format(language) for pattern in LANGUAGE_NAMES if language)
            path = next((folder / name for name in names if (folder / name).is_file()), None)
            if path:
                files[language] = path
        if languages and len(files) == len(languages):
            return _of_files(files, kind)
        shared = next((folder / name for name in SHARED_NAMES if (folder / name).is_file()), None)
        if shared:
            return _of_files({**dict.fromkeys(languages, shared), **files}, kind)
    return SubwordModels()


def fitting(models: SubwordModels, dictionaries: Mapping[str, Dictionary]) -> SubwordModels:
    """Return models that were found, or none where no dictionary has an entry of their spelling.

    The files of another training, in a folder above, would make every word of a text unknown.
    """
    mark = MARKS.get(models.kind or "")
    if mark is None or not dictionaries:
        return models
    symbols = (word for dictionary in dictionaries.values() for word in dictionary.symbols)
    return models if any(mark in word for word in symbols) else SubwordModels()


def spelling_of(dictionary: Dictionary) -> Optional[str]:
    """Return what a dictionary says that its words are, or None where they are whole words."""
    first = dictionary.nspecial
    words, counts = dictionary.symbols[first:], dictionary.count[first:]
    for kind, pattern in SPELLINGS.items():
        share = sum(bool(pattern.search(word)) for word in words) / max(len(words), 1)
        if share > SUBWORD_SHARE:
            return kind
    pattern = SPELLINGS["sentencepiece"]
    marked = sum(count for word, count in zip(words, counts) if pattern.search(word))
    if marked <= MARKED_SHARE * sum(counts):
        return None
    # entries without a count fill the dictionary up
    is_longer = any(len(word) > 1 for word, count in zip(words, counts) if count)
    return "sentencepiece" if is_longer else "characters or bytes"


def check_spelling(models: SubwordModels, dictionaries: Mapping[str, Dictionary]) -> None:
    """Raise SubwordsMissing where a dictionary holds sub-words and nothing cuts texts into them.

    Such a model would read nearly every word as unknown.
    """
    if models.kind is not None:
        return
    for language, dictionary in dictionaries.items():
        kind = spelling_of(dictionary)
        if kind:
            raise SubwordsMissing(language, kind)


def direction_coder(
    task: Any, coders: Mapping[str, Any], direction: LanguagePair, kind: Optional[str]
) -> Any:
    """Return the coder of a direction for a task; of several languages the task gets the sources'.

    coders: {language: coder}, of all or of none. None where texts stay as they are. kind: --bpe.
    """
    if coders.get(direction.target) is None:
        return None
    if hasattr(task, "subwords"):
        coders = {
            lang: coders[lang] if task.is_cut(lang, kind) else Uncut()
            for lang in (*direction.sources, direction.target)
        }
        task.subwords.coders = {lang: coders[lang] for lang in direction.sources}
    source, target = coders[direction.sources[0]], coders[direction.target]
    return source if source is target else DirectionCoder(source, target)
