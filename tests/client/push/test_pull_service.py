"""When a queue is pulled, with a time of the test's own and a broker that answers what the test says."""

from __future__ import annotations

from typing import Any

import pytest

from rmqfast.client.consumer import PullRequest
from rmqfast.client.consumer.pull_api import PullResult, PullStatus
from rmqfast.client.push import PushOptions, PushTimings
from rmqfast.client.push.counters import ConsumeCounters
from rmqfast.client.push.process_queue import ProcessQueue
from rmqfast.client.push.pull_service import PullMessageService, Thresholds
from rmqfast.errors import ClientError, RemotingTimeoutError, ResponseError, RmqError
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

from .messages import messages
from .test_services import Time

QUEUE = MessageQueue("t", "broker-a", 0)


class Api:
    """Notes pulls; the test answers."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.done: list[Any] = []
        self.error: RmqError | None = None

    def pull_async(
        self, queue: MessageQueue, subscription: SubscriptionData, offset: int, count: int, done: Any, **named: Any
    ) -> None:
        if self.error is not None:
            raise self.error
        self.asked.append({"offset": offset, "count": count, "version": subscription.sub_version, **named})
        self.done.append(done)


class Consumer:
    """A consumer as pulls see it."""

    def __init__(self) -> None:
        self.is_running, self.is_suspended, self.is_in_order = True, False, False
        self.wanted: SubscriptionData | None = SubscriptionData(topic="t", sub_version=7)
        self.offset = -1
        self.begins: Any = 5
        self.told: list[tuple[str, int]] = []

    def subscription(self, topic: str) -> SubscriptionData | None:
        assert topic == "t"
        return self.wanted

    def compute_pull_from_where(self, _queue: MessageQueue) -> int:
        if isinstance(self.begins, RmqError):
            raise self.begins
        return int(self.begins)

    def memory_offset(self, _queue: MessageQueue) -> int:
        return self.offset

    def correct_offset(self, _queue: MessageQueue, _process_queue: ProcessQueue, offset: int) -> None:
        self.told.append(("correct", offset))

    def give_up(self, _queue: MessageQueue, offset: int) -> None:
        self.told.append(("give up", offset))

    def consume(self, result: PullResult, process_queue: ProcessQueue, _queue: MessageQueue) -> None:
        process_queue.put(result.messages, result.size)
        self.told.append(("consume", len(result.messages)))


class Scene:
    """A service, and all that it works with."""

    def __init__(self, **options: Any) -> None:
        self.time, self.api, self.consumer = Time(), Api(), Consumer()
        made = PushOptions(**options)
        self.service = PullMessageService(
            self.consumer,
            self.api,  # type: ignore[arg-type]
            options=made,
            timings=PushTimings(),
            counters=ConsumeCounters(lambda: self.time.now),
            scheduler=self.time,
            thresholds=Thresholds(made),
            clock=lambda: self.time.now,
        )
        self.process_queue = ProcessQueue(clock=lambda: self.time.now)
        self.request = PullRequest(QUEUE, self.process_queue, 3)
        self.service.pull(self.request)

    def pass_(self, seconds: float) -> None:
        """Time passes, and what is put to the thread of pulls is done."""
        self.time.pass_(seconds)
        while not self.service._work.empty():  # noqa: SLF001 - the thread of pulls is this one
            work = self.service._work.get()  # noqa: SLF001 - the thread of pulls is this one
            assert work is not None
            work()

    def answer(self, status: PullStatus, next_offset: int, count: int = 0) -> None:
        """The last pull ends."""
        self.api.done[-1](PullResult(status, next_offset, 0, 8, list(messages(8)[:count]), 100 * count))


def test_a_pull_waits_at_the_broker_and_goes_on_where_it_ended() -> None:
    scene = Scene(pull_batch_size=20)
    (asked,) = scene.api.asked
    assert asked == {
        "offset": 3,
        "count": 20,
        "version": 7,
        "sys_flag": 2,
        "commit_offset": 0,
        "suspend": 15.0,
        "timeout": 30.0,
    }
    scene.answer(PullStatus.FOUND, 6, 3)
    assert scene.api.asked[-1]["offset"] == 6
    scene.answer(PullStatus.NO_NEW_MSG, 6)
    assert len(scene.api.asked) == 3
    assert scene.consumer.told == [("consume", 3)], "there are messages: nothing is corrected"


def test_offsets_are_corrected_where_nothing_is_left_to_do() -> None:
    scene = Scene()
    scene.answer(PullStatus.NO_MATCHED_MSG, 8)
    scene.answer(PullStatus.NO_NEW_MSG, 8)
    scene.answer(PullStatus.FOUND, 9, 0)
    assert scene.consumer.told == [("correct", 8), ("correct", 8)], (
        "what was dropped here is corrected by the next pull"
    )
    assert [asked["offset"] for asked in scene.api.asked] == [3, 8, 8, 9]


@pytest.mark.parametrize(
    ("options", "offset", "in_order", "flag"),
    [
        ({}, 5, False, 3),
        ({}, 0, False, 2),
        ({}, 5, True, 2),
        ({"message_model": "BROADCASTING"}, 5, False, 2),
        ({"post_subscription_when_pull": True}, 5, False, 7),
        ({"post_subscription_when_pull": True}, -1, False, 6),
    ],
)
def test_flags_say_what_else_the_broker_is_to_do(
    options: dict[str, Any], offset: int, in_order: bool, flag: int
) -> None:
    scene = Scene(**options)
    scene.consumer.offset, scene.consumer.is_in_order = offset, in_order
    scene.answer(PullStatus.NO_NEW_MSG, 3)
    assert (scene.api.asked[-1]["sys_flag"], scene.api.asked[-1]["commit_offset"]) == (flag, offset if flag & 1 else 0)


@pytest.mark.parametrize(
    ("error", "delay"),
    [
        (RemotingTimeoutError("t"), 1.0),
        (ResponseError(25, "the consumer's subscription not latest"), 1.0),
        (ResponseError(24, "the consumer's subscription not exist"), 1.0),
        (ResponseError(215, "flow control"), 0.02),
    ],
)
def test_what_failed_is_tried_again(error: RmqError, delay: float) -> None:
    scene = Scene()
    scene.api.done[-1](error)
    assert scene.time.delays == [delay]
    scene.pass_(delay)
    assert [asked["offset"] for asked in scene.api.asked] == [3, 3]


def test_a_broker_that_is_not_known_is_asked_again() -> None:
    scene = Scene()
    scene.api.error = ClientError("The broker[b] not exist")
    scene.answer(PullStatus.NO_NEW_MSG, 3)
    assert scene.time.delays == [1.0]
    scene.api.error = None
    scene.pass_(1)
    assert len(scene.api.asked) == 2


def test_an_offset_outside_of_the_queue_gives_it_up_after_ten_seconds() -> None:
    scene = Scene()
    scene.answer(PullStatus.OFFSET_ILLEGAL, 40)
    assert scene.process_queue.is_dropped
    scene.pass_(9.9)
    assert scene.consumer.told == []
    scene.pass_(0.2)
    assert scene.consumer.told == [("give up", 40)]
    assert len(scene.api.asked) == 1


def test_too_many_messages_are_waited_for_and_room_ends_the_wait_at_once() -> None:
    scene = Scene(pull_threshold_for_queue=4)
    scene.answer(PullStatus.FOUND, 8, 5)
    assert (len(scene.api.asked), scene.process_queue.is_parked, scene.time.delays) == (1, True, [0.05])
    scene.pass_(0.05)
    assert (len(scene.api.asked), scene.time.delays) == (1, [0.05]), "there still are too many"
    found = scene.process_queue.first()
    assert found is not None
    run, _ = found
    scene.process_queue.remove(run, range(2))
    scene.service.room(scene.process_queue)
    scene.pass_(0)
    assert len(scene.api.asked) == 1, "half of what may wait is too much"
    scene.process_queue.remove(run, range(2, 3))
    scene.service.room(scene.process_queue)
    scene.pass_(0)
    assert (len(scene.api.asked), scene.process_queue.is_parked) == (2, False)
    scene.pass_(1)
    assert len(scene.api.asked) == 2, "it is pulled once"


@pytest.mark.parametrize("options", [{"pull_threshold_size_for_queue": 1}, {"consume_concurrently_max_span": 6}])
def test_too_many_bytes_and_too_wide_a_span_are_waited_for(options: dict[str, int]) -> None:
    scene = Scene(**options)
    scene.process_queue.put(messages(8), (1 << 20) + 1)
    scene.answer(PullStatus.NO_NEW_MSG, 8)
    assert (len(scene.api.asked), scene.time.delays) == (1, [0.05])


def test_a_consumer_that_is_suspended_or_not_running_is_looked_at_again() -> None:
    scene = Scene()
    scene.consumer.is_suspended = True
    scene.answer(PullStatus.NO_NEW_MSG, 3)
    assert scene.time.delays == [1.0]
    scene.consumer.is_suspended, scene.consumer.is_running = False, False
    scene.pass_(1)
    scene.consumer.is_running, scene.consumer.wanted = True, None
    scene.pass_(1)
    assert (len(scene.api.asked), scene.time.delays) == (1, [1.0]), "nobody wants the topic"
    scene.process_queue.is_dropped = True
    scene.pass_(1)
    assert scene.time.delays == [], "a queue that was dropped is forgotten"


def test_in_order_a_queue_is_pulled_once_it_is_locked_from_where_the_group_is_then() -> None:
    scene = Scene()
    scene.consumer.is_in_order = True
    scene.answer(PullStatus.NO_NEW_MSG, 3)
    assert scene.time.delays == [1.0], "it is not locked"
    scene.process_queue.is_locked, scene.consumer.begins = True, RemotingTimeoutError("t")
    scene.pass_(1)
    scene.consumer.begins = -1
    scene.pass_(1)
    assert len(scene.api.asked) == 1, "where to begin is not known"
    scene.consumer.begins = 6
    scene.pass_(1)
    assert scene.api.asked[-1]["offset"] == 6
    scene.consumer.begins = 0
    scene.answer(PullStatus.NO_NEW_MSG, 7)
    assert scene.api.asked[-1]["offset"] == 7, "that is asked once"


def test_a_pull_interval_is_waited_for_after_messages_only() -> None:
    scene = Scene(pull_interval=500)
    scene.answer(PullStatus.NO_NEW_MSG, 3)
    assert len(scene.api.asked) == 2
    scene.answer(PullStatus.FOUND, 5, 2)
    assert (len(scene.api.asked), scene.time.delays) == (2, [0.5])
    scene.pass_(0.5)
    assert len(scene.api.asked) == 3


def test_a_consumer_that_fails_does_not_leave_its_queue_alone() -> None:
    scene = Scene()
    scene.consumer.consume = None  # type: ignore[assignment, method-assign]
    scene.answer(PullStatus.FOUND, 5, 2)
    assert scene.time.delays == [1.0]
