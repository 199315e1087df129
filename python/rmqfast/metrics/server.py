"""Serves the metrics of a process over HTTP, at `/metrics`.

Source: RocketMQ 5's `BrokerMetricsManager`, whose Prometheus exporter answers at the same path.
"""

from __future__ import annotations

import gzip
import socket
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from rmqfast.errors import RemotingError
from rmqfast.logs import logger_of
from rmqfast.metrics.text import CONTENT_TYPE
from rmqfast.pickling import not_picklable
from rmqfast.remoting.loopback import with_brackets
from rmqfast.system import monotonic
from rmqfast.threads import new_lock, new_semaphore, new_thread

_log = logger_of(__name__)
#: Seconds in which a client must send its request and take the answer.
_PATIENCE = 10.0
#: Connections at a time, each of which has a thread; further ones are closed.
MOST_CLIENTS = 64


@not_picklable("make one in each process")
class MetricsServer:
    r"""Answers `GET /metrics` with the text that `collect` returns.

    Args:
        collect: Returns the metrics as text for Prometheus. Called by one thread at a time.
        port: Port to listen at; 0 chooses a free one.
        host: Address to listen at. Default: only this machine may ask.

    Raises:
        RemotingError: The port is not available.

    Example:
        >>> from urllib.request import urlopen
        >>> with MetricsServer(lambda: "up 1\n", port=0) as server:
        ...     urlopen(f"http://{server.address}/metrics").read()
        b'up 1\n'
    """

    def __init__(self, collect: Callable[[], str], *, port: int, host: str = "127.0.0.1") -> None:
        self._collect = collect
        self._lock = new_lock()
        self._text, self._began = b"", 0.0
        handler = type("Handler", (_Handler,), {"read": self.read})
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        server = type("Server", (_Server,), {"address_family": family})
        try:
            self._server = server((host, port), handler)
        except OSError as error:
            raise RemotingError(f"metrics at {with_brackets(host)}:{port}: {error.strerror or error}") from error
        # Looked at so often whether it was closed.
        self._thread = new_thread(self._server.serve_forever, 0.1, name="rmqfast-metrics")
        self._thread.start()

    @property
    def address(self) -> str:
        """Address of the server, `host:port`."""
        host, port = self._server.server_address[:2]
        return f"{with_brackets(str(host))}:{port}"

    def read(self) -> bytes:
        """Returns the metrics as of now. Those who wait while they are collected get the same ones next."""
        asked = monotonic()
        with self._lock:
            if self._began < asked:
                began = monotonic()
                self._text = self._collect().encode()
                self._began = began
            return self._text

    def close(self) -> None:
        """Stops listening. May be called twice."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *args: Any) -> None:
        self._slots = new_semaphore(MOST_CLIENTS)
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base class prints them
        # A client that asks and goes is nothing to warn of.
        _log.debug("a request for metrics of %s failed", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    read: Callable[[], bytes]
    timeout = _PATIENCE
    protocol_version = "HTTP/1.1"
    server_version = "rmqfast"
    sys_version = ""

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self._answer(HTTPStatus.NOT_FOUND, b"metrics are at /metrics\n")
            return
        try:
            text = self.read()
        except Exception:  # noqa: BLE001  # whoever scrapes has to be told, and the log says what
            _log.exception("the metrics could not be read")
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, b"the metrics could not be read: the log says why\n")
            return
        self._answer(HTTPStatus.OK, text)

    def _answer(self, status: HTTPStatus, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", CONTENT_TYPE)
        if "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, 1)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        _log.debug(format, *args)
