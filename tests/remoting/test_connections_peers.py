"""A client's connections against peers that misbehave, TLS, forks and Ctrl-C."""

from __future__ import annotations

import os
import queue
import re
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from rmqfast.errors import (
    ChannelClosedError,
    ForkError,
    RemotingConnectError,
    RemotingError,
    RemotingProtocolError,
    RemotingTimeoutError,
    TlsError,
    TooManyRequestsError,
)
from rmqfast.remoting import Connections, RemotingServer, Request, Response, ServerOptions, TlsOptions
from tests.broker.certificates import Authority, make_authority

ECHO = 7
Ends = queue.Queue[Response | RemotingError]


def echo(request: Request) -> Response:
    return Response(0, None, request.ext_fields, request.body)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("certificates"))


@contextmanager
def peer(behave: Callable[[socket.socket], None]) -> Iterator[str]:
    """A peer of one thread for each connection."""

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            open_sockets.append(connection)
            threading.Thread(target=safely, args=(connection,), daemon=True).start()

    def safely(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            behave(connection)

    open_sockets: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for connection in open_sockets:
                connection.close()


def frame(header: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">II", 4 + len(header) + len(body), len(header)) + header + body


def opaque_of(connection: socket.socket) -> int:
    """Reads a request."""
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        more = connection.recv(65536)
        if not more:
            raise OSError("gone")
        data += more
    found = re.search(rb'"opaque":(\d+)', data)
    assert found is not None
    return int(found[1])


def answer(opaque: int, body: bytes = b"", code: int = 0) -> bytes:
    header = b'{"code":%d,"flag":1,"language":"JAVA","opaque":%d,"version":401}'
    return frame(header % (code, opaque), body)


def silent(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


def test_a_peer_that_never_answers_is_left_after_the_time_given() -> None:
    closed: queue.Queue[str] = queue.Queue()
    ends: Ends = queue.Queue()
    with peer(silent) as address, Connections(on_closed=closed.put) as connections:
        began = time.monotonic()
        with pytest.raises(RemotingTimeoutError):
            connections.request(address, ECHO, timeout=0.3)
        connections.submit(address, ECHO, None, b"", ends.put, timeout=30)
        with pytest.raises(RemotingTimeoutError):
            connections.control(address, ECHO, timeout=0.3)
        # nothing at all came: the connection is of no use, and what else waits for it hears so at once
        assert isinstance(ends.get(timeout=10), ChannelClosedError)
        assert closed.get(timeout=10) == address
        assert time.monotonic() - began < 3


def times_out(connections: Connections, address: str) -> None:
    with pytest.raises(RemotingTimeoutError):
        connections.control(address, ECHO, timeout=0.4)


def test_a_peer_that_is_only_late_with_one_answer_keeps_its_connection() -> None:
    def answers_the_others(connection: socket.socket) -> None:
        late = opaque_of(connection)
        connection.sendall(answer(opaque_of(connection), b"second"))
        time.sleep(0.6)
        connection.sendall(answer(late, b"late") + answer(opaque_of(connection), b"third"))
        silent(connection)

    ends: Ends = queue.Queue()
    closed: queue.Queue[str] = queue.Queue()
    with peer(answers_the_others) as address, Connections(on_closed=closed.put) as connections:
        asking = threading.Thread(target=times_out, args=(connections, address))
        asking.start()
        time.sleep(0.1)
        connections.submit(address, ECHO, None, b"", ends.put)
        second = ends.get(timeout=10)
        assert isinstance(second, Response)
        assert second.body == b"second"
        asking.join(10)
        assert connections.control(address, ECHO).body == b"third"
        assert closed.empty()


@pytest.mark.parametrize(
    "garbage",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        struct.pack(">II", 1 << 30, 10),
        frame(b'{"code":'),
        frame(b"[1,2]"),
        struct.pack(">II", 100, 5 << 24) + b"x" * 96,
    ],
)
def test_a_peer_that_answers_garbage_is_left_with_an_error(garbage: bytes) -> None:
    def answers_garbage(connection: socket.socket) -> None:
        opaque_of(connection)
        connection.sendall(garbage)
        silent(connection)

    ends: Ends = queue.Queue()
    with peer(answers_garbage) as address, Connections() as connections:
        with pytest.raises(RemotingProtocolError):
            connections.request(address, ECHO)
        with pytest.raises(ChannelClosedError):
            connections.control(address, ECHO)
        connections.submit(address, ECHO, None, b"", ends.put)
        assert isinstance(ends.get(timeout=10), ChannelClosedError)


def test_answers_of_others_and_requests_are_passed_over() -> None:
    def talks(connection: socket.socket) -> None:
        while True:
            opaque = opaque_of(connection)
            request = frame(b'{"code":40,"flag":2,"language":"JAVA","opaque":%d,"version":401}' % opaque)
            connection.sendall(answer(opaque + 9, b"wrong") + request + answer(opaque, b"right"))
            connection.sendall(request * 3)

    with peer(talks) as address, Connections() as connections:
        for _ in range(20):
            assert connections.request(address, ECHO).body == b"right"
            assert connections.control(address, ECHO).body == b"right"


def test_an_answer_comes_in_single_bytes_and_no_faster_than_time_allows() -> None:
    def slow(connection: socket.socket) -> None:
        opaque = opaque_of(connection)
        for byte in answer(opaque, b"slow"):
            connection.sendall(bytes([byte]))
        opaque_of(connection)
        for byte in answer(opaque + 1, b"too slow"):
            connection.sendall(bytes([byte]))
            time.sleep(0.05)

    with peer(slow) as address, Connections() as connections:
        for way in (connections.request, connections.control):
            assert way(address, ECHO).body == b"slow"
            began = time.monotonic()
            with pytest.raises(RemotingTimeoutError):
                way(address, ECHO, timeout=0.5)
            assert time.monotonic() - began < 2


def test_a_request_that_may_have_been_read_is_not_sent_again() -> None:
    requests: queue.Queue[int] = queue.Queue()

    def reads_and_goes(connection: socket.socket) -> None:
        requests.put(opaque_of(connection))
        connection.sendall(answer(1))
        requests.put(opaque_of(connection))

    with peer(reads_and_goes) as address, Connections() as connections:
        connections.request(address, ECHO)
        with pytest.raises(ChannelClosedError):
            connections.request(address, ECHO)
        assert requests.qsize() == 2


def test_a_peer_that_takes_nothing_holds_back_only_who_asks_it() -> None:
    def takes_nothing(connection: socket.socket) -> None:
        time.sleep(20)

    ends: Ends = queue.Queue()
    body = b"x" * (4 << 20)
    with peer(takes_nothing) as address, Connections() as connections:
        with pytest.raises(TooManyRequestsError):  # noqa: PT012 - some of them fit
            for _ in range(40):
                connections.submit(address, ECHO, None, body, ends.put, timeout=0.2)
        with pytest.raises(RemotingTimeoutError):
            connections.request(address, ECHO, None, body * 3, timeout=0.3)
        with pytest.raises(TooManyRequestsError):
            connections.send_oneway(address, ECHO, None, body)
        assert connections._native.in_flight < 40
        assert isinstance(ends.get(timeout=10), RemotingTimeoutError)


def test_tls_plain_verified_refused(authority: Authority) -> None:
    pair = authority.server()
    tls = TlsOptions(certificate=pair.certificate, key=pair.key)
    ends: Ends = queue.Queue()
    big = bytes(range(256)) * 8000
    with RemotingServer({ECHO: echo}, options=ServerOptions(tls=tls)) as server:
        address = server.listen("127.0.0.1:0")
        with Connections(tls=TlsOptions(trust=authority.certificate)) as connections:
            for _ in range(3):
                assert connections.request(address, ECHO, None, big).body == big
                assert connections.control(address, ECHO, None, big).body == big
                connections.submit(address, ECHO, None, big, ends.put)
                end = ends.get(timeout=10)
                assert isinstance(end, Response)
                assert end.body == big
            assert server.connections == 2
            server.close()
            with pytest.raises((RemotingConnectError, ChannelClosedError)):
                connections.request(address, ECHO)
    with RemotingServer({ECHO: echo}, options=ServerOptions(tls=tls)) as server:
        address = server.listen("127.0.0.1:0")
        with Connections(tls=TlsOptions(trust=make_stranger(authority))) as connections:
            for way in (connections.request, connections.control):
                with pytest.raises(TlsError, match="certificate"):
                    way(address, ECHO)
        with Connections() as connections:
            for way in (connections.request, connections.control):
                with pytest.raises(ChannelClosedError):
                    way(address, ECHO)


def make_stranger(authority: Authority) -> Path:
    folder = authority.folder / "stranger"
    folder.mkdir()
    return make_authority(folder, "stranger").certificate


def test_a_fork_may_not_use_its_parents_connections() -> None:
    with RemotingServer({ECHO: echo}) as server, Connections() as connections:
        address = server.listen("127.0.0.1:0")
        connections.request(address, ECHO)
        connections.control(address, ECHO)
        child = os.fork()
        if child == 0:
            try:
                asked = 0
                for way in (connections.request, connections.control, connections.send_oneway):
                    with pytest.raises(ForkError):
                        way(address, ECHO)
                    asked += 1
                with pytest.raises(ForkError):
                    connections.submit(address, ECHO, None, b"", print)
                connections.close()
                with Connections() as own:
                    assert own.control(address, ECHO, None, b"own").body == b"own"
                    assert own.request(address, ECHO, None, b"own").body == b"own"
                os._exit(0 if asked == 3 else 1)
            except BaseException:  # noqa: BLE001 - a child must not go on with the parent's tests
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert connections.request(address, ECHO, None, b"a").body == b"a"
        assert connections.control(address, ECHO, None, b"b").body == b"b"


WAITING = """
    import socket, sys, time
    from rmqfast.remoting import Connections
    with socket.create_server(("127.0.0.1", 0)) as listener, Connections() as connections:
        address = "127.0.0.1:%d" % listener.getsockname()[1]
        way = sys.argv[1]
        body = b"x" * (10 << 20) if way == "large" else b""
        ask = connections.control if way == "control" else connections.request
        print("asking", flush=True)
        try:
            ask(address, 7, None, body, timeout=60)
        except KeyboardInterrupt:
            print(time.monotonic(), flush=True)
"""


def seconds_until_ctrl_c_is_told(way: str) -> float:
    command = [sys.executable, "-c", textwrap.dedent(WAITING), way]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asking\n"
        time.sleep(0.3)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        told = float(process.stdout.readline())
        assert process.wait(20) == 0
        # the clock is the same in all processes
        return told - sent


@pytest.mark.parametrize("way", ["request", "control", "large"])
def test_ctrl_c_ends_a_wait_within_200_ms(way: str) -> None:
    # a machine that is busy with other things may be late once
    assert any(seconds_until_ctrl_c_is_told(way) < 0.2 for _ in range(3))


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_thousand_opens_and_closes_leave_no_file_open() -> None:
    with RemotingServer({ECHO: echo}) as server:
        address = server.listen("127.0.0.1:0")
        with Connections() as connections:
            connections.control(address, ECHO)
        end = time.monotonic() + 10
        while server.connections and time.monotonic() < end:
            time.sleep(0.01)
        before = open_files()
        for _ in range(334):
            with Connections() as connections:
                connections.request(address, ECHO)
                connections.control(address, ECHO)
                with pytest.raises(RemotingConnectError):
                    connections.request("127.0.0.1:1", ECHO)
        while open_files() > before and time.monotonic() < end + 10:
            time.sleep(0.01)
        assert open_files() <= before


LEAVING = """
    import socket
    from rmqfast.remoting import Connections
    listener = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    connections = Connections(on_closed=print)
    for _ in range(100):
        connections.submit(address, 7, None, b"", lambda end: None, timeout=30)
"""


def test_a_process_with_requests_in_flight_ends_by_itself() -> None:
    command = [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(LEAVING)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=15, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
