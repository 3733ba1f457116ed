"""Random translations, and files of them: plain, and as fairseq-generate prints them."""

import random

WORDS = [f"w{number}" for number in range(60)]


def sentences(count, seed=0):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 9))) for _ in range(count)]


def damaged(lines, share, seed):
    """The lines with this share of their words replaced."""
    rng = random.Random(seed)
    return [
        " ".join(rng.choice(WORDS) if rng.random() < share else word for word in line.split())
        for line in lines
    ]


def write(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def generated(lines, mark="D"):
    """What fairseq-generate prints for these translations: out of order, two of each sentence."""
    printed = ["2030-01-02 03:04:05 | INFO | fairseq_cli.generate | noise"]
    for number in sorted(range(len(lines)), key=lambda number: -number % 7):
        printed += [f"S-{number}\tsource", f"T-{number}\ttarget"]
        for score, text in ((-0.25, lines[number]), (-1.5, "worse")):
            printed.append(f"H-{number}\t{score}\t{text if mark == 'H' else '▁raw'}")
            if mark == "D":
                printed.append(f"D-{number}\t{score}\t{text}")
            printed.append(f"P-{number}\t-0.5 -0.25")
    return [*printed, "Generate test with beam=2: BLEU4 = 1.00"]
