"""Process queues: what was pulled and is not done, whatever order it is done in."""

from __future__ import annotations

import random

from rmqfast.client.push.process_queue import OrderlyProcessQueue, ProcessQueue

from .messages import messages


def test_whatever_the_order_offsets_are_those_of_a_sorted_map() -> None:
    rng = random.Random(7)
    for _ in range(200):
        queue, left = ProcessQueue(), set[int]()
        tasks = []
        at = 0
        for _ in range(rng.randint(1, 6)):
            count = rng.randint(1, 9)
            part = messages(60)[at : at + count]
            at += count + rng.choice((0, 0, 3))
            (run,) = queue.put(part, count)
            left.update(message.queue_offset for message in part)
            step = rng.randint(1, count)
            for start in range(0, count, step):
                indexes = range(start, min(start + step, count))
                tasks.append((run, indexes, [part[index].queue_offset for index in indexes]))
        last = max(left)
        rng.shuffle(tasks)
        for run, indexes, offsets in tasks:
            chosen = indexes if rng.random() < 0.5 else list(indexes)
            left.difference_update(offsets)
            assert queue.remove(run, chosen) == (min(left) if left else last + 1)
            assert queue.count == len(left)
            assert queue.offsets() == ((min(left), max(left)) if left else (0, 0))
        assert queue.size == 0


def test_messages_that_are_there_already_are_left_out() -> None:
    queue = ProcessQueue()
    (run,) = queue.put(messages(8)[2:6], 40)
    assert queue.put(messages(8)[2:6], 40) == []
    queue.remove(run, [0])
    new = queue.put(messages(8)[1:8], 70)
    assert [m.queue_offset for each in new for m in each.messages] == [1, 2, 6, 7]
    assert (queue.count, queue.offsets()) == (7, (1, 7))
    assert [queue.remove(each, [0]) for each in new] == [2, 3, 3, 3]
    assert queue.remove(run, range(4)) == 8
    assert queue.count == 0


def test_a_queue_that_was_cleared_knows_no_offset() -> None:
    queue = ProcessQueue()
    (run,) = queue.put(messages(4), 40)
    queue.clear()
    assert (queue.count, queue.size, queue.queue_offset_max) == (0, 0, -1)
    assert queue.remove(run, range(4)) == -1
    assert queue.count == 0


def test_locks_expire() -> None:
    now = [1000.0]
    queue = ProcessQueue(clock=lambda: now[0])
    expired = []
    for seconds in (30, 1):
        now[0] += seconds
        expired.append(queue.is_lock_expired)
    queue.last_lock = now[0]
    assert [*expired, queue.is_lock_expired] == [False, True, False]


def test_what_is_done_is_told_once_some_of_it_is_or_nothing_is_left() -> None:
    queue = ProcessQueue()
    (run,) = queue.put(messages(8) * 1, 800)
    queue.remove(run, range(1, 5))
    assert queue.take_freed() is None, "too little to ask for more"
    queue.remove(run, [0, 5, 6])
    assert queue.take_freed() is None
    queue.remove(run, [7])
    assert queue.take_freed() == (8, 800, 8)
    queue.put([], 100)
    queue.free(3, 10)
    assert queue.take_freed() == (3, 110, 8), "what nobody wants is done at once"
    queue = ProcessQueue()
    (run,) = queue.put(messages(8)[:4], 40)
    queue.put(messages(8)[:4], 40)
    queue.remove(run, range(4))
    assert queue.take_freed() == (8, 80, 4), "what was here already is done, too"


def test_what_is_told_of_a_queue_has_the_names_and_milliseconds_of_java() -> None:
    queue = ProcessQueue(clock=lambda: 10.0, wall_clock=lambda: 1_000.0)
    queue.put(messages(8)[2:6], 3 << 20)
    info = queue.info(commit_offset=2)
    assert (info["cachedMsgMinOffset"], info["cachedMsgMaxOffset"]) == (2, 5)
    assert (info["cachedMsgCount"], info["cachedMsgSizeInMiB"], info["commitOffset"]) == (4, 3, 2)
    assert info["lastPullTimestamp"] == info["lastLockTimestamp"] == info["lastConsumeTimestamp"] == 1_000_000


def test_in_order_what_comes_back_is_first_again() -> None:
    queue = OrderlyProcessQueue()
    queue.put(messages(8), 80)
    queue.take(2)
    again = queue.take(2)
    queue.make_to_consume_again([m.seen_as(reconsume_times=5) for m in again])
    taken = queue.take(3)
    assert [(m.queue_offset, m.reconsume_times) for m in taken] == [(2, 5), (3, 5), (4, 0)]
    info = queue.info(0)
    assert (info["transactionMsgMinOffset"], info["transactionMsgMaxOffset"], info["transactionMsgCount"]) == (0, 4, 5)
    assert (info["cachedMsgMinOffset"], info["cachedMsgCount"]) == (5, 8)
    queue.rollback()
    assert [m.queue_offset for m in queue.take(9)] == list(range(8))
    assert queue.commit() == 8
    assert (queue.count, queue.size, queue.offsets()) == (0, 0, (0, 0))


def test_in_order_messages_that_are_there_already_are_left_out() -> None:
    queue = OrderlyProcessQueue()
    queue.put(messages(8)[2:5], 30)
    queue.take(1)
    queue.put(messages(8)[1:7], 60)
    assert queue.count == 6
    assert [m.queue_offset for m in queue.take(9)] == [1, 3, 4, 5, 6]
    assert queue.commit() == 7
