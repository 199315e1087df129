"""All connections of a client, by address: requests, oneway requests and callbacks.

Source: RocketMQ's `NettyRemotingAbstract.executeInvokeCallback`, `ResponseFuture`, `NettyRemotingClient`.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Self, TypeAlias

from rmqfast._native import Connections as NativeConnections
from rmqfast._native import Mailbox, MessageSender
from rmqfast.errors import ForkError, RemotingError
from rmqfast.logs import logger_of
from rmqfast.remoting.dispatcher import Dispatcher
from rmqfast.remoting.processor import Processor
from rmqfast.remoting.request import Channel, Response, response_of
from rmqfast.remoting.tls import TlsOptions
from rmqfast.system import monotonic
from rmqfast.threads import is_current, new_lock, new_thread, thread_ident

_log = logger_of(__name__)

#: Called once with the answer of an asynchronous request, or with its error.
OnDone: TypeAlias = Callable[[Response | RemotingError], None]

#: Ended requests that a thread takes at once; a slow callback delays the others of its batch.
_AT_ONCE = 64
#: Seconds that a thread waits before it looks again; new work and `close` wake it earlier.
_WAIT = 60.0


class Callbacks:
    """The threads that run callbacks."""

    def __init__(self, native: NativeConnections, threads: int) -> None:
        self._native = native
        self._own: set[int] = set()
        names = [f"rmqfast-callback-{n}" for n in range(threads)]
        self._threads = [new_thread(self._run, name=name) for name in names]
        for thread in self._threads:
            thread.start()
        # Last, since Rust queues ended requests only if threads will take them.
        native.expect_takers()

    @property
    def is_own_thread(self) -> bool:
        """Whether the calling thread runs callbacks. If so, it must not wait for another callback."""
        return thread_ident() in self._own

    def join(self, patience: float) -> None:
        """Waits until queued callbacks have run, at most `patience` seconds."""
        deadline = monotonic() + patience
        for thread in self._threads:
            if not is_current(thread):
                # The limit is for all threads together, so that `close` ends even if callbacks hang.
                thread.join(max(0.0, deadline - monotonic()))

    def _run(self) -> None:
        self._own.add(thread_ident())
        while (outcomes := self._native.take(_AT_ONCE, _WAIT)) is not None:
            for on_done, outcome in outcomes:
                # Answers arrive as tuples; errors and decoded results are passed on unchanged.
                end = response_of(outcome) if outcome.__class__ is tuple else outcome
                try:
                    on_done(end)
                except BaseException:  # noqa: BLE001  # a defect in one callback must not end the others
                    _log.exception("%r failed with the end of a request", on_done)


#: Computes additional header fields of a request from its code, fields and body: account and signature.
Sign: TypeAlias = Callable[[int, Mapping[str, str], bytes], Mapping[str, str]]
#: Limit of asynchronous requests in flight (`com.rocketmq.remoting.clientAsyncSemaphoreValue`).
MAX_IN_FLIGHT = 65_535
#: Limit of requests from peers that wait for a processor.
_CAPACITY = 10_000
#: Seconds that `close` waits for callbacks and processors together.
_PATIENCE = 3.0
_NO_FIELDS: Mapping[str, str] = MappingProxyType({})
_NONE: Mapping[int, Processor] = MappingProxyType({})


class Connections:
    """All connections of a client, by `host:port`. They open at their first use, and again after an error.

    `request` uses a connection of its own, which later calls reuse. All other methods share one connection per address,
    over which the peer also sends its requests. Only one attempt at a time opens a connection. After a failure, further
    calls raise the same error for 0.1 to 5 seconds.

    Args:
        tls: TLS options; `None` for plain connections.
        sign: Computes additional header fields of each request, for ACL.
        processors: Processors of requests that peers send, by request code.
        on_closed: Called with the address of a shared connection that ended without `close`.
        callback_threads: Number of threads that call callbacks.
        connect_timeout: Timeout of a connection attempt, in seconds.

    Example:
        >>> from rmqfast.remoting import RemotingServer
        >>> with RemotingServer({7: lambda request: Response(body=request.body[::-1])}) as server:
        ...     with Connections() as connections:
        ...         connections.request(server.listen("127.0.0.1:0"), 7, body=b"abc").body
        b'cba'
    """

    def __init__(
        self,
        *,
        tls: TlsOptions | None = None,
        sign: Sign | None = None,
        processors: Mapping[int, Processor] = _NONE,
        on_closed: Callable[[str], None] | None = None,
        callback_threads: int = 2,
        connect_timeout: float = 3.0,
    ) -> None:
        if tls is not None:
            tls.check_trust()
        self._sign, self._processors, self._on_closed = sign, processors, on_closed
        self._threads = callback_threads
        self._pid = os.getpid()
        self._mailbox = Mailbox(_CAPACITY)
        self._native = NativeConnections(self._mailbox, tls, connect_timeout, MAX_IN_FLIGHT, callback_threads)
        self._starting = new_lock()
        #: Addresses whose shared connection was used and has not ended since.
        self._open: set[str] = set()
        self._dispatcher: Dispatcher | None = None
        self._callbacks: Callbacks | None = None
        # A client that was dropped without `close` still closes its connections.
        self._end = weakref.finalize(self, _end, self._pid, self._native, self._mailbox)

    def request(
        self,
        address: str,
        code: int,
        ext_fields: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        timeout: float = 3.0,
    ) -> Response:
        """Sends a request and returns the answer, with any response code.

        Raises:
            RemotingConnectError: No server listens at the address.
            RemotingTimeoutError: No answer came in time; the request may have been executed.
            ChannelClosedError: The connection ended, or `close` was called; the request may have been executed.
            RemotingProtocolError: The received bytes are not an answer.
            ForkError: The connections were opened before a fork.
        """
        fields = self._with_signature(code, ext_fields, body)
        return response_of(self._native.request(address, code, fields, body, timeout))

    def control(
        self,
        address: str,
        code: int,
        ext_fields: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        timeout: float = 3.0,
    ) -> Response:
        """Sends a request over the shared connection and returns the answer. Heartbeats must be sent this way."""
        self._start_dispatcher()
        fields = self._with_signature(code, ext_fields, body)
        answer = response_of(self._native.control(address, code, fields, body, timeout))
        self._open.add(address)
        return answer

    def submit(
        self,
        address: str,
        code: int,
        ext_fields: Mapping[str, str] | None,
        body: bytes,
        on_done: OnDone,
        *,
        timeout: float = 3.0,
        waits: bool = True,
    ) -> None:
        """Sends a request. Calls `on_done` exactly once with the answer or the error, on another thread.

        With 65,535 requests in flight or 32 MiB of queued output, this waits up to `timeout`, except in a callback.
        With `waits=False`, requests in flight are not limited, but this still waits for a connection. If it raises,
        `on_done` is not called.

        Raises:
            RemotingConnectError: No server listens at the address.
            TooManyRequestsError: Too many requests are in flight.
            ChannelClosedError: `close` was called.
            ForkError: The connections were opened before a fork.
        """
        callbacks = self._start_callbacks()
        fields = self._with_signature(code, ext_fields, body)
        # A callback must not wait for room, since only its own thread may free some.
        is_patient = waits and not callbacks.is_own_thread
        self._native.submit(address, code, fields, body, timeout, on_done, is_patient)
        self._open.add(address)

    def is_open(self, address: str) -> bool:
        """Whether the shared connection of an address is open, as far as this client knows."""
        return address in self._open

    def send_oneway(
        self, address: str, code: int, ext_fields: Mapping[str, str] | None = None, body: bytes = b""
    ) -> None:
        """Sends a request without an answer. Waits up to three seconds if much output is queued. Raises as `submit`."""
        self._start_dispatcher()
        waits = self._callbacks is None or not self._callbacks.is_own_thread
        self._native.send_oneway(address, code, self._with_signature(code, ext_fields, body), body, waits)

    def sender(self, **named: Any) -> MessageSender:
        """Returns a sender of messages over these connections. `named` are arguments of `MessageSender`."""
        return MessageSender(self._native, self, self._sign, **named)

    def note_open(self, address: str) -> None:
        """Records that the shared connection of an address is open."""
        self._open.add(address)

    def may_wait(self) -> bool:
        """Whether this thread may wait if too much is in flight or queued. Threads that run callbacks must not."""
        return not self._start_callbacks().is_own_thread

    def close(self) -> None:
        """Closes all connections. Callers that wait get an error.

        Waits until queued output is written, at most three seconds after peers stop reading. A warning counts the lost
        one-way requests. Callbacks and processors get three seconds, too.
        """
        self._end()
        if os.getpid() == self._pid:
            for threads in (self._callbacks, self._dispatcher):
                if threads is not None:
                    threads.join(_PATIENCE / 2)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _with_signature(self, code: int, ext_fields: Mapping[str, str] | None, body: bytes) -> Mapping[str, str]:
        fields = ext_fields or _NO_FIELDS
        return fields if self._sign is None else {**fields, **self._sign(code, fields, body)}

    def _start_dispatcher(self) -> Dispatcher:
        """Starts the dispatcher for requests of brokers and returns it. Called before the first connection is used."""
        if os.getpid() != self._pid:
            message = "the connections are those of a parent process: make others in this one"
            raise ForkError(message)
        if self._dispatcher is None:
            with self._starting:
                if self._dispatcher is None:
                    closed = _ClosedListener(self._on_closed, self._open, self._mailbox)
                    # One worker suffices and keeps the order: brokers send few requests, such as
                    # NOTIFY_CONSUMER_IDS_CHANGED.
                    self._dispatcher = Dispatcher(self._mailbox, self._processors, closed=closed, workers=1)
        return self._dispatcher

    def _start_callbacks(self) -> Callbacks:
        self._start_dispatcher()
        if self._callbacks is None:
            with self._starting:
                if self._callbacks is None:
                    self._callbacks = Callbacks(self._native, self._threads)
        return self._callbacks


class _ClosedListener:
    """Reports the addresses of connections that have ended, except if `close` ended them."""

    def __init__(self, on_closed: Callable[[str], None] | None, is_open: set[str], mailbox: Mailbox) -> None:
        self._on_closed, self._open, self._mailbox = on_closed, is_open, mailbox

    def __call__(self, peer: Channel) -> None:
        self._open.discard(peer.address)
        if self._on_closed is not None and not self._mailbox.is_closed:
            self._on_closed(peer.address)


def _end(pid: int, native: NativeConnections, mailbox: Mailbox) -> None:
    # After a fork, locks of the parent's threads may be held forever, so touch no connection.
    if os.getpid() == pid:
        mailbox.close()
        try:
            native.drain()
        finally:
            for address, count in native.close():
                _log.warning(
                    "up to %d one-way requests to <%s> are lost: it took no more of what was sent", count, address
                )
