"""Both ways to consume, with a time and an executor of the test's own: what is done with what a listener answers."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from rmqfast._native import MessageView
from rmqfast.client.consumer.hooks import ConsumeHooks
from rmqfast.client.push import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus, PushOptions, PushTimings
from rmqfast.client.push.concurrently_service import ConsumeMessageConcurrentlyService
from rmqfast.client.push.counters import ConsumeCounters
from rmqfast.client.push.orderly_service import ConsumeMessageOrderlyService
from rmqfast.client.push.process_queue import OrderlyProcessQueue, ProcessQueue
from rmqfast.message import MessageQueue

from .messages import messages

QUEUE = MessageQueue("t", "broker-a", 0)
SUCCESS, LATER = ConsumeConcurrentlyStatus.CONSUME_SUCCESS, ConsumeConcurrentlyStatus.RECONSUME_LATER
SUSPEND = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT


class Time:
    """A clock and a scheduler: time passes when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()

    def later(self, delay_seconds: float, work: Callable[[], object]) -> None:
        heapq.heappush(self._due, (self.now + delay_seconds, next(self._numbers), work))

    def every(self, initial: float, period: float, work: Callable[[], object]) -> None:
        """Is not what is tested here."""

    def stop(self, timeout: float | None = None) -> bool:
        self._due.clear()
        return True

    def pass_(self, seconds: float) -> None:
        """Time passes; what is due is done."""
        end = self.now + seconds
        while self._due and self._due[0][0] <= end:
            self.now, _, work = heapq.heappop(self._due)
            work()
        self.now = end

    @property
    def delays(self) -> list[float]:
        """How long it is until what is due."""
        return [round(at - self.now, 3) for at, _, _ in sorted(self._due)]


class Now:
    """Does what it is given at once, on the calling thread."""

    def __init__(self, run: Callable[[Any], object]) -> None:
        self._run = run

    def submit(self, tasks: Sequence[Any]) -> None:
        for task in tasks:
            self._run(task)

    def start(self) -> None:
        """There are no threads."""

    def stop(self, timeout: float) -> bool:
        return True


class Broker:
    """Takes messages back, or does not."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, int, int, str | None]] = []
        self.published: list[tuple[int, int]] = []
        self.refuses = False

    def is_sent(self, message: MessageView, delay_level: int, broker_name: str | None) -> bool:
        if not self.refuses:
            self.taken.append((message.queue_offset, message.reconsume_times, delay_level, broker_name))
        return not self.refuses

    def is_dead_letter(self, message: MessageView, *, reconsume_times: int) -> bool:
        if not self.refuses:
            self.published.append((message.queue_offset, reconsume_times))
        return not self.refuses


class Offsets:
    def __init__(self) -> None:
        self.updates: list[tuple[int, bool]] = []

    def update_offset(self, queue: MessageQueue, offset: int, *, increase_only: bool = False) -> None:
        assert queue == QUEUE
        self.updates.append((offset, increase_only))


class Locks:
    def __init__(self) -> None:
        self.is_ours, self.asked = True, 0
        self.process_queue: OrderlyProcessQueue | None = None

    def lock(self, _queue: MessageQueue) -> bool:
        self.asked += 1
        if self.process_queue is not None:
            self.process_queue.is_locked = self.is_ours
        return self.is_ours

    def lock_all(self) -> None:
        """Is not asked for here."""


class Scene:
    """A service, and all that it works with."""

    def __init__(self, kind: type[Any], answer: Callable[..., Any], **options: Any) -> None:
        self.time, self.broker, self.offsets = Time(), Broker(), Offsets()
        self.calls: list[list[tuple[int, int]]] = []

        def listen(given: Sequence[MessageView], context: Any) -> Any:
            self.calls.append([(message.queue_offset, message.reconsume_times) for message in given])
            return answer(given, context)

        self.counters, self.hooks = ConsumeCounters(lambda: self.time.now), ConsumeHooks()
        self.done: list[ProcessQueue] = []
        self.service = kind(
            "g",
            listen,
            options=PushOptions(**options),
            timings=PushTimings(),
            offsets=self.offsets,
            send_back=self.broker,
            counters=self.counters,
            run_later=self.time.later,
            clock=lambda: self.time.now,
            hooks=self.hooks,
            on_done=self.done.append,
        )
        self.service._workers = Now(self.service.run)  # noqa: SLF001 - what is submitted runs at once


def concurrently(answer: Callable[..., Any], count: int = 4, **options: Any) -> tuple[Scene, ProcessQueue]:
    """What became of messages that a listener was given."""
    scene = Scene(ConsumeMessageConcurrentlyService, answer, **options)
    process_queue = ProcessQueue()
    scene.service.submit(process_queue.put(messages(8)[:count], 100), process_queue, QUEUE)
    return scene, process_queue


def answered(answer: Any) -> Any:
    """What a listener answers, or raises."""
    if isinstance(answer, BaseException):
        raise answer
    return answer


def assert_failures_are_logged(caplog: pytest.LogCaptureFixture, count: int) -> None:
    """Each of the first messages once, with the group and the queue."""
    failures = [record.getMessage() for record in caplog.records if "the listener" in record.getMessage()]
    assert len(failures) == count
    for text, message in zip(failures, messages(8), strict=False):
        assert text.startswith(f"group g, {QUEUE}: ")
        assert message.msg_id in text


@pytest.mark.parametrize(
    "answer",
    [
        *(LATER, None, 1, True, "CONSUME_SUCCESS", ConsumeOrderlyStatus.SUCCESS),
        *(ValueError("x"), SystemExit(), KeyboardInterrupt(), GeneratorExit()),
    ],
)
def test_all_but_success_goes_back_to_the_broker(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    scene, process_queue = concurrently(lambda *_: answered(answer), 2)
    assert scene.broker.taken == [(0, 0, 0, "broker-a"), (1, 0, 0, "broker-a")]
    assert scene.offsets.updates == [(1, True), (2, True)]
    assert process_queue.count == 0
    assert scene.counters.status("t")["consumeFailedMsgs"] == 2
    assert_failures_are_logged(caplog, 0 if answer is LATER else 2)


@pytest.mark.parametrize(
    ("ack_index", "back"),
    [(-1, [0, 1, 2, 3]), (-9, [0, 1, 2, 3]), (0, [1, 2, 3]), (2, [3]), (3, []), (99, []), ("x", [0, 1, 2, 3])],
)
def test_the_ack_index_says_which_messages_are_done(ack_index: Any, back: list[int]) -> None:
    def answer(_: Any, context: Any) -> Any:
        context.ack_index, context.delay_level_when_next_consume = ack_index, 5
        return SUCCESS

    scene, _ = concurrently(answer, consume_message_batch_max_size=4)
    assert scene.broker.taken == [(offset, 0, 5, "broker-a") for offset in back]
    assert scene.offsets.updates == [(4, True)]


def test_what_no_broker_takes_is_consumed_here_again_and_holds_the_offset() -> None:
    answers = iter([LATER, SUCCESS, LATER, SUCCESS])
    scene = Scene(ConsumeMessageConcurrentlyService, lambda *_: next(answers), consume_message_batch_max_size=2)
    scene.broker.refuses = True
    process_queue = ProcessQueue()
    scene.service.submit(process_queue.put(messages(8)[:4]), process_queue, QUEUE)
    assert scene.offsets.updates == [(0, True), (0, True)]
    assert process_queue.count == 2
    scene.time.pass_(4.9)
    assert len(scene.calls) == 2
    scene.time.pass_(0.2)
    assert scene.calls[2] == [(0, 1), (1, 1)]
    scene.time.pass_(5)
    assert scene.calls[3] == [(0, 2), (1, 2)]
    assert scene.offsets.updates[-1] == (4, True)
    assert process_queue.count == 0


def test_a_queue_that_was_dropped_has_no_results() -> None:
    def drop(*_: Any) -> Any:
        process_queue.is_dropped = True
        return LATER

    scene = Scene(ConsumeMessageConcurrentlyService, drop)
    process_queue = ProcessQueue()
    scene.service.submit(process_queue.put(messages(8)[:2]), process_queue, QUEUE)
    assert scene.calls == [[(0, 0)]]
    assert (scene.broker.taken, scene.offsets.updates) == ([], [])


def orderly(answer: Callable[..., Any], count: int = 4, **options: Any) -> tuple[Scene, OrderlyProcessQueue, Locks]:
    """A queue in order that is locked, before its turn."""
    scene = Scene(ConsumeMessageOrderlyService, answer, **options)
    process_queue, locks = OrderlyProcessQueue(clock=lambda: scene.time.now), Locks()
    locks.process_queue = process_queue
    process_queue.is_locked = True
    scene.service.locks, scene.service._lock_timer = locks, scene.time  # noqa: SLF001 - the time of locks is the test's
    process_queue.put(messages(8)[:count])
    return scene, process_queue, locks


@pytest.mark.parametrize(("wanted", "delay"), [(-1, 1.0), (0.0, 0.01), (5.0, 5.0), (99.0, 30.0)])
def test_in_order_a_queue_is_suspended_for_as_long_as_the_listener_says(wanted: float, delay: float) -> None:
    def answer(_: Any, context: Any) -> Any:
        context.suspend_current_queue_time = wanted
        return SUSPEND if len(scene.calls) == 1 else ConsumeOrderlyStatus.SUCCESS

    scene, process_queue, _ = orderly(answer, 2)
    scene.service.submit([], process_queue, QUEUE)
    assert (scene.calls, scene.time.delays) == ([[(0, 0)]], [delay])
    scene.time.pass_(delay)
    assert scene.calls == [[(0, 0)], [(0, 1)], [(1, 0)]]
    assert scene.offsets.updates == [(1, False), (2, False)]


@pytest.mark.parametrize("answer", [SUSPEND, None, "SUCCESS", SystemExit(1)])
def test_in_order_all_but_success_comes_again_before_all_others(answer: Any) -> None:
    answers = iter([ConsumeOrderlyStatus.SUCCESS, answer, answer])
    scene, process_queue, _ = orderly(lambda *_: answered(next(answers, ConsumeOrderlyStatus.SUCCESS)), 3)
    scene.service.submit([], process_queue, QUEUE)
    scene.time.pass_(2)
    assert scene.calls == [[(0, 0)], [(1, 0)], [(1, 1)], [(1, 2)], [(2, 0)]]
    assert scene.offsets.updates == [(1, False), (2, False), (3, False)]


def test_in_order_without_auto_commit_the_listener_says_how_far_it_is() -> None:
    success = ConsumeOrderlyStatus.SUCCESS
    answers = [success, success, ConsumeOrderlyStatus.ROLLBACK, success, success, ConsumeOrderlyStatus.COMMIT, success]

    def answer(_: Any, context: Any) -> Any:
        context.auto_commit = False
        return answers[len(scene.calls) - 1]

    scene, process_queue, _ = orderly(answer, 4)
    scene.service.submit([], process_queue, QUEUE)
    scene.time.pass_(1)
    assert [offset for call in scene.calls for offset, _ in call] == [0, 1, 2, 0, 1, 2, 3]
    assert scene.offsets.updates == [(3, False)], "3 was not committed"


def test_in_order_a_queue_without_a_lock_is_locked_before_its_turn() -> None:
    scene, process_queue, locks = orderly(lambda *_: ConsumeOrderlyStatus.SUCCESS, 1)
    process_queue.is_locked, locks.is_ours = False, False
    scene.service.submit([], process_queue, QUEUE)
    assert (scene.calls, scene.time.delays) == ([], [0.1])
    scene.time.pass_(0.1)
    assert (locks.asked, scene.time.delays) == (1, [3.0])
    locks.is_ours = True
    scene.time.pass_(3.2)
    scene.time.pass_(0.2)
    assert scene.calls == [[(0, 0)]]


def test_in_order_an_expired_lock_stops_a_turn_in_the_middle() -> None:
    def answer(*_: Any) -> Any:
        if len(scene.calls) == 1:
            scene.time.now += 31
        return ConsumeOrderlyStatus.SUCCESS

    scene, process_queue, locks = orderly(answer, 2)
    scene.service.submit([], process_queue, QUEUE)
    assert scene.calls == [[(0, 0)]], "the lock is not confirmed for more than 30 s"
    process_queue.last_lock = scene.time.now
    scene.time.pass_(0.1)
    assert locks.asked == 1
    assert scene.calls == [[(0, 0)], [(1, 0)]]


def test_in_order_a_queue_gives_others_their_turn_after_a_minute() -> None:
    def answer(*_: Any) -> Any:
        scene.time.now += 25
        process_queue.last_lock = scene.time.now
        return ConsumeOrderlyStatus.SUCCESS

    scene, process_queue, _ = orderly(answer, 6)
    scene.service.submit([], process_queue, QUEUE)
    assert len(scene.calls) == 3
    assert scene.time.delays == [0.01]
    scene.time.pass_(0.01)
    assert len(scene.calls) == 6


def test_in_order_what_no_broker_takes_as_a_dead_letter_comes_again() -> None:
    scene, process_queue, _ = orderly(lambda *_: SUSPEND, 1, max_reconsume_times=1)
    scene.broker.refuses = True
    scene.service.submit([], process_queue, QUEUE)
    scene.time.pass_(1)
    assert [call[0] for call in scene.calls] == [(0, 0), (0, 1)]
    scene.broker.refuses = False
    scene.time.pass_(1)
    assert scene.broker.published == [(0, 2)]
    assert scene.offsets.updates == [(1, False)]


@pytest.mark.parametrize(
    ("kind", "answer", "result"),
    [
        (ConsumeMessageConcurrentlyService, SUCCESS, "CR_SUCCESS"),
        (ConsumeMessageConcurrentlyService, LATER, "CR_LATER"),
        (ConsumeMessageConcurrentlyService, None, "CR_RETURN_NULL"),
        (ConsumeMessageConcurrentlyService, 7, "CR_RETURN_NULL"),
        (ConsumeMessageConcurrentlyService, ValueError("mine"), "CR_THROW_EXCEPTION"),
        (ConsumeMessageOrderlyService, ConsumeOrderlyStatus.COMMIT, "CR_COMMIT"),
        (ConsumeMessageOrderlyService, SUSPEND, "CR_LATER"),
    ],
)
def test_a_message_may_be_consumed_directly_without_any_effect_on_offsets(
    kind: type[Any], answer: Any, result: str
) -> None:
    scene = Scene(kind, lambda *_: answered(answer))
    told = scene.service.consume_directly(messages(8)[0], "broker-a")
    assert (told["consumeResult"], told["remark"]) == (result, "ValueError: mine" if "THROW" in result else None)
    assert (told["order"], told["autoCommit"]) == (kind is ConsumeMessageOrderlyService, True)
    assert (scene.calls, scene.offsets.updates, scene.broker.taken) == ([[(0, 0)]], [], [])
