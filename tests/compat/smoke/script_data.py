"""Made files that scripts of fairseq's examples read, each made when first asked for."""

import functools
import json
import shutil

import numpy as np

from .example_data import write_lines
from .recordings import RATE, write_dictionary, write_wave

PHONES = ("\u2581AA", "B", "\u2581K", "T")
WORDS = ("\u2581one", "two", "\u2581three")
PAIR = "train.xx-yy"


class ScriptData:
    """The files that rows of scripts name in braces. texts: Corpora."""

    def __init__(self, texts):
        self.texts = texts
        self.folder = texts.folder / "scripts"
        self.folder.mkdir()
        self.random = np.random.default_rng(3)

    def _new(self, name):
        folder = self.folder / name
        folder.mkdir()
        return folder

    @functools.cached_property
    def vocabulary(self):
        """Two words, the vocabulary of a pointer-generator."""
        path = self.folder / "vocabulary"
        write_lines(path, ("an1", "av1"))
        return path

    @functools.cached_property
    def bytes_of_gpt2(self):
        """The two files of GPT-2's sub-words, which are single bytes numbered by themselves."""
        from fairseq.data.encoders.gpt2_bpe_utils import bytes_to_unicode

        folder = self._new("gpt2")
        numbers = {letter: byte for byte, letter in bytes_to_unicode().items()}
        (folder / "encoder.json").write_text(json.dumps(numbers), encoding="utf-8")
        write_lines(folder / "vocab.bpe", ["#version: 0.2"])
        return folder

    @functools.cached_property
    def overlapping_pair(self):
        """A pair of which two lines come twice, one of them in the test set too."""
        folder = self._new("pair")
        for side in ("xx", "yy"):
            write_lines(folder / f"{PAIR}.{side}", [f"{side}{i}" for i in (1, 2, 3, 1, 2)])
            write_lines(folder / f"test.xx-yy.{side}", [f"{side}{i}" for i in (2, 9)])
        return folder

    @functools.cached_property
    def mixture(self):
        """Two systems of one sentence, near to another of two references each."""
        folder = self._new("mixture")
        references = ("a b c d e f", "g h i j k l")
        first = ["S-0\tx", f"T-0\t{references[0]}"]
        write_lines(folder / "references", first + [f"R-0\t{text}" for text in references])
        for system, text in (("first", "a b c d e x"), ("second", "g h i j y l")):
            write_lines(folder / system, [*first, f"D-0\t-0.5\t{text}"])
        return folder

    @functools.cached_property
    def librispeech(self):
        """A manifest, transcripts where LibriSpeech has them, and the words expected of both."""
        folder = self._new("librispeech")
        (folder / "1" / "7").mkdir(parents=True)
        write_lines(
            folder / "1" / "7" / "1-7.trans.txt", ["1-7-0 HE SAID SO TOO", "1-7-1 NO ONE DID IT"]
        )
        write_lines(folder / "train.tsv", [folder, "1/7/1-7-1.flac\t9", "1/7/1-7-0.flac\t8"])
        write_lines(folder / "words", ["NO ONE DID IT", "HE SAID SO TOO"])
        write_lines(
            folder / "letters", ["N O | O N E | D I D | I T |", "H E | S A I D | S O | T O O |"]
        )
        return folder

    @functools.cached_property
    def phones(self):
        """A lexicon, a dictionary of phones, and two transcripts, of which one word differs."""
        folder = self._new("phones")
        write_lines(folder / "lexicon", ["HE HH IY", "SAID S EH D", "SO S OW"])
        write_dictionary(folder / "dict.txt", ("HH", "IY", "S", "EH", "D"))
        write_lines(folder / "hypotheses", ["HE SO", "SAID"])
        write_lines(folder / "references", ["HE SAID", "SAID SO"])
        return folder

    @functools.cached_property
    def teacher(self):
        """Units of two recordings, and their phones."""
        folder = self._new("teacher")
        write_lines(folder / "valid.tsv", ["/", "a.wav\t10", "b.wav\t9"])
        write_lines(folder / "valid.km", ["1 1 2 2", "3 3 3"])
        write_lines(folder / "dev.tsv", ["a\tAA0,AA1,B,B", "b\tB,B,C"])
        return folder

    @functools.cached_property
    def reranked(self):
        """Two hypotheses of each sentence, a model of sentencepiece and its dictionary."""
        import sentencepiece

        folder = self._new("reranked")
        for split in ("train", "valid"):
            lines = (self.texts.text / f"{split}.yy").read_text(encoding="utf-8").splitlines()
            pairs = [(line, " ".join(line.split()[::-1])) for line in lines]
            write_lines(folder / f"{split}.hypotheses", [text for pair in pairs for text in pair])
        sources = (self.texts.text / "valid.xx").read_text(encoding="utf-8").splitlines()
        output = []
        for number, (source, pair) in enumerate(zip(sources, pairs)):
            output.append(f"S-{number}\t{source}")
            output += [f"D-{number}\t-0.{place}\t{text}" for place, text in enumerate(pair, 1)]
        write_lines(folder / "valid.output", output)
        sentencepiece.SentencePieceTrainer.Train(
            input=f"{self.texts.text}/train.xx,{self.texts.text}/train.yy",
            model_prefix=str(folder / "pieces"),
            vocab_size=60,
            hard_vocab_limit=False,
            minloglevel=2,
        )
        lines = (folder / "pieces.vocab").read_text(encoding="utf-8").splitlines()[3:]
        write_dictionary(folder / "dict.txt", [line.split("\t")[0] for line in lines])
        return folder

    @functools.cached_property
    def joint(self):
        """Recordings with phones, where these end, and words; `text`: phones with words."""
        folder, text = self._new("joint"), self._new("joint_text")
        for name, symbols in (("src", (*PHONES, "<mask>")), ("tgt", WORDS)):
            write_dictionary(folder / f"{name}_dict.txt", symbols)
        for name, dictionary in (("config", "tgt"), ("config_s2p", "src")):
            lines = [
                f"vocab_filename: {dictionary}_dict.txt",
                "src_vocab_filename: src_dict.txt",
                "use_audio_input: true",
            ]
            write_lines(folder / f"{name}.yaml", lines)
        for split in ("train", "valid"):
            self._joint_split(folder, split)
            for side, symbols in (("pho", PHONES), ("wrd", WORDS)):
                lines = [self._symbols(symbols, 3 + line % 4) for line in range(12)]
                write_lines(text / f"{split}.{side}", lines)
        self.texts.run(
            *("fairseq-preprocess", "-s", "pho", "-t", "wrd", "--trainpref", text / "train"),
            *("--validpref", text / "valid", "--srcdict", folder / "src_dict.txt"),
            *("--tgtdict", folder / "tgt_dict.txt", "--destdir", folder / "text"),
        )
        for path in [*folder.glob("*_dict.txt"), *folder.glob("*.yaml")]:
            shutil.copy(path, folder / "text")
        return folder

    def _symbols(self, symbols, count):
        return " ".join(self.random.choice(symbols, size=count))

    def _joint_split(self, folder, split):
        """Write recordings, and the manifests of the three kinds of speech."""
        aligned = ["id\taudio\tn_frames\ttgt_text\talign"]
        translated = ["id\taudio\tn_frames\tsrc_text\ttgt_text\tspeaker"]
        alone = [folder]
        for number in range(8):
            name, samples = f"clip-{split}{number}", RATE // 2 + 320 * number
            path = folder / f"{name}.wav"
            write_wave(path, self.random.normal(size=samples) * 3000)
            start = f"{name}\t{path}\t{samples}"
            ends = "0.250000 0.500000 0.750000 1.000000"
            aligned.append(f"{start}\t{self._symbols(PHONES, 4)}\t{ends}")
            phones, words = self._symbols(PHONES, 4), self._symbols(WORDS, 3)
            translated.append(f"{start}\t{phones}\t{words}\tS")
            alone.append(f"{name}.wav\t{samples}")
        for kind, lines in (("aligned", aligned), ("translated", translated), ("alone", alone)):
            write_lines(folder / f"{split}_{kind}.tsv", lines)
