"""From raw data to what fairseq-preprocess reads: the commands of examples/prepare.py.

Each module has `add_arguments(parser)` and `run(args)`, and raises UsageError for bad input.
"""
