"""Two languages with one subword model and one dictionary: raw parallel text -> binarised data."""

from .commands import execute, preprocess_command
from .corpus import apply_subwords, copy_plain
from .files import lines_of
from .subwords import SUBWORDS


def build_joint(settings, bpe, inputs, folder, workers):
    """Make raw/, text/, the subword model and bin/ in the empty `folder`; return the counts.

    settings: languages, directions, source, files, vocabulary, and subword_lines and train_lines
    (0 = all) of a recipe. bpe: a name of SUBWORDS. inputs: see `corpus.inputs_of`.
    """
    for name in ("raw", "text"):
        (folder / name).mkdir()
    counts = copy_plain(inputs, folder / "raw", settings.train_lines)
    kind = SUBWORDS[bpe]
    training = [folder / "raw" / f"train.{language}" for language in settings.languages]
    kind.learn(training, settings.vocabulary, settings.subword_lines, folder / kind.file)
    model = kind(folder / kind.file)
    for split, language in inputs:
        name = f"{split}.{language}"
        apply_subwords(model, folder / "raw" / name, folder / "text" / name)
    pair = settings.directions[0]
    command = preprocess_command(pair, settings.files, folder / "text", folder / "bin", workers)
    execute([*command, "--joined-dictionary"], folder / "preprocess.log")
    counts["dictionary"] = sum(1 for _ in lines_of(folder / "bin" / f"dict.{settings.source}.txt"))
    return counts


def print_counts(settings, counts, data):
    """Print the sentences of each split, and the size of the dictionary."""
    for split, name in settings.files.items():
        print(f"{split:<6} {counts[split]:>9,} sentence pairs ({name})")
    print(f"dropped {counts['dropped']:>8,} training pairs with an empty side")
    print(f"joint dictionary of {counts['dictionary']:,} subwords")
    print(f"ready: {data}")
