"""Stands before an S3 server: forwards each request, or answers it itself, late, with an error or not at all.

As a program: `python -m tests.tables.s3_gate SERVER RULE`, with a name of `RULES`. Prints its address.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

SLOW_DOWN = (
    b'<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>'
)
#: Looks at the method and the path of a request. Returns a status with which the gate answers, or None to forward it.
#: An `OSError` ends the connection without an answer.
Rule = Callable[[str, str], int | None]


def busy() -> Rule:
    """Answers each eighth request with 503 SlowDown."""
    requests = itertools.count(1)

    def rule(method: str, path: str) -> int | None:
        # pyarrow 26 takes any answer to a repeated CompleteMultipartUpload for the first one, which was an error
        is_spared = method == "POST" and "?uploadId=" in path
        return None if is_spared or next(requests) % 8 else 503

    return rule


def slow(_method: str, _path: str) -> None:
    """Takes 15 ms more for each request, as a store in another data centre does."""
    time.sleep(0.015)  # noqa: TID251 - the latency itself


def gone(requests: int) -> Rule:
    """Forwards some requests and then answers no more, as a store that was killed."""
    seen = itertools.count(1)

    def rule(_method: str, _path: str) -> None:
        if next(seen) > requests:
            raise ConnectionAbortedError

    return rule


RULES: dict[str, Callable[[], Rule]] = {
    "busy": busy,
    "slow": lambda: slow,
    **{f"gone-{count}": partial(gone, count) for count in range(1, 22)},
}


class S3Gate:
    """Forwards requests to a server until the end of a `with` block.

    Args:
        server: The server's address, `host:port`; may be set anew.
        rule: What becomes of each request; may be set anew.

    Attributes:
        address: Where it listens, `host:port`.
        requests: The methods and paths of all requests so far.
    """

    def __init__(self, server: str, rule: Rule = lambda _method, _path: None) -> None:
        self.server, self.rule = server, rule
        self.requests: list[tuple[str, str]] = []
        gate = self

        class Handler(_Handler):
            def respond(self, body: bytes) -> None:
                gate._respond(self, body)

        self._listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._listener.daemon_threads = True
        self.address = "{}:{}".format(*self._listener.server_address)
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join()

    def _respond(self, handler: _Handler, body: bytes) -> None:
        self.requests.append((handler.command, handler.path))
        status = self.rule(handler.command, handler.path)
        if status is not None:
            handler.answer(status, {"Content-Type": "application/xml"}, SLOW_DOWN)
            return
        connection = HTTPConnection(self.server)
        try:
            headers = {name: value for name, value in handler.headers.items() if name.lower() not in _OF_ONE_CONNECTION}
            connection.request(handler.command, handler.path, body or None, headers)
            answer = connection.getresponse()
            handler.answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()


_OF_ONE_CONNECTION = frozenset({"connection", "expect", "transfer-encoding", "content-length", "keep-alive"})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # answers are small: without this each waits for the acknowledgement of the one before
    disable_nagle_algorithm = True

    def respond(self, body: bytes) -> None:
        raise NotImplementedError

    def do_GET(self) -> None:
        try:
            self.respond(self._read_body())
        except (OSError, HTTPException):
            self.close_connection = True

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815

    def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        length = headers.get("Content-Length") if self.command == "HEAD" else None
        for name, value in headers.items():
            if name.lower() not in _OF_ONE_CONNECTION:
                self.send_header(name, value)
        self.send_header("Content-Length", length or str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return body


if __name__ == "__main__":
    with S3Gate(sys.argv[1], RULES[sys.argv[2]]()) as opened:
        sys.stdout.write(f"{opened.address}\n")
        sys.stdout.flush()
        # until the test closes it
        sys.stdin.read()
