"""A run under faults keeps all promises; `make jepsen` runs more of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.effort import effort

from .run import run_seed

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_what_was_acknowledged_is_stored_and_consumed(flush: str, tmp_path: Path) -> None:
    for seed in range(101, 101 + effort("RMQFAST_JEPSEN_SEEDS", 1, 5)):
        assert run_seed(seed, flush, 12, tmp_path / str(seed)).violations == []
