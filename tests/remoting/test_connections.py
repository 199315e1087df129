"""A client's connections against servers in this process, over real sockets."""

from __future__ import annotations

import logging
import queue
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from itertools import count
from types import FrameType, MappingProxyType

import pytest

from rmqfast.errors import (
    ChannelClosedError,
    RemotingConnectError,
    RemotingError,
    RemotingTimeoutError,
    TooManyRequestsError,
)
from rmqfast.remoting import Connections, Later, RemotingServer, Request, Response
from tests.waiting import PATIENCE, until

from .held_port import held_port

ECHO, WAIT, BACK, WHO = 7, 8, 9, 10
Ends = queue.Queue[Response | RemotingError]


def echo(request: Request) -> Response:
    return Response(0, None, request.ext_fields, request.body)


class Server:
    """Echoes; answers `WAIT` once it is told to; asks back over the channel of `BACK`."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.answers: Ends = queue.Queue()
        self.channels: list[object] = []
        #: Codes of what came.
        self.requests: list[int] = []
        self.server = RemotingServer({ECHO: self.echo, WAIT: self.wait, BACK: self.back, WHO: self.who})
        self.address = self.server.listen("127.0.0.1:0")

    def echo(self, request: Request) -> Response:
        self.requests.append(ECHO)
        return echo(request)

    def wait(self, request: Request) -> Later:
        def work() -> Response:
            assert self.go_on.wait(PATIENCE)
            return echo(request)

        self.requests.append(WAIT)
        return Later(work)

    def back(self, request: Request) -> Response:
        def ask() -> None:
            try:
                self.answers.put(request.channel.request(40, {"n": "1"}, b"asked", timeout=PATIENCE))
            except RemotingError as error:
                self.answers.put(error)

        threading.Thread(target=ask).start()
        return Response()

    def who(self, request: Request) -> Response:
        if request.channel not in self.channels:
            self.channels.append(request.channel)
        return Response(body=b"%d" % self.channels.index(request.channel))

    def close(self) -> None:
        self.go_on.set()
        self.server.close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def test_every_way_to_ask_brings_the_whole_answer(server: Server) -> None:
    ends: Ends = queue.Queue()
    body = bytes(range(256)) * 4000
    with Connections() as connections:
        connections.submit(server.address, ECHO, {"name": "é"}, body, ends.put)
        asked = connections.request(server.address, ECHO, {"name": "é"}, body)
        told = connections.control(server.address, ECHO, {"name": "é"}, body)
        submitted = ends.get(timeout=PATIENCE)
        assert asked == told == submitted == Response(0, None, {"name": "é"}, body)
        connections.send_oneway(server.address, ECHO, None, b"gone")
        connections.control(server.address, ECHO)
        until(lambda: len(server.requests) == 5)


@pytest.mark.parametrize("fields", [{}, {"name": "x"}, MappingProxyType({}), MappingProxyType({"name": "x"})])
def test_what_is_asked_with_is_taken_without_python_code(server: Server, fields: Mapping[str, str]) -> None:
    # a daemon thread that is in Python code below Rust when the interpreter ends takes the process with it
    native: list[object] = []
    asked: list[str] = []
    below: list[str] = []

    def profile(frame: FrameType, event: str, what: object) -> None:
        if event == "c_call" and getattr(what, "__name__", "") in {"request", "control", "submit"}:
            native.append(what)
            asked.append(what.__name__)  # type: ignore[attr-defined]
        elif event in {"c_return", "c_exception"} and native and what is native[-1]:
            native.pop()
        elif event == "call" and native:
            below.append(frame.f_code.co_qualname)

    ends: Ends = queue.Queue()
    with Connections() as connections:
        connections.control(server.address, ECHO)
        sys.setprofile(profile)
        try:
            connections.request(server.address, ECHO, fields)
            connections.control(server.address, ECHO, fields)
            connections.submit(server.address, ECHO, fields, b"", ends.put)
        finally:
            sys.setprofile(None)
        ends.get(timeout=PATIENCE)
    assert asked == ["request", "control", "submit"]
    assert not below


def test_callers_have_connections_of_their_own_and_use_them_again(server: Server) -> None:
    with Connections() as connections:
        first = [connections.request(server.address, WHO).body for _ in range(5)]
        assert first == [b"0"] * 5
        shared = [connections.control(server.address, WHO).body for _ in range(2)]
        assert shared == [b"1"] * 2
        ends: Ends = queue.Queue()
        waiting = threading.Thread(target=lambda: ends.put(connections.request(server.address, WAIT)))
        waiting.start()
        until(lambda: server.requests == [WAIT])
        assert connections.request(server.address, WHO).body == b"2"
        server.go_on.set()
        waiting.join(PATIENCE)
        assert server.server.connections == 3


def test_many_threads_ask_at_once_and_each_gets_its_own_answer(server: Server) -> None:
    wrong: list[object] = []

    def ask(number: int) -> None:
        for n in range(100):
            body = b"%d-%d" % (number, n)
            for way in (connections.request, connections.control):
                answer = way(server.address, ECHO, {"n": str(n)}, body)
                if (answer.body, answer.ext_fields) != (body, {"n": str(n)}):
                    wrong.append(answer)

    with Connections() as connections:
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    assert not wrong
    assert len(server.requests) == 1600


def test_a_request_without_an_answer_in_time_ends_with_an_error_and_the_others_go_on(server: Server) -> None:
    ends: Ends = queue.Queue()
    with Connections() as connections:
        for way in (connections.request, connections.control):
            with pytest.raises(RemotingTimeoutError, match=r"wait response on the channel <.*> timeout, 150\(ms\)"):
                way(server.address, WAIT, timeout=0.15)
        connections.submit(server.address, WAIT, None, b"", ends.put, timeout=0.15)
        connections.submit(server.address, WAIT, None, b"patient", ends.put)
        assert isinstance(ends.get(timeout=PATIENCE), RemotingTimeoutError)
        server.go_on.set()
        patient = ends.get(timeout=PATIENCE)
        assert isinstance(patient, Response)
        assert patient.body == b"patient"
        assert connections.control(server.address, ECHO, None, b"x").body == b"x"


def test_close_wakes_everyone_who_waits(server: Server) -> None:
    ends: Ends = queue.Queue()
    connections = Connections()

    def waiting(way: str) -> None:
        try:
            ends.put(getattr(connections, way)(server.address, WAIT))
        except RemotingError as error:
            ends.put(error)

    threads = [threading.Thread(target=waiting, args=(way,)) for way in ("request", "request", "control")]
    for thread in threads:
        thread.start()
    connections.submit(server.address, WAIT, None, b"", ends.put)
    until(lambda: server.requests == [WAIT] * 4)
    connections.close()
    assert [type(ends.get(timeout=PATIENCE)) for _ in range(4)] == [ChannelClosedError] * 4
    connections.close()
    for way in (connections.request, connections.control, connections.send_oneway):
        with pytest.raises(ChannelClosedError):
            way(server.address, ECHO)
    with pytest.raises(ChannelClosedError):
        connections.submit(server.address, ECHO, None, b"", ends.put)
    assert ends.empty()
    for thread in threads:
        thread.join(PATIENCE)


def test_after_a_failure_callers_are_told_why() -> None:
    with held_port() as address, Connections() as connections:
        told = set()
        for way in (connections.request, connections.control):
            with pytest.raises(RemotingConnectError) as refused:
                way(address, ECHO)
            told.add(str(refused.value))
        with pytest.raises(RemotingConnectError, match=address):
            connections.submit(address, ECHO, None, b"", print)
        assert len(told) == 1
        with pytest.raises(RemotingConnectError, match=r"nowhere\.invalid"):
            connections.request("nowhere.invalid:1", ECHO)


def test_what_peers_ask_by_themselves_is_answered_by_processors(server: Server) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Response:
        asked.append(request)
        return Response(0, "fine", {"m": "2"}, request.body[::-1])

    with Connections(processors={40: answer}) as connections:
        connections.control(server.address, BACK)
        told = server.answers.get(timeout=PATIENCE)
        assert isinstance(told, Response)
        assert (told.remark, told.ext_fields, told.body) == ("fine", {"m": "2"}, b"deksa")
        assert (asked[0].code, asked[0].body, asked[0].channel.remote_address) == (40, b"asked", server.address)
    with Connections() as connections:
        connections.control(server.address, BACK)
        told = server.answers.get(timeout=PATIENCE)
        assert isinstance(told, Response)
        assert (told.code, told.remark) == (3, " request type 40 not supported")


def test_a_callback_that_fails_is_logged_and_keeps_nobody_from_theirs(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    ends: Ends = queue.Queue()

    def failing(_: object) -> None:
        raise SystemExit("a defect")

    with Connections(callback_threads=1) as connections, caplog.at_level(logging.ERROR):
        for _ in range(5):
            connections.submit(server.address, ECHO, None, b"", failing)
        connections.submit(server.address, ECHO, None, b"fine", ends.put)
        last = ends.get(timeout=PATIENCE)
        assert isinstance(last, Response)
        assert last.body == b"fine"
    assert sum("failed with the end of a request" in record.message for record in caplog.records) == 5


def test_a_callback_asks_again(server: Server) -> None:
    ends: Ends = queue.Queue()
    left = count(2000, -1)

    def again(end: Response | RemotingError) -> None:
        if isinstance(end, RemotingError) or next(left) <= 0:
            ends.put(end)
        else:
            connections.submit(server.address, ECHO, None, b"x", again)

    with Connections(callback_threads=1) as connections:
        connections.submit(server.address, ECHO, None, b"x", again)
        assert isinstance(ends.get(timeout=PATIENCE), Response)


def test_too_many_requests_wait_then_are_told_so(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmqfast.remoting.connections.MAX_IN_FLIGHT", 3)
    ends: Ends = queue.Queue()
    with Connections() as connections:
        for _ in range(3):
            connections.submit(server.address, WAIT, None, b"", ends.put)
        with pytest.raises(TooManyRequestsError, match="at most 3 in flight"):
            connections.submit(server.address, WAIT, None, b"", ends.put, timeout=0.2)
        threading.Timer(0.1, server.go_on.set).start()
        connections.submit(server.address, ECHO, None, b"fourth", ends.put)
        assert len([ends.get(timeout=PATIENCE) for _ in range(4)]) == 4
        assert ends.empty()


def test_who_must_not_wait_is_told_at_once_that_there_is_no_room() -> None:
    ends: Ends = queue.Queue()
    with socket.create_server(("127.0.0.1", 0)) as deaf, Connections() as connections:
        address = f"127.0.0.1:{deaf.getsockname()[1]}"

        def fill() -> None:
            for _ in range(100):
                # who waited for room would not come back
                connections.submit(address, ECHO, None, bytes(1 << 20), ends.put, timeout=3600, waits=False)

        with pytest.raises(TooManyRequestsError):
            fill()


def test_a_shared_connection_is_known_to_be_open_from_its_first_use_to_its_end(server: Server) -> None:
    with Connections() as connections:
        assert not connections.is_open(server.address)
        connections.request(server.address, ECHO)  # over a connection of its own
        assert not connections.is_open(server.address)
        connections.control(server.address, ECHO)
        assert connections.is_open(server.address)
        server.close()
        until(lambda: not connections.is_open(server.address))
        with pytest.raises(RemotingError):
            connections.submit(server.address, ECHO, None, b"", lambda _: None)
        assert not connections.is_open(server.address)


def test_what_is_signed_reaches_the_peer_with_its_signature(server: Server) -> None:
    seen: list[tuple[int, dict[str, str], bytes]] = []

    def sign(code: int, ext_fields: dict[str, str], body: bytes) -> dict[str, str]:
        seen.append((code, dict(ext_fields), body))
        return {"Signature": "s"}

    ends: Ends = queue.Queue()
    with Connections(sign=sign) as connections:  # type: ignore[arg-type]
        connections.submit(server.address, ECHO, {"a": "b"}, b"body", ends.put)
        answers = [way(server.address, ECHO, {"a": "b"}, b"body") for way in (connections.request, connections.control)]
        answers.append(ends.get(timeout=PATIENCE))  # type: ignore[arg-type]
    assert [answer.ext_fields for answer in answers] == [{"a": "b", "Signature": "s"}] * 3
    assert seen == [(ECHO, {"a": "b"}, b"body")] * 3


def test_connections_that_nobody_holds_any_more_end(server: Server) -> None:
    connections = Connections()
    connections.control(server.address, ECHO)
    connections.request(server.address, ECHO)
    connections.submit(server.address, ECHO, None, b"", lambda _: None)
    assert server.server.connections == 2
    del connections
    until(lambda: server.server.connections == 0)


def test_what_was_sent_before_the_end_still_goes_out(server: Server) -> None:
    for _ in range(20):
        with Connections() as connections:
            for _ in range(50):
                connections.send_oneway(server.address, ECHO, None, b"x" * 10_000)
    until(lambda: len(server.requests) >= 1000, lambda: len(server.requests))
    assert server.requests == [ECHO] * 1000


def test_only_ends_that_others_made_are_told(server: Server) -> None:
    closed: queue.Queue[str] = queue.Queue()
    before = set(threading.enumerate())
    with Connections(on_closed=closed.put) as connections:
        connections.control(server.address, ECHO)
        threads = set(threading.enumerate()) - before
    for thread in threads:  # the one that tells of ends is among them
        thread.join(PATIENCE)
    assert threads
    assert closed.empty()
