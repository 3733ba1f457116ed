"""The side on which batches are padded, where a model needs one."""

from typing import Any


def check_right_padding(task: Any) -> None:
    """Raise ValueError for --left-pad-target, for models that read everything before a word.

    task: any task; those without the option pad on the right.
    """
    if getattr(getattr(task, "cfg", None), "left_pad_target", False):
        raise ValueError(
            "--left-pad-target: this model needs targets padded on the right, otherwise a sentence "
            "would depend on the others of its batch; leave it out"
        )
