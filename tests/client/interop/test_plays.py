"""rmqfast's clients on rmqfast's broker and on RocketMQ's: the same comes about on each of them."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future

import pytest

from tests.effort import effort

from . import churn, delivery, faults, mixed_groups, offsets, worked_scenarios
from .scene import Plays

pytestmark = [pytest.mark.long, pytest.mark.soak, pytest.mark.timeout(effort("RMQFAST_PLAY_SECONDS", 1200, 3600))]

# the longest ones first
MODULES = (churn, faults, mixed_groups, worked_scenarios, offsets, delivery)
PLAYS: Plays = {play.__name__: play for module in MODULES for play in module.PLAYS}
FAULTS = {play.__name__ for play in faults.PLAYS}
KINDS = ("ours", "4.9.4", "5.3.3", "5.5.0")
GIVEN = [(kind, play) for kind in KINDS for play in PLAYS if not kind.startswith("5.") or play not in FAULTS]


@pytest.mark.parametrize(("given", "play"), GIVEN, indirect=["given"])
def test_that(given: Mapping[str, Future[None]], play: str) -> None:
    given[play].result()
