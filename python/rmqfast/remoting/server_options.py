"""Limits of a server towards its peers."""

from __future__ import annotations

from dataclasses import dataclass

from rmqfast.remoting.tls_options import TlsOptions


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Limits of a server; times in seconds, sizes in bytes.

    Attributes:
        max_frame_size: A frame with its length (`com.rocketmq.remoting.frameMaxLength`).
        max_connections: Connections at most; further ones are closed at once.
        max_outgoing: What may wait for a peer that does not read.
        max_idle: How long nothing needs to come or go (`serverChannelMaxIdleTimeSeconds`).
        max_frame_time: How long a frame may take to come in.
        max_write_time: How long a write may take.
        max_handshake_time: How long a TLS handshake may take.
        tls: TLS; without, all connections are plain.

    Example:
        >>> from rmqfast.remoting import RemotingClient, RemotingServer, Response, ServerOptions
        >>> few = ServerOptions(max_connections=100, max_idle=30.0)
        >>> with RemotingServer({7: lambda request: Response(body=b"here")}, options=few) as server:
        ...     with RemotingClient(server.listen("127.0.0.1:0")) as client:
        ...         client.request(7).body
        b'here'

    Source: `NettyServerConfig`, `NettySystemConfig`.
    """

    max_frame_size: int = 16 << 20
    max_connections: int = 65_536
    # a peer that does not read is closed at this much, instead of filling the memory
    max_outgoing: int = 64 << 20
    max_idle: float = 120.0
    max_frame_time: float = 30.0
    max_write_time: float = 60.0
    max_handshake_time: float = 10.0
    tls: TlsOptions | None = None
