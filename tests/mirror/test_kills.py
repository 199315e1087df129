"""A mirror and its master killed again and again; masters that lose the ends of their logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.effort import effort
from tests.interop.rocketmq import java
from tests.mirror.kills import killed
from tests.mirror.lost_tails import lost_tails

ROUNDS = effort("RMQFAST_MIRROR_KILLS", 9, 200)
TAILS = effort("RMQFAST_LOST_TAILS", 4, 100)


@pytest.mark.long
@pytest.mark.timeout(120 + 30 * ROUNDS)
def test_after_each_kill_the_copy_has_the_masters_log(tmp_path: Path) -> None:
    """Two hundred times with RMQFAST_FULL=1, or as RMQFAST_MIRROR_KILLS says."""
    outcome = killed(ROUNDS, tmp_path)
    assert outcome.is_sound
    assert outcome.missing == []
    assert len(outcome.acknowledged) > 50 * ROUNDS
    # RocketMQ's own classes find it sound, too
    java("4.9.4", "DumpStore", tmp_path / "copies" / "broker-a")


@pytest.mark.long
@pytest.mark.timeout(120 + 30 * TAILS)
def test_each_tail_that_a_master_lost_is_found_and_never_mixed(tmp_path: Path) -> None:
    """A hundred with RMQFAST_FULL=1, or as RMQFAST_LOST_TAILS says."""
    outcome = lost_tails(TAILS, tmp_path)
    assert outcome.found == outcome.lost == TAILS
    assert outcome.is_same
