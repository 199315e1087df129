"""Locks of queues that are consumed in order."""

from __future__ import annotations

import pytest

from rmqfast.broker.clients.queue_locks import QueueLockManager
from rmqfast.message import MessageQueue

Q0, Q1 = MessageQueue("t", "b", 0), MessageQueue("t", "b", 1)


@pytest.mark.parametrize(
    ("asks", "after", "gets"),
    [
        ("owner", 0, True),
        ("owner", 60_000, True),
        ("owner", 10_000_000, True),
        ("other", 0, False),
        ("other", 60_000, False),
        ("other", 60_001, True),
    ],
)
def test_a_lock_holds_for_60_seconds(asks: str, after: int, gets: bool) -> None:
    locks = QueueLockManager()
    assert locks.lock("g", "owner", [Q0], now=1000) == [Q0]
    assert locks.lock("g", asks, [Q0], now=1000 + after) == ([Q0] if gets else [])


def test_asking_again_makes_it_hold_longer() -> None:
    locks = QueueLockManager()
    locks.lock("g", "owner", [Q0], now=0)
    locks.lock("g", "owner", [Q0], now=50_000)
    assert locks.lock("g", "other", [Q0], now=110_000) == []
    assert locks.lock("g", "other", [Q0], now=110_001) == [Q0]


def test_who_asks_in_vain_does_not_make_it_hold_longer() -> None:
    locks = QueueLockManager()
    locks.lock("g", "owner", [Q0], now=0)
    locks.lock("g", "other", [Q0], now=50_000)
    assert locks.lock("g", "other", [Q0], now=60_001) == [Q0]


def test_some_of_the_queues_may_be_given() -> None:
    locks = QueueLockManager()
    locks.lock("g", "owner", [Q0], now=0)
    assert locks.lock("g", "other", [Q0, Q1], now=1) == [Q1]


def test_groups_do_not_know_each_others_locks() -> None:
    locks = QueueLockManager()
    locks.lock("g", "owner", [Q0], now=0)
    assert locks.lock("h", "other", [Q0], now=0) == [Q0]


def test_only_the_owner_unlocks_even_one_that_ran_out() -> None:
    locks = QueueLockManager()
    locks.lock("g", "owner", [Q0, Q1], now=0)
    locks.unlock("g", "other", [Q0])
    assert locks.lock("g", "other", [Q0], now=1) == []
    locks.unlock("g", "owner", [Q0])
    assert locks.lock("g", "other", [Q0, Q1], now=1) == [Q0]
    locks.unlock("h", "owner", [Q0])


def test_what_ran_out_is_forgotten_at_last() -> None:
    locks = QueueLockManager()
    locks.lock("g", "owner", [Q0], now=0)
    locks.lock("g", "owner", [Q1], now=1)
    locks.scan(60_001)
    assert locks.holder("g", Q0) is None
    assert locks.holder("g", Q1) is not None
