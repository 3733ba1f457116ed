"""Which sentences each pair has: divided among the pairs or not, one pair cut, language models.

All is cut from one binarised folder, in which line N is the same sentence in every language.
"""

import random
import shutil

from .settings import reverse
from .systems import cut_folder


def share_lines(count, pairs, seed, share):
    """Return {pair: line numbers from 0, in random order}.

    share: "disjoint" deals the `count` lines out among the pairs, so that no sentence is in two of
    them in any language; "all" gives every pair all of them.
    """
    order = list(range(count))
    random.Random(seed).shuffle(order)
    if share == "all":
        return {pair: order for pair in pairs}
    return {pair: order[place :: len(pairs)] for place, pair in enumerate(pairs)}


def cut(lines, percent):
    """Return the first `percent` of the lines, at least one; cuts are parts of larger cuts."""
    return lines[: max(1, round(len(lines) * percent / 100))]


def write_subset(source, destination, lines, dictionary_size):
    """Write the binarised sentences `lines` of `source`.{bin,idx}, in the order of the text."""
    from fairseq.data import indexed_dataset

    whole = indexed_dataset.make_dataset(str(source), impl="mmap")
    builder = indexed_dataset.make_builder(
        f"{destination}.bin", impl="mmap", vocab_size=dictionary_size
    )
    for line in sorted(lines):
        builder.add_item(whole[line])
    builder.finalize(f"{destination}.idx")


def write_lines(path, lines):
    """Write the numbers of the lines, from 1, for readers who want the text."""
    path.write_text("".join(f"{line + 1}\n" for line in sorted(lines)), encoding="utf-8")


class Cutter:
    """Makes folders of training data below DATA/bin from DATA/bin/all.

    sizes: {language: entries of its dictionary with the special symbols}.
    """

    def __init__(self, settings, data, sizes):
        self.settings, self.sizes = settings, sizes
        self.bin = data / "bin"
        self.record = data / "lines"

    def translation(self, name, lines):
        """Make the folder `name`: training `lines` {pair: numbers}, the whole validation set."""
        folder = self.bin / name
        folder.mkdir()
        self.record.mkdir(exist_ok=True)
        for language in self.settings.languages:
            shutil.copy(self.bin / "all" / f"dict.{language}.txt", folder)
        for pair in self.settings.pairs:
            for language in pair.split("-"):
                stem = f"{pair}.{language}"
                source, size = self.bin / "all" / f"train.{stem}", self.sizes[language]
                write_subset(source, folder / f"train.{stem}", lines[pair], size)
                for ending in ("bin", "idx"):
                    shutil.copy(self.bin / "all" / f"valid.{stem}.{ending}", folder)
            write_lines(self.record / f"{name}.{pair}", lines[pair])

    def language_model(self, direction, lines):
        """Make a folder for the stock task language_modeling: target sides of the other pairs."""
        target = direction.split("-")[1]
        others = [
            pair
            for pair in self.settings.pairs
            if target in pair.split("-") and pair not in (direction, reverse(direction))
        ]
        folder = self.bin / f"lm.{direction}"
        folder.mkdir()
        shutil.copy(self.bin / "all" / f"dict.{target}.txt", folder / "dict.txt")
        # with sentences = all every pair has the same lines: once is enough
        numbers = sorted({line for pair in others for line in lines[pair]})
        stem = f"{others[0]}.{target}"
        source = self.bin / "all" / f"train.{stem}"
        write_subset(source, folder / "train", numbers, self.sizes[target])
        for ending in ("bin", "idx"):
            shutil.copy(self.bin / "all" / f"valid.{stem}.{ending}", folder / f"valid.{ending}")
        write_lines(self.record / f"lm.{direction}", numbers)
        return len(numbers)


def make_cuts(settings, data, count, sizes):
    """Make every folder beside DATA/bin/all that a system needs; return {folder: sentences}.

    count: number of training sentences.
    """
    cutter, counts = Cutter(settings, data, sizes), {}
    if settings.share["zero_shot"] == "disjoint":
        lines = share_lines(count, settings.pairs, settings.seed, "disjoint")
        cutter.translation("disjoint", lines)
    lines = share_lines(count, settings.pairs, settings.seed, settings.share["low_resource"])
    for pair in settings.low_pairs:
        for percent in settings.percents:
            few = cut(lines[pair], percent)
            name = cut_folder(pair, percent)
            cutter.translation(name, {**lines, pair: few})
            counts[name] = len(few)
    for direction in settings.low_directions:
        counts[f"lm.{direction}"] = cutter.language_model(direction, lines)
    return counts
