"""The notebook holds no outputs, and runs from its first cell to its last."""

import base64
import json

import pytest
from pages import REPOSITORY

NOTEBOOK = REPOSITORY / "docs" / "notebooks" / "demo.ipynb"
PARAMETERS = 'work = Path("../../build/notebook")', "train, updates = 20_000, 1_000"


def cells():
    content = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return [cell for cell in content["cells"] if cell["cell_type"] == "code"]


def test_it_is_stored_without_outputs():
    for cell in cells():
        assert cell["outputs"] == [] and cell["execution_count"] is None
        compile("".join(cell["source"]), str(NOTEBOOK), "exec")
    first = "".join(cells()[0]["source"])
    assert all(text in first for text in PARAMETERS)


@pytest.mark.slow
def test_it_runs(tmp_path, monkeypatch):
    """With a short training."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(str(NOTEBOOK), as_version=4)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    place, sizes = PARAMETERS
    first.source = first.source.replace(place, f"work = Path({str(tmp_path / 'work')!r})")
    first.source = first.source.replace(sizes, "train, updates = 2_000, 40")
    resources = {"metadata": {"path": str(NOTEBOOK.parent)}}
    nbclient.NotebookClient(notebook, timeout=900, resources=resources).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    printed = "".join(output["text"] for output in outputs if output.output_type == "stream")
    assert "en-de  BLEU" in printed and "de-en  BLEU" in printed
    pictures = [o["data"]["image/png"] for o in outputs if o.output_type == "display_data"]
    assert len(pictures) == 2
    assert all(base64.b64decode(picture).startswith(b"\x89PNG") for picture in pictures)
