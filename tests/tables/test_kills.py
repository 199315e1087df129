"""An ingest may be killed at any moment, any number of times: the table has each message once in the end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tables.lakes import Lake
from tests.tables.stored_rows import scanned

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kills", [4, pytest.param(200, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
def test_rows_are_distinct_offsets_after_kills(tmp_path: Path, lake: Lake, kills: int) -> None:
    check_kills(tmp_path / "store", lake, kills)
    if lake.format == "parquet":
        assert [path.name for path in (lake.directory / "messages" / "_rmqfast").iterdir()] == ["commit.json"]


def check_kills(store: Path, lake: Lake, kills: int, *more: str) -> None:
    """Kills ingests, and checks that the table has each message once."""
    arguments = [str(store), str(lake.directory), lake.format, str(kills), str(kills), *more]
    command = [sys.executable, "-m", "tests.tables.kills", *arguments]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    counts = json.loads(ran.stdout)
    assert counts["killed"] == kills
    rows = lake.rows()
    assert len(rows) == counts["messages"]
    assert rows == scanned(store)
