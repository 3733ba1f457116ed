"""The kinds of data that a recipe can be about; each is a module with the same names:

KEYS            keys of [data] besides `kind`
METRICS         what is measured, the most important first (metrics.py)
UNIT            what a word is to fairseq-ext twin-distance
TEXT            function (settings) -> the training text in DATA, tokens as in the data, for its
                counts of words; None where the dictionary has them
BATCH           tokens (of speech: frames) in a batch when likelihoods are computed
files           function (settings, raw) -> {name: raw file}
build           function (settings, files, folder, root, workers) -> counts; makes folder/bin, what
                fairseq-train reads, and folder/raw/SPLIT.ref, a line for each item of the
                validation and test sets; root: where the folder will be in the end
task            function (settings) -> words of the command line
"""

from . import captions, language, pixels, speech, translation

KINDS = {
    "speech": speech,
    "translation": translation,
    "language": language,
    "pixels": pixels,
    "captions": captions,
}
