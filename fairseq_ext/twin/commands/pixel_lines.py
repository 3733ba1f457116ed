"""`fairseq-ext pixel-lines`: images of digits as lines of black and white pixels.

fairseq-ext pixel-lines train-images-idx3-ubyte.gz --output train.pixels
fairseq-ext pixel-lines train-images-idx3-ubyte.gz --output train.pixels --sample 1
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Optional

import numpy as np

from ...tools import UsageError, atomic_path, check_apart, check_new
from .idx import read_idx

CHUNK = 4096  # images


def share(text: str) -> float:
    """Return the value of --threshold; ArgumentTypeError if it is out of range."""
    value = float(text)
    if not 0.0 < value <= 1.0:
        raise ArgumentTypeError(f"{text}; allowed: more than 0, at most 1")
    return value


def seed(text: str) -> int:
    """Return the value of --sample; ArgumentTypeError if it is no whole number."""
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text}; allowed: a whole number from 0")
    return int(text)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of `fairseq-ext pixel-lines`."""
    parser.add_argument("images", metavar="IDX", help="idx3 file of images, plain or .gz")
    parser.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help="file to write: one line for each image, its pixels row by row as the words 0 and 1",
    )
    parser.add_argument("--force", action="store_true", help="replace --output if it exists")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--threshold",
        type=share,
        default=0.5,
        metavar="X",
        help="a pixel is 1 from this share of the full intensity on (default: 0.5)",
    )
    how.add_argument(
        "--sample",
        type=seed,
        metavar="SEED",
        help="draw pixels instead: a pixel is 1 with its intensity as probability",
    )


def binarise(
    images: np.ndarray, threshold: float = 0.5, rng: Optional[np.random.Generator] = None
) -> np.ndarray:
    """Return zeros and ones, uint8, of intensities 0-255 of the same shape.

    rng: of NumPy; draws every pixel with its intensity as probability instead.
    """
    if rng is None:
        return (images >= 255 * threshold).astype(np.uint8)
    return (rng.random(images.shape) < images / 255).astype(np.uint8)


def pixel_lines(bits: np.ndarray) -> bytes:
    """Return N lines of (N, ...) zeros and ones."""
    # all at once: a digit and a blank for each pixel, the last blank a newline
    lines = np.full((len(bits), 2 * bits[0].size), ord(" "), dtype=np.uint8)
    lines[:, 0::2] = ord("0") + bits.reshape(len(bits), -1)
    lines[:, -1] = ord("\n")
    return lines.tobytes()


def make_pixel_lines(args: Namespace) -> int:
    """Write the lines; print their number, their length and the share of ones."""
    check_apart(args.output, [args.images])
    check_new(args.output, args.force)
    images = read_idx(args.images, dimensions=3)
    if not images.size:
        raise UsageError(f"{args.images} holds no image")
    rng = None if args.sample is None else np.random.default_rng(args.sample)
    ones = 0
    with atomic_path(args.output) as path, open(path, "wb") as stream:
        # part by part: 60,000 images as text would be 94 MB at once
        for start in range(0, len(images), CHUNK):
            bits = binarise(images[start : start + CHUNK], args.threshold, rng)
            ones += int(bits.sum())
            stream.write(pixel_lines(bits))
    print(
        f"{args.output}: {len(images)} lines of {images[0].size} pixels, "
        f"{100 * ones / images.size:.1f}% of them 1"
    )
    return 0
