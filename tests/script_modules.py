"""Files of Python that are run and not imported, as modules."""

import importlib.util


def load_script(path):
    """The module of a file of its own, such as examples/run.py; several have one name."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
