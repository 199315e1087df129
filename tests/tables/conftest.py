"""Places for tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tables.lakes import FORMATS, Lake


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """A place for tables of each format."""
    return Lake(tmp_path / "lake", request.param)
