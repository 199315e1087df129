"""Tasks, executors, drivers and brokers that are killed under a stream: each message stands in its output once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.effort import effort
from tests.spark.live.kills import Play, stored
from tests.spark.live.streams import each_once

KILLS = effort("RMQFAST_KILLS", 6, 50)

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.newest, pytest.mark.timeout(1800 + 90 * KILLS)]


def test_each_message_is_stored_once_whatever_is_killed(engine: str, tmp_path: Path) -> None:
    with Play(engine, tmp_path, seed=KILLS) as play:
        for _ in range(KILLS):
            play.kill_something()
        wanted = each_once(play.ends())
    found = stored(tmp_path)
    assert len(wanted) > 1000
    missing, more = wanted - found, found - wanted
    assert (sum(missing.values()), sum(more.values())) == (0, 0), (play.kills, sorted(missing)[:5], sorted(more)[:5])
