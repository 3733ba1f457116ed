"""Sub-commands of `fairseq-ext` for dual learning; the file is read without importing torch."""

COMMANDS = {
    "tune-alpha": (
        "tune_alpha:choose_alpha",
        "choose alpha of dual inference on the validation set",
    )
}
EXPORTERS = ("export",)
