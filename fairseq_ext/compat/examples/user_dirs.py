"""--user-dir with fairseq's examples: what it imports, and the patches of what it has imported.

A --user-dir imports a folder under its last name, such as `latent_depth_src`. No import hook
knows such names, so the patches of examples are applied when the import is over.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
from typing import Any

from ..command_line.plugin_errors import another_module, errors_of_plugin
from ..imported_examples import EXAMPLE_PACKAGES, imported_copies
from ..patch_registry import AFTER, Patch, PatchedModule, all_patches, apply_patch, patch
from ..versions.dataclass_defaults import note_place, place_of
from .simultaneous import stand_in_for_streaming

EXAMPLES = EXAMPLE_PACKAGES[0]
# examples that import their files as examples.NAME, and so would be imported twice
SELF_IMPORTING = ("simultaneous_translation", "speech_recognition", "speech_text_joint_to_text")
# {the end of the path of an example: modules of it that its __init__ does not import}
NOT_IMPORTED = {
    os.path.join("attention_head_selection", "src"): ("speech_to_text_head_selection",),
}


@patch(
    "fairseq.utils",
    because="fairseq 0.12.2: --user-dir imports an example under the name of its folder; refuses "
    "a single file, as examples/byte_level_bpe is used; imports some examples twice; ends in its "
    "own traceback where a plugin is at fault",
)
def user_dirs_import_examples(module: PatchedModule) -> None:
    """Import what --user-dir names, and then patch what belongs to an example.

    The exception of what cannot be imported goes on, with what a command prints for it.
    """
    stock = module.import_user_module

    @functools.wraps(stock)
    def import_user_module(args: Any) -> None:
        user_dir = getattr(args, "user_dir", None)
        if user_dir is None:
            return
        place = single_file(user_dir) or place_of(user_dir, os.path.dirname(str(module.__file__)))
        with errors_of_plugin(user_dir, place, getattr(module.import_user_module, "memo", set())):
            if os.path.isfile(place) and place.endswith(".py"):
                import_file(place)
            else:
                import_as_example(os.path.abspath(user_dir))
                stock(args)
                import_the_rest(os.path.abspath(user_dir))
        patch_imported_examples()

    module.import_user_module = import_user_module


def single_file(user_dir: str) -> str | None:
    """Return the Python file that a --user-dir names, with or without .py; None for a folder."""
    path = os.path.abspath(user_dir)
    for file in (path, path + ".py"):
        if file.endswith(".py") and os.path.isfile(file) and not os.path.isdir(path):
            return file
    return None


def import_file(file: str) -> None:
    """Import a single file as a plugin, under its name without .py.

    Raises ImportError if another module has this name.
    """
    note_place(file)  # its dataclasses have the rule of those of a folder
    folder, name = os.path.split(file[: -len(".py")])
    present = sys.modules.get(name)
    if present is None:
        if folder not in sys.path:
            sys.path.insert(0, folder)
        present = importlib.import_module(name)
    if os.path.realpath(str(present.__file__)) != os.path.realpath(file):
        raise another_module(file, present)


def import_as_example(folder: str) -> None:
    """Import an example that calls itself `examples.NAME` by that name alone.

    Under the name NAME as well, it would register its tasks a second time, which fairseq refuses.
    """
    parent, name = os.path.split(os.path.normpath(folder))
    if name not in SELF_IMPORTING or name in sys.modules:
        return
    spec = importlib.util.find_spec("examples")
    places = [] if spec is None else list(spec.submodule_search_locations or ())
    if os.path.realpath(parent) not in map(os.path.realpath, places):
        return
    if name == "simultaneous_translation":
        stand_in_for_streaming()
    full_name = f"examples.{name}"
    importlib.import_module(full_name)
    for part in ("tasks", "models"):
        if os.path.isdir(os.path.join(folder, part)):
            files = sorted(os.listdir(os.path.join(folder, part)))
            stems = [file[:-3] for file in files if file.endswith(".py") and file[0] not in "._"]
            for stem in stems:
                importlib.import_module(f"{full_name}.{part}.{stem}")
    module = sys.modules[name] = sys.modules[full_name]
    if folder not in module.__path__:
        # a symbolic link; stock compares the spelling of paths
        module.__path__.append(folder)


def import_the_rest(folder: str) -> None:
    """Import the modules of NOT_IMPORTED of a --user-dir."""
    path = os.path.realpath(folder)
    for ending, names in NOT_IMPORTED.items():
        if path.endswith(os.sep + ending):
            for name in names:
                importlib.import_module(f"{os.path.basename(path)}.{name}")


def patch_imported_examples() -> None:
    """Apply the patches of examples to the modules that a --user-dir has imported."""
    patches: dict[str, list[Patch]] = {}  # by the name of the module below `examples`
    for example_patch in all_patches():
        if example_patch.moment == AFTER:
            for full_name in example_patch.modules:
                if full_name.startswith(EXAMPLES + "."):
                    name = full_name[len(EXAMPLES) + 1 :]
                    patches.setdefault(name, []).append(example_patch)
    for name, module in imported_copies(patches):
        for example_patch in patches[name]:
            if example_patch.unmet_condition() is None:
                apply_patch(example_patch, module.__name__, module)
