"""Sub-commands of `fairseq-ext` for routed models; the file is read without importing torch."""

COMMANDS = {
    "linearise": (
        "linearise:convert_corpora",
        "make annotated corpora into parallel text, and back",
    ),
    "router-usage": (
        "router_usage:report_router_usage",
        "show how much each task uses each shared block",
    ),
}
