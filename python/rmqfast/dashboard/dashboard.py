"""A server of web pages about a cluster."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable, Sequence
from typing import Self

import uvicorn

from rmqfast.arguments import Duration, seconds, suggests_names
from rmqfast.client.instance import ClientConfig
from rmqfast.dashboard.change_log import ChangeEntry, ChangeLog
from rmqfast.dashboard.change_pages import ChangePages
from rmqfast.dashboard.site import Site
from rmqfast.dashboard.state import ClusterState
from rmqfast.errors import ArgumentError, RemotingError
from rmqfast.pickling import not_picklable
from rmqfast.remoting.loopback import is_loopback, with_brackets
from rmqfast.threads import Thread, new_thread

PORT = 8080
#: Names of this machine. Older releases of starlette take "[" for each literal address of IPv6.
_LOOPBACK = ["127.0.0.1", "localhost", "[::1]", "::1", "["]
#: Bytes of an address with its headers: a position names each queue of a topic.
_LONGEST_REQUEST = 256 << 10
#: Connections at a time; further ones are told to come later.
_CLIENTS = 256


@suggests_names
@not_picklable("make one in each process")
class Dashboard:
    """Web pages about a cluster: what is wrong, groups, topics, messages, dead letters; and changes.

    Args:
        config: Name server, account and TLS of the cluster.
        port: Port to listen at; 0 chooses a free one.
        host: Address to listen at. Default: only this machine may ask.
        password: Password of the pages. Default: a new one, in the attribute `password`.
        allowed_hosts: Names by which browsers may reach the pages. Default: any, or only those of this machine if
            `host` is a loopback address.
        interval: Time between two looks at the cluster.
        read_only: Whether the pages change nothing.
        on_change: Gets each change that somebody made on the pages, or tried to.

    Attributes:
        password: Password of the pages.

    Raises:
        ArgumentError: A name of `allowed_hosts` has another form.
        RemotingError: The port is not available.

    Example:
        >>> import rmqfast
        >>> from urllib.request import urlopen
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     config = rmqfast.ClientConfig(name_server=cluster.name_server)
        ...     with Dashboard(config, port=0) as dashboard, urlopen(f"http://{dashboard.address}/") as login:
        ...         b"Password" in login.read()
        True
    """

    def __init__(
        self,
        config: ClientConfig,
        *,
        port: int = PORT,
        host: str = "127.0.0.1",
        password: str | None = None,
        allowed_hosts: Sequence[str] | None = None,
        interval: Duration = 5.0,
        read_only: bool = False,
        on_change: Callable[[ChangeEntry], None] | None = None,
    ) -> None:
        self.password: str = secrets.token_urlsafe(12) if password is None else password
        self._host, self._port = host, port
        own = _LOOPBACK if is_loopback(host) else ["*"]
        self._hosts = own if allowed_hosts is None else list(allowed_hosts)
        if wrong := [name for name in self._hosts if name != "*" and "*" in name.removeprefix("*.")]:
            raise ArgumentError(f"allowed_hosts: expected names, as mq.example, *.example or *, got {wrong[0]!r}")
        self._state = ClusterState(config, interval=seconds("interval", interval))
        self._changes = ChangePages(self._state.admin, ChangeLog(on_change), is_read_only=read_only)
        self._socket: socket.socket | None = None
        self._server: uvicorn.Server | None = None
        self._thread: Thread | None = None

    def start(self) -> None:
        """Takes the first look at the cluster, and serves. Raises `RmqError` if no name server answers."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        # With the protocol named, asyncio sends small answers at once (TCP_NODELAY).
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((self._host, self._port))
        except OSError as error:
            listening.close()
            place = f"{with_brackets(self._host)}:{self._port}"
            raise RemotingError(f"dashboard at {place}: {error.strerror or error}") from error
        try:
            self._state.start()
        except BaseException:
            listening.close()
            raise
        self._socket = listening
        app = Site(self._state, self._changes, self.password).app(self._hosts)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            limit_concurrency=_CLIENTS,
            h11_max_incomplete_event_size=_LONGEST_REQUEST,
        )
        self._server = uvicorn.Server(config)
        listening.listen(128)
        self._thread = new_thread(self._serve, self._server, listening, name="rmqfast-dashboard")
        self._thread.start()

    @property
    def address(self) -> str:
        """Address of the pages, `host:port`. Empty before `start`."""
        if self._socket is None:
            return ""
        host, port = self._socket.getsockname()[:2]
        return f"{with_brackets(str(host))}:{port}"

    def stop(self) -> None:
        """Stops serving, and closes the connections to the cluster. May be called twice."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
            self._server = self._thread = None
            self._state.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @staticmethod
    def _serve(server: uvicorn.Server, listening: socket.socket) -> None:
        asyncio.run(server.serve([listening]))
