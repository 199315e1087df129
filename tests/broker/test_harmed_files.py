"""A server whose files another process changes answers on, takes nothing into nothing, and says what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.effort import effort

from .harmed_files import FAULTS, harm

SEEDS = range(effort("RMQFAST_HARMS", 2, 20))


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_acknowledged_into_nothing_nor_passed_over_in_silence(
    fault: str, flush: str, tmp_path: Path
) -> None:
    for seed in SEEDS:
        outcome = harm(tmp_path / str(seed), fault, seed, {"flushDiskType": flush})
        found = (outcome.crashes, outcome.lost, outcome.silent, outcome.untold)
        assert found == ([], [], [], []), outcome
