"""The notebooks in examples/notebooks run from top to bottom, and are stored without outputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import for_each

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("pandas")

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@for_each("file", NOTEBOOKS)
def test_it_runs(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("RETROMPI_STORE", str(tmp_path / "store.db"))
    book = nbformat.read(file, as_version=4)
    nbclient.NotebookClient(book, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}}).execute()
    shown = [kind for cell in book.cells if cell.cell_type == "code" for output in cell.outputs for kind in output.get("data", {})]
    assert "text/html" in shown  # results display themselves


@for_each("file", NOTEBOOKS)
def test_it_is_stored_without_outputs(file: Path) -> None:
    book = nbformat.read(file, as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert code
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
