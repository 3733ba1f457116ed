"""`fairseq-ext pixel-lines`: images of digits as lines of black and white pixels.

fairseq-ext pixel-lines train-images-idx3-ubyte.gz --output train.pixels
fairseq-ext pixel-lines train-images-idx3-ubyte.gz --output train.pixels --sample 1
"""

import argparse

import numpy as np

from . import UsageError, atomic_path
from .idx import read_idx

CHUNK = 4096  # images


def share(text):
    """--threshold."""
    value = float(text)
    if not 0.0 < value <= 1.0:
        raise argparse.ArgumentTypeError(f"{text}; allowed: more than 0, at most 1")
    return value


def seed(text):
    """--sample."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text}; allowed: a whole number from 0")
    return int(text)


def add_arguments(parser):
    parser.add_argument("images", metavar="IDX", help="idx3 file of images, plain or .gz")
    parser.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help="one line for each image: its pixels, row by row, as the words 0 and 1",
    )
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
        help="instead: a pixel is 1 with its intensity as probability",
    )


def binarise(images, threshold=0.5, rng=None):
    """Intensities 0-255 -> zeros and ones, uint8, of the same shape.

    rng: of NumPy; draws every pixel with its intensity as probability instead.
    """
    if rng is None:
        return (images >= 255 * threshold).astype(np.uint8)
    return (rng.random(images.shape) < images / 255).astype(np.uint8)


def pixel_lines(bits):
    """(N, ...) zeros and ones -> N lines, as bytes."""
    lines = np.full((len(bits), 2 * bits[0].size), ord(" "), dtype=np.uint8)
    lines[:, 0::2] = ord("0") + bits.reshape(len(bits), -1)
    lines[:, -1] = ord("\n")
    return lines.tobytes()


def run(args):
    """Write; prints the number of lines, their length and the share of ones."""
    images = read_idx(args.images, dimensions=3)
    if not images.size:
        raise UsageError(f"{args.images} holds no image")
    rng = None if args.sample is None else np.random.default_rng(args.sample)
    ones = 0
    with atomic_path(args.output) as path, open(path, "wb") as stream:
        for start in range(0, len(images), CHUNK):
            bits = binarise(images[start : start + CHUNK], args.threshold, rng)
            ones += int(bits.sum())
            stream.write(pixel_lines(bits))
    print(
        f"{args.output}: {len(images)} lines of {images[0].size} pixels, "
        f"{100 * ones / images.size:.1f}% of them 1"
    )
    return 0
