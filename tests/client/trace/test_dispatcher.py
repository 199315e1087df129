"""How traces are sent: some together, never waited for, dropped where there is no room."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from rmqfast.client.instance import ClientConfig
from rmqfast.client.trace import AsyncTraceDispatcher, TraceBean, TraceContext, TraceType, decode_trace
from rmqfast.client.trace.dispatcher import MOST_BYTES, MOST_KEY_BYTES, QUEUE_SIZE
from rmqfast.errors import ClientError
from rmqfast.message import Message
from tests.waiting import PATIENCE, until

CONFIG = ClientConfig(name_server="127.0.0.1:1", namespace="ns", instance_name="i")


class Sender:
    """A producer that notes what it is given.

    Attributes:
        sent: The messages.
        is_asked: Set as soon as one is to be sent.
        may_answer: While it is not set, sends do not return.
    """

    def __init__(self, error: Exception | None = None, *, start_error: Exception | None = None) -> None:
        self.sent: list[Message] = []
        self.error, self.start_error = error, start_error
        self.is_asked, self.may_answer = threading.Event(), threading.Event()
        self.may_answer.set()
        self.made: tuple[str, ClientConfig] | None = None
        self.is_started = self.is_shut = False

    def __call__(self, group: str, *, config: ClientConfig) -> Sender:
        self.made = group, config
        return self

    def start(self) -> None:
        self.is_started = True
        if self.start_error is not None:
            raise self.start_error

    def send_async(self, message: Message, callback: Callable[[object], object], *, timeout: float) -> None:
        assert timeout == 5.0
        self.is_asked.set()
        assert self.may_answer.wait(PATIENCE)
        self.sent.append(message)
        if self.error is not None:
            raise self.error
        callback(None)

    def shutdown(self) -> None:
        self.is_shut = True

    @property
    def ids(self) -> list[str | None]:
        return [each.beans[0].msg_id for message in self.sent for each in decode_trace(message.body.decode())]


class Clock:
    """Seconds that a test sets, and how often they were looked at."""

    def __init__(self) -> None:
        self.now, self.looks = 0.0, 0

    def __call__(self) -> float:
        self.looks += 1
        return self.now


@pytest.fixture(autouse=True)
def _short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits is looked at often."""
    monkeypatch.setattr("rmqfast.client.trace.dispatcher._POLL", 0.002)


def trace(number: int = 0, keys: str | None = None, beans: int = 1) -> TraceContext:
    made = [TraceBean(msg_id=f"{number + index:032}", keys=keys) for index in range(beans)]
    return TraceContext(trace_type=TraceType.SUB_BEFORE, beans=made, timestamp=number, request_id="r")


def begun(sender: Sender, **options: Any) -> AsyncTraceDispatcher:
    dispatcher = AsyncTraceDispatcher("orders", "CONSUME", **options)
    dispatcher.start(sender, CONFIG)
    return dispatcher


def test_traces_go_together_after_half_a_second() -> None:
    sender, clock = Sender(), Clock()
    dispatcher = begun(sender, clock=clock)
    assert sender.made is not None
    assert sender.made[0].startswith("_INNER_TRACE_PRODUCER-orders-CONSUME-")
    assert all(dispatcher.append(trace(number, "k")) for number in range(10))
    until(lambda: clock.looks >= 10)
    clock.now = 0.49
    before = clock.looks
    until(lambda: clock.looks >= before + 2)  # the second look began after the clock was set
    assert sender.sent == []
    clock.now = 0.5
    until(lambda: sender.sent)
    (message,) = sender.sent
    assert len(decode_trace(message.body.decode())) == 10
    assert message.keys == " ".join(["k", *(f"{number:032}" for number in range(10))])
    dispatcher.append(trace(11))
    dispatcher.shutdown(PATIENCE)
    assert sender.ids[10:] == [f"{11:032}"], "what waits is sent at the end"
    assert not dispatcher.append(trace(12))
    dispatcher.shutdown(PATIENCE)
    assert len(sender.sent) == 2


def test_no_message_is_larger_than_brokers_take() -> None:
    sender = Sender()
    dispatcher = begun(sender)
    total = 0
    for number in range(0, 800, 2):
        total += 2
        dispatcher.append(trace(number, f"größe-{number:0100}", beans=2))
    dispatcher.shutdown(PATIENCE)
    assert len(sender.ids) == total
    assert len(sender.sent) > 1
    assert max(len(message.body) for message in sender.sent) <= MOST_BYTES
    assert max(len((message.keys or "").encode()) for message in sender.sent) <= MOST_KEY_BYTES
    assert sender.ids == [f"{number:032}" for number in range(total)]
    for message in sender.sent:
        told = {each.beans[0].msg_id for each in decode_trace(message.body.decode())}
        assert told <= set((message.keys or "").split()), "each is found by its id"


def test_of_a_batch_with_too_many_ids_those_are_keys_that_have_room() -> None:
    sender, ids = Sender(), [f"{number:032}" for number in range(2000)]
    dispatcher = begun(sender)
    context = trace()
    context.beans[0].msg_id = ",".join(ids)
    dispatcher.append(context)
    dispatcher.shutdown(PATIENCE)
    (message,) = sender.sent
    keys = (message.keys or "").split()
    assert keys == ids[: len(keys)]
    assert 800 < len(keys) <= MOST_KEY_BYTES // 33


def test_what_there_is_no_room_for_is_dropped_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    sender = Sender()
    dispatcher = AsyncTraceDispatcher("orders", "PRODUCE")
    taken = [dispatcher.append(trace(number)) for number in range(QUEUE_SIZE + 3)]
    assert taken == [True] * QUEUE_SIZE + [False] * 3
    assert dispatcher.dropped == 3
    assert caplog.text.count("buffer full") == 1
    dispatcher.start(sender, CONFIG)
    dispatcher.shutdown(PATIENCE)
    assert len(sender.ids) == QUEUE_SIZE


def test_a_sender_that_hangs_holds_nobody_up(caplog: pytest.LogCaptureFixture) -> None:
    sender = Sender()
    sender.may_answer.clear()
    dispatcher = begun(sender, clock=count().__next__)
    dispatcher.append(trace())
    assert sender.is_asked.wait(PATIENCE)
    for number in range(3 * QUEUE_SIZE):
        dispatcher.append(trace(number))
    assert dispatcher.dropped == 2 * QUEUE_SIZE
    dispatcher.shutdown(0.01)
    assert "are lost" in caplog.text
    sender.may_answer.set()


def test_traces_that_cannot_be_sent_or_made_are_logged_and_the_next_ones_go(caplog: pytest.LogCaptureFixture) -> None:
    sender = Sender(ClientError("No route"))
    dispatcher = begun(sender, clock=count().__next__)
    dispatcher.append(TraceContext(trace_type=TraceType.PUB))
    dispatcher.append(trace())
    until(lambda: sender.sent)
    sender.error = None
    dispatcher.append(trace(1))
    dispatcher.shutdown(PATIENCE)
    assert len(sender.sent) == 2
    assert "send trace data failed" in caplog.text
    assert "a trace is dropped" in caplog.text


def test_where_its_producer_does_not_start_the_client_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    dispatcher = begun(Sender(start_error=ClientError("no")))
    assert "trace dispatcher start failed" in caplog.text
    assert dispatcher.append(trace())
    dispatcher.shutdown(PATIENCE)
