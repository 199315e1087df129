"""Objects in a real notebook: a kernel of Jupyter runs the cells, and says what it would show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.golden_stores import PathOf

CELLS = (
    "import rmqfast\nstore = rmqfast.open_store({store!r})\nstore",
    "store.scan('fx_q1')",
    "store.get('fx_q1', 0, 7, max_messages=1).messages[0]",
    "rmqfast.Message('<b>', b'paid')",
    "rmqfast.Damage(4, 2, 'torn')",
)


QUERIES = (
    "import duckdb, rmqfast\norders = rmqfast.open_store({store!r}).table('fx_q1')",
    "duckdb.sql(\"select count(*) from orders where tags = 'TagA'\").fetchall()",
    "len(orders.scan.lazy().collect())",
    "orders.head(2, columns=['queue_offset']).to_pydict()",
)


def run(cells: tuple[str, ...], store: Path, directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Runs cells in a notebook, and returns what each shows."""
    # seconds, which each collection of tests would take otherwise
    import nbformat
    from nbclient import NotebookClient

    for variable in ("JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(variable, str(directory / variable))  # whatever kernels the machine has
    made: Any = nbformat.v4  # untyped
    notebook = made.new_notebook()
    notebook.cells = [made.new_code_cell(cell.format(store=str(store))) for cell in cells]
    NotebookClient(notebook, kernel_name="python3", timeout=120).execute()
    return [output.data for cell in notebook.cells for output in cell.outputs]


# Jupyter's client makes an event loop of its own where none runs
@pytest.mark.filterwarnings("ignore:There is no current event loop:DeprecationWarning")
def test_a_notebook_shows_tables(golden_store: PathOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run(CELLS, golden_store("basic-4.9.4"), tmp_path, monkeypatch)
    assert len(shown) == len(CELLS)
    for data in shown:
        assert set(data) == {"text/plain", "text/html"}
        assert data["text/html"].startswith("<table>")
    assert "<td>fx_q8</td>" in shown[0]["text/html"]
    assert "<td>&lt;b&gt;</td>" in shown[3]["text/html"]


@pytest.mark.filterwarnings("ignore:There is no current event loop:DeprecationWarning")
def test_a_notebook_asks_a_table(golden_store: PathOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run(QUERIES, golden_store("basic-4.9.4"), tmp_path, monkeypatch)
    assert [data["text/plain"] for data in shown] == ["[(105,)]", "1259", "{'queue_offset': [0, 1]}"]
