"""Libraries of extras: one that is not installed is told with what installs it, one that is broken with its cause."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rmqfast import AppendOptions, Message, open_store
from tests.cli.command_line import run_process

PROGRAM = """
import sys
import rmqfast
if "absent" in sys.argv:
    sys.modules["pyarrow"] = None
try:
    rmqfast.open_store(sys.argv[1]).scan().to_arrow()
except ImportError as error:
    print(type(error).__name__, error)
"""
CAUSES = {
    "raise ImportError('libarrow.so.2400: cannot open shared object file')": "libarrow.so.2400",
    "import a_part_that_is_missing": "No module named 'a_part_that_is_missing'",
    "import pyarrow.lib": "No module named 'pyarrow.lib'",
}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    options = AppendOptions(file_size=65536, queue_file_size=2000, index_slots=100, index_entries=400)
    with open_store(tmp_path / "store", mode="a", options=options) as store:
        store.append(Message("orders", b"paid"))
    return tmp_path / "store"


def said(*words: str | Path, library: Path | None = None) -> str:
    path = os.environ | ({} if library is None else {"PYTHONPATH": str(library)})
    command = [sys.executable, "-c", PROGRAM, *map(str, words)]
    return subprocess.run(command, env=path, capture_output=True, text=True, check=True).stdout


def test_a_library_that_is_not_installed_is_told_with_its_extra(store: Path) -> None:
    assert said(store, "absent") == "MissingExtraError pyarrow is needed for this: pip install 'rmqfast[arrow]'\n"


@pytest.mark.parametrize("code", CAUSES)
def test_a_library_that_is_broken_is_told_with_its_cause(code: str, store: Path, tmp_path: Path) -> None:
    (tmp_path / "pyarrow").mkdir()
    (tmp_path / "pyarrow" / "__init__.py").write_text(code)
    told = said(store, library=tmp_path)
    assert CAUSES[code] in told
    assert "pip install" not in told
    done = run_process("store", "scan", store, PYTHONPATH=str(tmp_path))
    assert done.returncode != 0
    assert CAUSES[code] in done.stderr
    assert "pip install" not in done.stderr
