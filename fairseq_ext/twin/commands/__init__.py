"""Sub-commands of `fairseq-ext` for twin networks; the file is read without importing torch."""

COMMANDS = {
    "filter-banks": (
        "filter_banks:make_filter_banks",
        "make filter banks of wav files, and what training needs",
    ),
    "pixel-lines": (
        "pixel_lines:make_pixel_lines",
        "make lines of black and white pixels of MNIST images",
    ),
    "twin-distance": (
        "twin_distance:report_twin_distance",
        "show how far the states of a model and its twin are apart",
    ),
}
EXPORTERS = ("export",)
