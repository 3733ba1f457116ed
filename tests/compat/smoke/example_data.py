"""Made data of fairseq's examples, each made when first asked for."""

import functools
import json
import shutil

import numpy as np

SPLITS = ("train", "valid")
PHONES = ("AA", "B", "K", "T")


class ExampleData:
    """The data that rows of examples name in braces. texts: Corpora. recordings: Recordings."""

    def __init__(self, texts, recordings):
        self.texts, self.recordings = texts, recordings
        self.folder = texts.folder / "examples"
        self.folder.mkdir()

    def _new(self, name):
        folder = self.folder / name
        folder.mkdir()
        return folder

    def _lines(self, split, language):
        path = self.texts.text / f"{split}.{language}"
        return path.read_text(encoding="utf-8").splitlines()

    @functools.cached_property
    def hypotheses(self):
        """Two hypotheses of each sentence, the second reversed, with the counts of their BLEU."""
        import sacrebleu

        folder, text = self._new("hypotheses"), self._new("hypothesis_text")
        (folder / "bleu").mkdir()
        for split in SPLITS:
            sources, targets, scores = [], [], []
            for source, target in zip(self._lines(split, "xx"), self._lines(split, "yy")):
                for words in (target.split(), target.split()[::-1]):
                    score = sacrebleu.corpus_bleu([" ".join(words)], [[target]])
                    values = [score.score, score.sys_len, score.ref_len]
                    sources.append(source)
                    targets.append(" ".join(words))
                    scores.append(" ".join(map(str, values + score.counts + score.totals)))
            write_lines(text / f"{split}.src", sources)
            write_lines(text / f"{split}.tgt", targets)
            write_lines(folder / "bleu" / f"{split}.bleu", scores)
        for side in ("src", "tgt"):
            side_text = self._new(f"hypothesis_{side}")
            for split in SPLITS:
                shutil.copy(text / f"{split}.{side}", side_text / split)
            self.texts.run(
                *("fairseq-preprocess", "--only-source", "--destdir", folder / f"input_{side}"),
                *("--trainpref", side_text / "train", "--validpref", side_text / "valid"),
                *("--srcdict", self.texts.toy.dictionary),
            )
        return folder

    @functools.cached_property
    def laser(self):
        """The file that names the binarised pair xx-yy."""
        pair = self.texts.shared
        entry = {"type": "translation", "id": 0}
        files = {side: str(pair / f"train.xx-yy.{side}") for side in ("xx", "yy")}
        config = {
            "src_vocab": str(self.texts.toy.dictionary),
            "tgt_vocab": str(self.texts.toy.dictionary),
            "train": [{**entry, "src": files["xx"], "tgt": files["yy"]}],
            "valid": [{**entry, "src": "/unused", "tgt": "/unused"}],
        }
        path = self.folder / "laser.json"
        path.write_text(json.dumps(config), encoding="utf-8")
        return path

    def _questions(self, name, make):
        """Make a folder with the dictionary and a file of JSON for each split."""
        folder = self._new(name)
        shutil.copy(self.texts.toy.dictionary, folder / "dict.txt")
        for split in SPLITS:
            lines = [json.dumps(make(number)) for number in range(8)]
            write_lines(folder / f"{split}.jsonl", lines)
        return folder

    @functools.cached_property
    def questions(self):
        """Questions with five answers, in the format of CommonsenseQA."""

        def question(number):
            choices = [{"label": "ABCDE"[i], "text": f"un{(number + i) % 9}"} for i in range(5)]
            return {
                "answerKey": "ABCDE"[number % 5],
                "question": {"stem": f"an{number % 9} av{number % 8}", "choices": choices},
            }

        return self._questions("questions", question)

    @functools.cached_property
    def schemas(self):
        """Sentences with a gap and two words for it, in the format of WinoGrande."""

        def schema(number):
            return {
                "sentence": f"an{number % 9} av{number % 8} _ at1",
                "option1": f"un{number % 9}",
                "option2": f"un{(number + 1) % 9} uv1",
                "answer": "12"[number % 2],
            }

        return self._questions("schemas", schema)

    @functools.cached_property
    def domains(self):
        """Spectrograms with a text, in splits that name two languages and a domain."""
        folder = self.folder / "domains"
        shutil.copytree(self.recordings.speech, folder)
        for split in ("train", "valid", "test"):
            for language in ("aa", "bb"):
                shutil.copy(folder / f"{split}.tsv", folder / f"{split}_{language}_aa_talks.tsv")
        return folder

    @functools.cached_property
    def transcripts(self):
        """Spectrograms with a text in both languages, and in `text` sentences without speech."""
        folder = self.folder / "transcripts"
        shutil.copytree(self.recordings.speech, folder)
        shutil.copy(folder / "dict.txt", folder / "src_dict.txt")
        with (folder / "config.yaml").open("a", encoding="utf-8") as stream:
            stream.write("src_vocab_filename: src_dict.txt\n")
        for path in folder.glob("*.tsv"):
            first, *rows = path.read_text(encoding="utf-8").splitlines()
            column = first.split("\t").index("tgt_text")
            rows = [f"{row}\t{row.split(chr(9))[column]}" for row in rows]
            write_lines(path, [f"{first}\tsrc_text", *rows])
        text = self._new("transcript_text")
        for language in ("en", "de"):
            write_lines(text / f"train.{language}", ["RED GREEN", "BLUE RED GREEN", "GREEN"] * 4)
        self.texts.run(
            *("fairseq-preprocess", "-s", "en", "-t", "de", "--trainpref", text / "train"),
            *("--destdir", folder / "text", "--srcdict", folder / "dict.txt"),
            *("--tgtdict", folder / "dict.txt"),
        )
        return folder

    @functools.cached_property
    def unpaired_speech(self):
        """Features of recordings with phones, and in `phones` other sequences of phones."""
        folder, text = self._new("unpaired_speech"), self._new("phone_text")
        random = np.random.default_rng(1)

        def phones():
            return " ".join(random.choice(PHONES, size=6))

        for split in SPLITS:
            lengths = random.integers(8, 20, size=8)
            features = random.normal(size=(lengths.sum(), 16)).astype("float32")
            np.save(folder / f"{split}.npy", features)
            write_lines(folder / f"{split}.lengths", map(str, lengths))
            write_lines(folder / f"{split}.phn", [phones() for _ in lengths])
        write_lines(text / "train", [f"<SIL> {phones()} <SIL>" for _ in range(16)])
        self.texts.run(
            *("fairseq-preprocess", "--only-source", "--trainpref", text / "train"),
            *("--destdir", folder / "phones"),
        )
        shutil.copy(folder / "phones" / "dict.txt", folder / "dict.phn.txt")
        return folder


def write_lines(path, lines):
    """Write lines of text."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
