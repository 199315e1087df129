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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from rmqfast.client.instance.broker_requests import thread_frames
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
from tests.broker.certificates import Authority
from tests.waiting import PATIENCE, until

ECHO = 7
Ends = queue.Queue[Response | RemotingError]


def echo(request: Request) -> Response:
    return Response(0, None, request.ext_fields, request.body)


@contextmanager
def peer(behave: Callable[[socket.socket], object]) -> Iterator[str]:
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


def read_exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise OSError("gone")
        data += more
    return data


def opaque_of(connection: socket.socket) -> int:
    """Reads a request, and nothing of the next one."""
    data = read_exactly(connection, int.from_bytes(read_exactly(connection, 4), "big"))
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
        with pytest.raises(RemotingTimeoutError):
            connections.request(address, ECHO, timeout=0.3)
        connections.submit(address, ECHO, None, b"", ends.put, timeout=3600)
        with pytest.raises(RemotingTimeoutError):
            connections.control(address, ECHO, timeout=0.3)
        # nothing at all came: the connection is of no use, and what else waits for it hears so at once
        assert isinstance(ends.get(timeout=PATIENCE), ChannelClosedError)
        assert closed.get(timeout=PATIENCE) == address


def test_a_peer_that_is_only_late_with_its_answers_keeps_its_connection_and_late_answers_are_passed_over() -> None:
    gave_up = threading.Event()

    def is_late(connection: socket.socket) -> None:
        late = [opaque_of(connection)]
        while not gave_up.wait(0.01):
            connection.sendall(answer(1 << 30))  # something comes, if not the answer
        late.append(opaque_of(connection))
        third = opaque_of(connection)
        connection.sendall(b"".join(answer(opaque, b"late") for opaque in late) + answer(third, b"third"))
        silent(connection)

    ends: Ends = queue.Queue()
    closed: queue.Queue[str] = queue.Queue()
    with peer(is_late) as address, Connections(on_closed=closed.put, callback_threads=1) as connections:
        with pytest.raises(RemotingTimeoutError):
            connections.control(address, ECHO, timeout=1.0)
        gave_up.set()
        connections.submit(address, ECHO, None, b"", ends.put, timeout=0.1)
        assert isinstance(ends.get(timeout=PATIENCE), RemotingTimeoutError)
        connections.submit(address, ECHO, None, b"", ends.put)
        third = ends.get(timeout=PATIENCE)
        assert isinstance(third, Response)
        assert third.body == b"third"
        assert ends.empty()
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
        assert isinstance(ends.get(timeout=PATIENCE), ChannelClosedError)


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


def test_an_answer_comes_in_single_bytes_and_has_to_be_whole_in_time() -> None:
    is_over = threading.Event()

    def slow(connection: socket.socket) -> None:
        opaque = opaque_of(connection)
        for byte in answer(opaque, b"slow"):
            connection.sendall(bytes([byte]))
        opaque_of(connection)
        for byte in answer(opaque + 1, bytes(1 << 20)):
            connection.sendall(bytes([byte]))
            if is_over.wait(0.01):
                return  # a million bytes are never whole

    with peer(slow) as address, Connections() as connections:
        for way in (connections.request, connections.control):
            assert way(address, ECHO).body == b"slow"
            with pytest.raises(RemotingTimeoutError):
                way(address, ECHO, timeout=0.3)
        is_over.set()


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
    is_over = threading.Event()
    ends: Ends = queue.Queue()
    refused: queue.Queue[type[Exception]] = queue.Queue()
    body = b"x" * (4 << 20)

    def tell_the_deaf_one(_: object) -> None:
        try:
            connections.send_oneway(deaf, ECHO, None, body)  # in a callback it does not wait for room
        except TooManyRequestsError as error:
            refused.put(type(error))

    with (
        peer(lambda _: is_over.wait(PATIENCE)) as deaf,
        RemotingServer({ECHO: echo}) as other,
        Connections() as connections,
    ):
        with pytest.raises(TooManyRequestsError):  # noqa: PT012 - some of them fit
            for _ in range(40):
                connections.submit(deaf, ECHO, None, body, ends.put, timeout=0.2)
        with pytest.raises(RemotingTimeoutError):
            connections.request(deaf, ECHO, None, body * 3, timeout=0.3)
        connections.submit(other.listen("127.0.0.1:0"), ECHO, None, b"", tell_the_deaf_one)
        assert refused.get(timeout=PATIENCE) is TooManyRequestsError
        assert isinstance(ends.get(timeout=PATIENCE), RemotingTimeoutError)
        is_over.set()


def test_tls_plain_verified_refused(authority: Authority, stranger: Authority) -> None:
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
                end = ends.get(timeout=PATIENCE)
                assert isinstance(end, Response)
                assert end.body == big
            assert server.connections == 2
            server.close()
            with pytest.raises((RemotingConnectError, ChannelClosedError)):
                connections.request(address, ECHO)
    with RemotingServer({ECHO: echo}, options=ServerOptions(tls=tls)) as server:
        address = server.listen("127.0.0.1:0")
        with Connections(tls=TlsOptions(trust=stranger.certificate)) as connections:
            for way in (connections.request, connections.control):
                with pytest.raises(TlsError, match="certificate"):
                    way(address, ECHO)
        with Connections() as connections:
            for way in (connections.request, connections.control):
                with pytest.raises(ChannelClosedError):
                    way(address, ECHO)


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


@pytest.mark.parametrize("way", ["request", "control", "large"])
def test_ctrl_c_ends_a_wait(way: str) -> None:
    here, is_over = threading.get_ident(), threading.Event()

    def interrupts(connection: socket.socket) -> None:
        connection.recv(10)  # of a large request not all is written by now
        signal.pthread_kill(here, signal.SIGINT)
        is_over.wait(PATIENCE)

    body = b"x" * (10 << 20) if way == "large" else b""
    with peer(interrupts) as address, Connections() as connections:
        ask = connections.control if way == "control" else connections.request
        with pytest.raises(KeyboardInterrupt):
            ask(address, ECHO, None, body, timeout=3600)
        is_over.set()


def requests_of(data: bytes) -> int:
    """How many frames there are, all of them whole."""
    count = at = 0
    while at < len(data):
        at += 4 + int.from_bytes(data[at : at + 4], "big")
        count += 1
    assert at == len(data)
    return count


def test_the_end_waits_for_a_peer_that_takes_what_was_sent_slowly() -> None:
    may_read, got = threading.Event(), queue.Queue[bytes]()

    def slow(connection: socket.socket) -> None:
        may_read.wait(PATIENCE)
        data = b""
        while some := connection.recv(256 << 10):
            data += some
            threading.Event().wait(0.01)  # what makes it slow: at this pace all of it takes longer than half a second
        got.put(data)

    with peer(slow) as address:
        with Connections() as connections:
            for _ in range(64):
                connections.send_oneway(address, ECHO, None, b"x" * (256 << 10))
            may_read.set()
        assert requests_of(got.get(timeout=PATIENCE)) == 64


def test_one_way_requests_that_a_peer_never_took_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    may_go = threading.Event()

    def goes(connection: socket.socket) -> None:
        connection.recv(10)
        may_go.wait(PATIENCE)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with peer(goes) as address, Connections() as connections:
        for _ in range(12):
            connections.send_oneway(address, ECHO, None, b"x" * (1 << 20))
        may_go.set()
        until(lambda: caplog.messages)
        lost = re.match(
            rf"up to (\d+) one-way requests to <{address}> are lost: the connection ended", caplog.messages[0]
        )
        assert lost is not None
        assert 0 < int(lost[1]) <= 12


def test_ctrl_c_ends_the_wait_for_a_peer_that_takes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    here, is_over = threading.get_ident(), threading.Event()
    connections = Connections()

    def interrupts() -> None:
        until(lambda: thread_frames()[here].f_code.co_name == "_end")
        signal.pthread_kill(here, signal.SIGINT)

    with peer(lambda _: is_over.wait(PATIENCE)) as address:
        for _ in range(12):
            connections.send_oneway(address, ECHO, None, b"x" * (1 << 20))
        threading.Thread(target=interrupts, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            connections.close()
        is_over.set()
    assert re.fullmatch(
        rf"up to \d+ one-way requests to <{address}> are lost: it took no more of .*", caplog.messages[0]
    )


def open_sockets() -> set[str]:
    files = Path("/proc/self/fd")
    links = set()
    for file in files.iterdir():
        with suppress(OSError):  # what lists them is among them
            links.add(str(file.readlink()))
    return {link for link in links if link.startswith("socket:")}


def test_opens_and_closes_leave_no_socket_open() -> None:
    with RemotingServer({ECHO: echo}) as server:
        address = server.listen("127.0.0.1:0")
        before = open_sockets()
        for _ in range(50):
            with Connections() as connections:
                connections.request(address, ECHO)
                connections.control(address, ECHO)
                with pytest.raises(RemotingConnectError):
                    connections.request("127.0.0.1:1", ECHO)
        until(lambda: open_sockets() <= before, lambda: open_sockets() - before)


LEAVING = """
    import socket
    from rmqfast.remoting import Connections
    listener = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    connections = Connections(on_closed=print)
    for _ in range(100):
        connections.submit(address, 7, None, b"", lambda end: None, timeout=3600)
"""


def test_a_process_with_requests_in_flight_ends_by_itself() -> None:
    command = [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(LEAVING)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
