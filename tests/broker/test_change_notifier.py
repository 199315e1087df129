"""Notices of changed groups: at once, or once for many changes."""

from __future__ import annotations

from rmqfast.broker.clients.client_channel import AT_ONCE, ChangeNotifier, GroupChange

from .client_doubles import Line

LINES = tuple(Line(f"1:{number}") for number in range(AT_ONCE + 2))


def _notices() -> list[int]:
    return [len(line.notified()) for line in LINES]


def test_a_large_group_is_told_once_of_many_changes() -> None:
    notifier = ChangeNotifier()
    for size in (1, 2):
        notifier.take(GroupChange("g", LINES[: AT_ONCE + size]))
    assert _notices() == [0] * len(LINES)
    notifier.run_once()
    assert _notices() == [1] * len(LINES)
    notifier.run_once()
    assert _notices() == [0] * len(LINES)


def test_a_group_that_became_small_is_told_at_once_and_not_again() -> None:
    notifier = ChangeNotifier()
    notifier.take(GroupChange("g", LINES))
    notifier.take(GroupChange("g", LINES[:3]))
    assert _notices() == [1] * 3 + [0] * (len(LINES) - 3)
    notifier.run_once()
    assert sum(_notices()) == 0
