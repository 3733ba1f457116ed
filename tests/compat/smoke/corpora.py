"""Small made data in every layout that a task of fairseq reads, each made when first asked for."""

import functools
import shutil
from pathlib import Path


class Corpora:
    """The folders of data that rows of the smoke runs name in braces.

    toy: the session's ToyCorpus. run: `conftest.run_command`. folder: where they are made.
    """

    def __init__(self, toy, run, folder):
        self.toy, self.run, self.folder = toy, run, Path(folder)

    def __getitem__(self, name):
        return getattr(self, name)

    def _binarise(self, folder, *options, splits=("train", "valid", "test"), text="", suffix=""):
        """Run fairseq-preprocess on the toy corpus, or on the files {split}{text} of a folder."""
        prefixes = []
        for split in splits:
            prefixes += [f"--{split}pref", f"{self.toy.text}/{split}{suffix}"]
        self.run("fairseq-preprocess", "--destdir", folder, *prefixes, *options)
        return folder

    @property
    def text(self):
        return self.toy.text

    @property
    def two(self):
        return self.toy.two

    @functools.cached_property
    def shared(self):
        """The pair xx-yy with the dictionary of all languages, which is its dict.txt too."""
        options = ["-s", "xx", "-t", "yy", "--srcdict", self.toy.dictionary, "--joined-dictionary"]
        folder = self._binarise(self.folder / "shared", *options)
        shutil.copy(self.toy.dictionary, folder / "dict.txt")
        return folder

    @functools.cached_property
    def lm(self):
        """The sentences of yy, with the dictionary of all languages."""
        options = ["--only-source", "--srcdict", self.toy.dictionary]
        return self._binarise(self.folder / "lm", *options, suffix=".yy")

    @functools.cached_property
    def several(self):
        """A folder for each language, the dictionary, and the pair xx-yy for validation."""
        folder = self.folder / "several"
        options = ["--only-source", "--srcdict", self.toy.dictionary]
        for language in ("xx", "yy"):
            self._binarise(folder / language, *options, suffix=f".{language}")
        shutil.copy(self.toy.dictionary, folder / "dict.txt")
        for path in self.shared.glob("valid.*"):
            shutil.copy(path, folder)
        return folder

    @functools.cached_property
    def languages(self):
        """Files train.xx.bin and so on of the languages in one folder, for cross_lingual_lm."""
        folder = self.folder / "languages"
        folder.mkdir()
        for language in ("xx", "yy"):
            for path in (self.several / language).glob("*.[bi][id][nx]"):
                shutil.copy(path, folder / f"{path.stem}.{language}{path.suffix}")
        shutil.copy(self.toy.dictionary, folder / "dict.txt")
        return folder

    @functools.cached_property
    def unpaired(self):
        """The pair xx-yy and, for semisupervised_translation, each language by itself."""
        folder = self.folder / "unpaired"
        shutil.copytree(self.shared, folder)
        for language in ("xx", "yy"):
            (folder / f"dict.{language}.txt").unlink()
            options = ["-s", language, "--only-source", "--srcdict", self.toy.dictionary]
            self._binarise(folder, *options)
        return folder

    @functools.cached_property
    def aligned(self):
        """The pair xx-yy with alignments."""
        text = self.folder / "aligned_text"
        shutil.copytree(self.toy.text, text)
        for split in ("train", "valid"):
            lines = (text / f"{split}.xx").read_text(encoding="utf-8").splitlines()
            (text / f"{split}.align").write_text("0-0 1-2 2-1\n" * len(lines), encoding="utf-8")
        folder = self.folder / "aligned"
        self.run(
            *("fairseq-preprocess", "-s", "xx", "-t", "yy", "--trainpref", text / "train"),
            *("--validpref", text / "valid", "--align-suffix", "align", "--destdir", folder),
            "--joined-dictionary",
        )
        return folder

    @functools.cached_property
    def sentences(self):
        """Two texts, and a label that says whether the first has five words."""
        folder = self.folder / "sentences"
        options = ["--only-source", "--srcdict", self.toy.dictionary]
        for number, language in enumerate(("xx", "yy", "zz")):
            part = folder / f"input{number}"
            self._binarise(part, *options, splits=("train", "valid"), suffix=f".{language}")
        labels = self.folder / "label_text"
        labels.mkdir()
        for split in ("train", "valid"):
            lines = (self.toy.text / f"{split}.xx").read_text(encoding="utf-8").splitlines()
            names = ["long" if len(line.split()) > 3 else "short" for line in lines]
            (labels / split).write_text("\n".join(names) + "\n", encoding="utf-8")
        self.run(
            *("fairseq-preprocess", "--only-source", "--destdir", folder / "label"),
            *("--trainpref", labels / "train", "--validpref", labels / "valid"),
        )
        return folder

    @functools.cached_property
    def ranking(self):
        """A text, two continuations of it, and the number of the right one."""
        folder = self.folder / "ranking"
        shutil.copytree(self.sentences, folder)
        for split in ("train", "valid"):
            count = self.toy.sizes[split]
            numbers = "".join(f"{index % 2}\n" for index in range(count))
            (folder / "label" / f"{split}.label").write_text(numbers, encoding="utf-8")
        return folder

    @functools.cached_property
    def shared_pair(self):
        """The pair xx-yy, whose dictionaries are that of `lm`, without a dict.txt."""
        folder = self.folder / "shared_pair"
        shutil.copytree(self.shared, folder)
        (folder / "dict.txt").unlink()
        return folder

    @property
    def examples(self):
        """The folder of fairseq's examples."""
        import fairseq

        return Path(fairseq.__file__).parent / "examples"

    @functools.cached_property
    def spm(self):
        """A small model of sentencepiece."""
        import sentencepiece

        sentencepiece.SentencePieceTrainer.train(
            input=str(self.toy.text / "train.xx"),
            vocab_size=20,
            minloglevel=2,
            model_prefix=str(self.folder / "spm"),
        )
        return self.folder / "spm.model"
