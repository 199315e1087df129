"""A server. Rust handles its sockets, and Python's processors answer.

Source: RocketMQ's `NettyServerConfig`, `NettySystemConfig`, `NettyRemotingServer`,
`NettyRemotingAbstract.processRequestCommand`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, Self

from rmqfast._native import Call, Mailbox
from rmqfast._native import RemotingServer as Listener
from rmqfast.errors import ForkError
from rmqfast.remoting.dispatcher import Dispatcher
from rmqfast.remoting.processor import Processor
from rmqfast.remoting.request import Channel, Request
from rmqfast.remoting.tls import TlsOptions


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Limits of a server. Times are in seconds, sizes in bytes.

    Attributes:
        max_frame_size: Limit of a frame including its length (`com.rocketmq.remoting.frameMaxLength`).
        max_connections: Limit of connections; further connections are closed at once.
        max_outgoing: Limit of queued output per connection; a peer that does not read is then disconnected.
        max_idle: Time without traffic after which a connection is closed (`serverChannelMaxIdleTimeSeconds`).
        max_frame_time: Time in which a frame must arrive.
        max_write_time: Time in which a write must end.
        max_handshake_time: Time in which a TLS handshake must end.
        tls: TLS options; `None` for plain connections.

    Example:
        >>> from rmqfast.remoting import RemotingClient, RemotingServer, Response, ServerOptions
        >>> few = ServerOptions(max_connections=100, max_idle=30.0)
        >>> with RemotingServer({7: lambda request: Response(body=b"here")}, options=few) as server:
        ...     with RemotingClient(server.listen("127.0.0.1:0")) as client:
        ...         client.request(7).body
        b'here'
    """

    max_frame_size: int = 16 << 20
    max_connections: int = 65_536
    # Beyond this, a peer that does not read is disconnected before it fills the memory.
    max_outgoing: int = 64 << 20
    max_idle: float = 120.0
    max_frame_time: float = 30.0
    max_write_time: float = 60.0
    max_handshake_time: float = 10.0
    tls: TlsOptions | None = None


#: Seconds that `close` waits for all processors together.
_PATIENCE = 3.0


class RemotingServer:
    """Answers requests with processors, on threads of its own.

    Args:
        processors: Processors by request code.
        check: Called before a processor; raises `ResponseError` for a forbidden request.
        closed: Called with each ended connection.
        again: Receives requests for which a processor returned `Again`, for the data plane of a broker.
        max_ages: Seconds that a request may wait, by code; older requests are answered with code 2.
        capacity: Limit of requests that wait for a processor, and a quarter of it per connection. Further requests are
            answered with code 2.
        max_body: Limit of a request's body in bytes; a longer body is answered with code 1 before it is read. Default:
            that of a frame.
        unlimited: Codes of requests without the limit `max_body`.
        workers: Number of threads.
        options: Limits and TLS of connections.

    Example:
        >>> from rmqfast.remoting import RemotingClient, Response
        >>> with RemotingServer({7: lambda request: Response(body=request.body[::-1])}) as server:
        ...     with RemotingClient(server.listen("127.0.0.1:0")) as client:
        ...         client.request(7, body=b"abc").body
        b'cba'
    """

    def __init__(
        self,
        processors: Mapping[int, Processor],
        *,
        check: Callable[[Request], None] | None = None,
        closed: Callable[[Channel], None] | None = None,
        again: Callable[[Call, tuple[str, int] | None], None] | None = None,
        max_ages: Mapping[int, float] | None = None,
        capacity: int = 10_000,
        max_body: int | None = None,
        unlimited: Collection[int] = (),
        workers: int = 4,
        options: ServerOptions | None = None,
    ) -> None:
        self._options = options or ServerOptions()
        self._listeners: list[Listener] = []
        self._pid = os.getpid()
        most = self._options.max_frame_size if max_body is None else max_body
        # Before any listener, since a connection may send a request as soon as it is accepted.
        self.mailbox: Final = Mailbox(capacity, max_body=most, unlimited=list(unlimited))
        self._dispatcher = Dispatcher(
            self.mailbox, processors, check=check, closed=closed, again=again, max_ages=max_ages, workers=workers
        )

    def listen(self, address: str) -> str:
        """Listens at `host:port` and returns the address. With port 0, the system chooses a free port.

        Raises:
            RemotingError: The address cannot be used.
            TlsFileError: A certificate or a key cannot be used.
            ForkError: The server was created before a fork.
        """
        if os.getpid() != self._pid:
            message = "the server was made before a fork: make one in this process"
            raise ForkError(message)
        self._listeners.append(Listener.bind(address, self.mailbox, self._options))
        return self._listeners[-1].address

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return sum(listener.connections for listener in self._listeners)

    def close(self) -> None:
        """Stops listening and closes all connections. Waits up to three seconds for processors that are running."""
        for listener in self._listeners:
            listener.close()
        # After the listeners, so that received requests are still answered.
        self.mailbox.close()
        if os.getpid() == self._pid:
            self._dispatcher.join(_PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
