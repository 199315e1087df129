"""What the churn calls a queue that two members were at work with."""

from __future__ import annotations

from .churn import overlaps
from .notes import Noted


def rows(*told: tuple[str, str, int]) -> list[Noted]:
    """Member, what, and queue; one after the other."""
    return [Noted("in_order", what, (queue, at), at, member) for at, (member, what, queue) in enumerate(told)]


def test_members_may_take_turns_and_work_with_several_queues_at_once() -> None:
    told = rows(("a", "begin", 0), ("b", "begin", 1), ("a", "end", 0), ("b", "end", 1), ("b", "begin", 0))
    assert overlaps(told) == []


def test_two_that_are_at_work_with_a_queue_are_found() -> None:
    told = rows(("a", "begin", 0), ("b", "begin", 0), ("b", "end", 0), ("a", "end", 0))
    assert overlaps(told) == [(told[0], told[1])]


def test_one_that_was_killed_at_work_is_not_at_work_any_more() -> None:
    told = rows(("a", "begin", 1), ("a", "end", 1), ("a", "begin", 0), ("b", "begin", 0))
    assert overlaps(told) == []
