"""Sub-commands of `fairseq-ext` for multi-way models; the file is read without importing torch."""

COMMANDS = {
    "add-language": (
        "add_language:extend_checkpoint",
        "add languages or pairs to a multi-way checkpoint",
    )
}
