"""Sends traces in the background, several in one message.

Source: RocketMQ's `AsyncTraceDispatcher`.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, Literal, Protocol, TypeAlias

from rmqfast.client.instance.config import ClientArguments, ClientConfig, TracedClientArguments
from rmqfast.client.instance.exits import EXITS
from rmqfast.client.trace.trace_data import TRACE_TOPIC, TraceContext, TraceData, encode_trace
from rmqfast.errors import RmqError
from rmqfast.logs import logger_of
from rmqfast.message import Message
from rmqfast.system import monotonic
from rmqfast.threads import Thread, new_event, new_lock, new_thread

_log = logger_of(__name__)

#: Maximum bytes of a body: Java checks after adding, so that its own producer may refuse the message.
MOST_BYTES = 118_000
#: Maximum bytes of all keys: a broker takes 32,767 bytes of properties, which Java's dispatcher does not check.
MOST_KEY_BYTES = 30_000
#: Queue limit; more traces are dropped.
QUEUE_SIZE = 2048
#: Queue length that wakes the thread before its next poll.
_MANY = 512
#: Seconds between polls of the queue.
_POLL = 0.1
#: Seconds after which a trace is sent, together with later traces.
_LONGEST_WAIT = 0.5
_SEND_TIMEOUT = 5.0
#: Seconds that a shutdown waits for the thread.
_PATIENCE = 3.0
_GROUP_PREFIX = "_INNER_TRACE_PRODUCER"
_NUMBERS = itertools.count(1)


class TraceSegment:
    """Traces to be sent in one message. `since` is the time at which the first was added, None if there are none."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._keys: set[str] = set()
        self._size = self._key_size = 0
        self.since: float | None = None

    def has_room(self, data: TraceData) -> bool:
        # a single trace is always accepted, however large
        if not self._parts:
            return True
        fits = self._size + len(data.text.encode("utf-8", "replace")) <= MOST_BYTES
        return fits and self._key_size + sum(map(_key_size, data.keys - self._keys)) <= MOST_KEY_BYTES

    def add(self, data: TraceData, now: float) -> None:
        part = data.text.encode("utf-8", "replace")
        self._parts.append(part)
        self._size += len(part)
        new = data.keys - self._keys
        self._keys |= new
        self._key_size += sum(map(_key_size, new))
        self.since = now if self.since is None else self.since

    def take(self) -> tuple[bytes, list[str]]:
        taken = b"".join(self._parts), list(_fitting(self._keys))
        self._parts, self._keys, self._size, self._key_size, self.since = [], set(), 0, 0, None
        return taken


def _fitting(keys: Iterable[str]) -> Iterable[str]:
    size = 0
    # short keys first, so that as many as possible fit
    for key in sorted(keys, key=lambda key: (len(key), key)):
        size += _key_size(key)
        if size > MOST_KEY_BYTES:
            return
        yield key


def _key_size(key: str) -> int:
    return len(key.encode("utf-8", "replace")) + 1


class TraceProducer(Protocol):
    """The methods of `Producer` that sending traces needs."""

    def start(self) -> None: ...

    def send_async(self, message: Message, callback: Callable[[object], object], *, timeout: float) -> object: ...

    def shutdown(self) -> None: ...


class MakesProducer(Protocol):
    """The class `Producer`. It is passed as a parameter, since its module imports this module."""

    def __call__(self, group: str, *, config: ClientConfig) -> TraceProducer: ...


Kind: TypeAlias = Literal["PRODUCE", "CONSUME"]


class AsyncTraceDispatcher:
    """Sends the traces of one client in the background.

    Its producer has the configuration of the client without the namespace, because all namespaces share one trace
    topic.

    Args:
        group: The group of the client.
        kind: Whether the client produces or consumes.
        topic: The trace topic. Default: `RMQ_SYS_TRACE_TOPIC`.
        clock: Returns monotonic seconds.
    """

    def __init__(
        self, group: str, kind: Kind, topic: str | None = None, *, clock: Callable[[], float] = monotonic
    ) -> None:
        self.topic: Final = topic if topic and topic.strip() else TRACE_TOPIC
        self.producer_group: Final = f"{_GROUP_PREFIX}-{group}-{kind}-{next(_NUMBERS)}"
        self.dropped: int = 0
        self._clock, self._waiting, self._segment = clock, deque[TraceContext](), TraceSegment()
        self._wake, self._lock = new_event(), new_lock()
        self._is_idle = self._is_closed = False
        self._producer: TraceProducer | None = None
        self._thread: Thread | None = None

    def start(self, make_producer: MakesProducer, config: ClientConfig) -> None:
        # all namespaces share one trace topic
        producer = make_producer(self.producer_group, config=replace(config, namespace=""))
        try:
            producer.start()
        except RmqError:
            _log.warning("trace dispatcher start failed", exc_info=True)
            return
        self._producer = producer
        self._thread = new_thread(self._run, name=f"rmqfast-trace-{self.producer_group}")
        self._thread.start()
        # so that queued traces are sent at the end of the interpreter
        EXITS.add(self)

    def append(self, context: TraceContext) -> bool:
        if self._is_closed or len(self._waiting) >= QUEUE_SIZE:
            self._drop(context)
            return False
        self._waiting.append(context)
        # otherwise the thread polls, which costs senders nothing
        if self._is_idle or len(self._waiting) >= _MANY:
            self._wake.set()
        return True

    def shutdown(self, timeout: float = _PATIENCE) -> None:
        """Sends the queued traces and ends. A second call does nothing.

        Args:
            timeout: Seconds to wait for the thread; the producer then waits for sends in flight.
        """
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._wake.set()
        if self._thread is None or self._producer is None:
            return
        EXITS.remove(self)
        self._thread.join(timeout)
        if self._thread.is_alive():
            _log.warning("traces of %s are lost: they could not be sent in %.1f s", self.producer_group, timeout)
        # waits for the traces in flight
        self._producer.shutdown()

    def end_at_exit(self, deadline: float) -> None:
        self.shutdown(max(0.0, deadline - monotonic()))

    def _run(self) -> None:
        while True:
            # read before the queue, so that the last round sends all traces appended before the end
            is_last = self._is_closed
            self._collect()
            if self._segment.since is not None and (is_last or self._clock() - self._segment.since >= _LONGEST_WAIT):
                self._send()
            if is_last:
                return
            self._wait()

    def _wait(self) -> None:
        self._is_idle = self._segment.since is None
        if not (self._is_idle and self._waiting):
            self._wake.wait(None if self._is_idle else _POLL)
        self._is_idle = False
        self._wake.clear()

    def _collect(self) -> None:
        for _ in range(len(self._waiting)):
            context = self._waiting.popleft()
            try:
                data = encode_trace(context)
            except ValueError:
                _log.exception("a trace is dropped: %s", context)
                continue
            if not self._segment.has_room(data):
                self._send()
            self._segment.add(data, self._clock())

    def _send(self) -> None:
        body, keys = self._segment.take()
        try:
            if self._producer is not None:
                self._producer.send_async(Message(self.topic, body, keys=keys), self._on_sent, timeout=_SEND_TIMEOUT)
        except RmqError as error:
            self._on_sent(error)

    def _on_sent(self, ended: object) -> None:
        if isinstance(ended, RmqError):
            _log.error("send trace data failed, to the topic %s: %s", self.topic, ended)

    def _drop(self, context: TraceContext) -> None:
        with self._lock:
            self.dropped += 1
            count = self.dropped
        # logs the first loss, then only one line per full queue
        if count == 1 or count % QUEUE_SIZE == 0:
            why = "its client has ended" if self._is_closed else "buffer full"
            _log.warning("%s: %s, %d traces are dropped, the last one: %s", self.topic, why, count, context)


def config_and_trace(
    group: str, kind: Kind, arguments: TracedClientArguments
) -> tuple[ClientConfig, AsyncTraceDispatcher | None]:
    """Returns the configuration of a client, and its trace dispatcher if traces are enabled."""
    is_traced, topic = arguments.pop("enable_msg_trace", False), arguments.pop("customized_trace_topic", None)
    others: ClientArguments = arguments
    return ClientConfig.of(**others), AsyncTraceDispatcher(group, kind, topic) if is_traced else None
