"""The bench stores as fixtures, for the timings that pytest-benchmark makes inside one process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the benches' own modules, as for a program started in this folder

if TYPE_CHECKING:
    from data import Dataset

ROWS = {"1k": 100_000, "128": 250_000}
BODIES = {"1k": 1024, "128": 128}


@pytest.fixture(params=list(ROWS), scope="session")
def dataset(request: pytest.FixtureRequest) -> Dataset:
    """Messages with bodies of 1 KiB, then of 128 bytes."""
    from data import Dataset

    return Dataset(request.param, BODIES[request.param], ROWS[request.param])


@pytest.fixture(scope="session")
def store_dir(dataset: Dataset) -> Path:
    """The dataset's store, read once so that the page cache holds it."""
    from data import store, warm

    path = store(dataset)
    warm(path)
    return path


@pytest.fixture
def open_store(store_dir: Path) -> Iterator[Any]:
    """The store opened by rmqfast."""
    import rmqfast

    with rmqfast.open_store(store_dir) as opened:
        yield opened
