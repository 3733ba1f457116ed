"""Made-up reviews: one word of each tells its label."""

from fairseq_cli import preprocess as preprocessing

SIZES = {"train": 120, "valid": 20, "test": 20}
KNOWN = {"pos": ["good", "great"], "neg": ["bad", "poor"]}
OTHERS = "the film was a plot of it and so".split()


def write_reviews(folder, rng):
    """SPLIT.text and SPLIT.label; one word of each text tells its label."""
    for split, size in SIZES.items():
        lines = {"text": [], "label": []}
        for _ in range(size):
            label = rng.choice(sorted(KNOWN))
            words = rng.choices(OTHERS, k=rng.randint(1, 7))
            words.insert(rng.randint(0, len(words)), rng.choice(KNOWN[label]))
            lines["text"].append(" ".join(words))
            lines["label"].append(label)
        for side, text in lines.items():
            path = folder / f"{split}.{side}"
            path.write_text("".join(line + "\n" for line in text), encoding="utf-8")


def binarise(folder, *options, splits=("train", "valid", "test")):
    """fairseq-preprocess of the text files, inside this process."""
    words = [word for split in splits for word in (f"--{split}pref", folder / split)]
    words += ["-s", "text", "-t", "label", "--workers", 1, "--destdir", folder / "bin", *options]
    parser = preprocessing.options.get_preprocessing_parser()
    preprocessing.main(parser.parse_args([str(word) for word in words]))
    return folder / "bin"
