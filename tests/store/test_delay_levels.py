"""The text of `messageDelayLevel`."""

from __future__ import annotations

import pytest

from rmqfast.errors import ArgumentError
from rmqfast.store.config.delay_levels import DelayLevels


def test_the_levels_are_those_of_a_broker_as_it_ships() -> None:
    seconds = [1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200]
    assert dict(DelayLevels()) == {level: 1000 * wait for level, wait in enumerate(seconds, 1)}


def test_levels_may_be_others() -> None:
    assert dict(DelayLevels("0s 3m 2h 1d")) == {1: 0, 2: 180_000, 3: 7_200_000, 4: 86_400_000}


def test_blanks_at_the_end_are_no_level() -> None:
    """Java's `split` leaves them out, so RocketMQ takes such a text."""
    assert dict(DelayLevels("1s 5s  ")) == {1: 1000, 2: 5000}


@pytest.mark.parametrize("text", ["", "1", "s", "1s  2s", "-1s", "1w", "1.5s", "1s,2s", "²s", "9999999999d"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="messageDelayLevel: expected times"):
        DelayLevels(text)
