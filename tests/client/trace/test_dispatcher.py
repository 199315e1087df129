"""How traces are sent: some together, never waited for, dropped where there is no room."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from rmqfast.client.instance import ClientConfig
from rmqfast.client.trace import AsyncTraceDispatcher, TraceBean, TraceContext, TraceType, decode_trace
from rmqfast.client.trace.dispatcher import QUEUE_SIZE
from rmqfast.client.trace.segment import MOST_BYTES, MOST_KEY_BYTES
from rmqfast.errors import ClientError
from rmqfast.message import Message

CONFIG = ClientConfig(name_server="127.0.0.1:1", namespace="ns", instance_name="i")


class Sender:
    """A producer that notes what it is given."""

    def __init__(self, error: Exception | None = None, *, start_error: Exception | None = None) -> None:
        self.sent: list[Message] = []
        self.times: list[float] = []
        self.error, self.start_error, self.blocked = error, start_error, threading.Event()
        self.blocked.set()
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
        self.blocked.wait(10)
        self.times.append(time.monotonic())
        self.sent.append(message)
        if self.error is not None:
            raise self.error
        callback(None)

    def shutdown(self) -> None:
        self.is_shut = True

    @property
    def ids(self) -> list[str | None]:
        return [each.beans[0].msg_id for message in self.sent for each in decode_trace(message.body.decode())]


def trace(number: int = 0, keys: str | None = None, beans: int = 1) -> TraceContext:
    made = [TraceBean(msg_id=f"{number + index:032}", keys=keys) for index in range(beans)]
    return TraceContext(trace_type=TraceType.SUB_BEFORE, beans=made, timestamp=number, request_id="r")


def until(condition: Callable[[], object], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.005)


def begun(sender: Sender, *args: Any) -> AsyncTraceDispatcher:
    dispatcher = AsyncTraceDispatcher("orders", "CONSUME", *args)
    dispatcher.start(sender, CONFIG)
    return dispatcher


def test_its_producer_has_a_group_of_its_own_and_no_namespace() -> None:
    sender = Sender()
    dispatcher = begun(sender)
    dispatcher.shutdown()
    assert sender.made is not None
    group, config = sender.made
    assert group.startswith("_INNER_TRACE_PRODUCER-orders-CONSUME-")
    assert AsyncTraceDispatcher("orders", "CONSUME").producer_group != group
    assert (config.namespace, config.instance_name, config.name_server) == ("", "i", "127.0.0.1:1")
    assert (sender.is_started, sender.is_shut) == (True, True)


@pytest.mark.parametrize(
    ("topic", "expected"), [(None, "RMQ_SYS_TRACE_TOPIC"), (" ", "RMQ_SYS_TRACE_TOPIC"), ("t", "t")]
)
def test_traces_go_together_after_half_a_second(topic: str | None, expected: str) -> None:
    sender = Sender()
    dispatcher = begun(sender, topic)
    began = time.monotonic()
    assert all(dispatcher.append(trace(number, "k")) for number in range(10))
    until(lambda: sender.sent)
    assert 0.5 <= sender.times[0] - began < 5.0
    (message,) = sender.sent
    assert (message.topic, len(decode_trace(message.body.decode()))) == (expected, 10)
    assert message.keys == " ".join(["k", *(f"{number:032}" for number in range(10))])
    dispatcher.append(trace(11))
    dispatcher.shutdown()
    assert sender.ids[10:] == [f"{11:032}"], "what waits is sent at the end"
    assert not dispatcher.append(trace(12))
    dispatcher.shutdown()
    assert len(sender.sent) == 2


def test_no_message_is_larger_than_brokers_take() -> None:
    sender = Sender()
    dispatcher = begun(sender)
    total = 0
    for number in range(0, 2000, 2):
        total += 2
        dispatcher.append(trace(number, f"größe-{number:0100}", beans=2))
    dispatcher.shutdown()
    assert len(sender.ids) == total
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
    dispatcher.shutdown()
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
    dispatcher.shutdown()
    assert len(sender.ids) == QUEUE_SIZE


def test_a_sender_that_hangs_holds_nobody_up(caplog: pytest.LogCaptureFixture) -> None:
    sender = Sender()
    sender.blocked.clear()
    dispatcher = begun(sender)
    dispatcher.append(trace())
    time.sleep(0.7)
    began = time.monotonic()
    for number in range(3 * QUEUE_SIZE):
        dispatcher.append(trace(number))
    assert time.monotonic() - began < 1
    assert dispatcher.dropped >= QUEUE_SIZE
    dispatcher.shutdown(0.1)
    assert "are lost" in caplog.text
    sender.blocked.set()


def test_many_threads_lose_nothing() -> None:
    sender = Sender()
    dispatcher = begun(sender)

    def append(first: int) -> None:
        for number in range(first, first + 200):
            assert dispatcher.append(trace(number))
            time.sleep(0.0005)

    threads = [threading.Thread(target=append, args=(first,)) for first in range(0, 1600, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    dispatcher.shutdown()
    assert sorted(map(str, sender.ids)) == [f"{number:032}" for number in range(1600)]


def test_traces_that_cannot_be_sent_or_made_are_logged_and_the_next_ones_go(caplog: pytest.LogCaptureFixture) -> None:
    sender = Sender(ClientError("No route"))
    dispatcher = begun(sender)
    dispatcher.append(TraceContext(trace_type=TraceType.PUB))
    dispatcher.append(trace())
    until(lambda: sender.sent)
    sender.error = None
    dispatcher.append(trace(1))
    dispatcher.shutdown()
    assert len(sender.sent) == 2
    assert "send trace data failed" in caplog.text
    assert "a trace is dropped" in caplog.text


def test_where_its_producer_does_not_start_the_client_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    dispatcher = begun(Sender(start_error=ClientError("no")))
    assert "trace dispatcher start failed" in caplog.text
    assert dispatcher.append(trace())
    dispatcher.shutdown()
