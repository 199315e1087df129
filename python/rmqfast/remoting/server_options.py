"""Limits of a server.

Source: `NettyServerConfig`, `NettySystemConfig`.
"""

from __future__ import annotations

from dataclasses import dataclass

from rmqfast.remoting.tls_options import TlsOptions


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
