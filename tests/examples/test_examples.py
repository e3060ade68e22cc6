"""Every example runs from top to bottom in a real kernel, and shows a panel under each traced cell."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_shows_its_panels(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": path.parent}}
    ).execute()
    traced = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.startswith("%%tensortrace")]
    assert traced
    for cell in traced:
        shown = [output["data"]["text/html"] for output in cell.outputs if "text/html" in output.get("data", {})]
        assert len(shown) == 1, cell.source
        assert "data-tensortrace" in shown[0]
        assert len(shown[0]) < 100_000, "a lecture cell's output stays below 100 kB"
        assert "fault of tensormagic" not in shown[0]


def test_there_is_an_example() -> None:
    assert EXAMPLES
