"""Lines that nobody expects, as bytes: for fairseq-interactive."""

import random
from typing import List

BY_HAND = [
    b"",
    b"   ",
    b"\t\t",
    "an1 av2 an3".encode(),
    "😀 an1 👩‍👩‍👧 av2".encode(),
    "שלום an1 \u202eav2\u202c".encode(),
    "e\u0301\u0301\u0301 a\u0308n1".encode(),
    b"an1 \x00 av2 an3\x00",
    b"\x01\x02\x7f an1\x1b[0m av2",
    b"an1 </s> av2",
    b"<s> an1 <pad> <pad> av2 <unk>",
    b"</s>",
    b"<pad>",
    b"<unk> <unk>",
    b"an1\tav2\tan3",
    "an1\u2028av2\u2029an3\u0085an4".encode(),
    b"an1\x1cav2\x1dan3\x0ban4\x0can5",
    b"an1\rav2 an3\r",
    "\ufeffan1 av2".encode(),
    b"\xff\xfe an1 av2",
    b"an1 \xc3 av2",
    b"x" * 20_000,
    b"an1 " * 5_000,
    b"an1 ||| av2 ||| an3",
    b"|||",
    b"an1 |||",
    b"__task_xx-yy__ an1 av2",
    b"H-0\t-1.0\tan1",
    b'an1 "av2" \\ % {} $(an3) `',
    b"-s -t --beam",
    "\u200b\u200b an1\u00a0av2 \u3000".encode(),
    ("a" + "\u0300" * 500 + " av2").encode(),
    b"good film was it",
    b"pos",
]
PIECES = ["an1", "av2", "an3", "at1", "good", "film", "pos", "<unk>", "</s>", "<pad>", "😀", "|||"]
PIECES += ["\x00", "\t", "\u2028", "\u0301", "\u202e", "\x1f", "\r", "madeupword0000", "x" * 300]


def odd_lines(count: int, seed: int) -> List[bytes]:
    """Lines without their line feeds: those written by hand, then random ones."""
    rng = random.Random(seed)
    lines = list(BY_HAND[:count])
    while len(lines) < count:
        kind = rng.random()
        if kind < 0.05:  # any bytes
            line = bytes(rng.choice([byte for byte in range(256) if byte != 10]) for _ in range(20))
        elif kind < 0.06:
            line = " ".join(rng.choices(PIECES[:4], k=rng.randint(500, 5_000))).encode()
        else:
            glue = rng.choice(["", " ", " ", "  "])
            line = glue.join(rng.choices(PIECES, k=rng.randint(0, 12))).encode()
        lines.append(line)
    return lines
