"""The walk over the queues of a topic, as Java's."""

from __future__ import annotations

import threading

from rmqfast.client.producer.publish_queues import PublishQueues, ThreadLocalIndex

from .topics import publish_queues


def test_a_thread_walks_the_queues_in_their_order_from_anywhere() -> None:
    queues = publish_queues({"a": 4}, start=1)
    assert [queues.select().queue_id for _ in range(8)] == [2, 3, 0, 1, 2, 3, 0, 1]
    starts = {PublishQueues(queues.info).select().queue_id for _ in range(200)}
    assert starts == {0, 1, 2, 3}


def test_each_thread_has_a_walk_of_its_own() -> None:
    queues = publish_queues({"a": 4}, start=0)
    queues.select()
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(queues.select().queue_id))
    thread.start()
    thread.join()
    assert found == [1]
    assert queues.select().queue_id == 2


def test_after_a_failure_the_walk_goes_on_to_another_broker() -> None:
    queues = publish_queues({"a": 2, "b": 2})
    walk = [queues.select("a"), queues.select("b"), queues.select("b"), queues.select()]
    # the queues of the broker that failed are passed over, which moves the walk on
    assert [(queue.broker_name, queue.queue_id) for queue in walk] == [("b", 0), ("a", 0), ("a", 1), ("b", 0)]


def test_a_broker_that_is_alone_is_tried_again() -> None:
    queues = publish_queues({"a": 3})
    # three steps looked for another one
    assert [queues.select("a").queue_id, queues.select("a").queue_id] == [0, 1]


def test_the_index_does_not_leave_31_bits() -> None:
    index = ThreadLocalIndex(lambda: (1 << 31) - 2)
    assert [index.increment(), index.increment(), index.increment()] == [(1 << 31) - 1, 0, 1]
