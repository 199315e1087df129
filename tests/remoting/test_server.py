"""The server in Python: processors on threads, over real sockets."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from rmqfast.errors import ChannelClosedError, RemotingConnectError, RemotingError, RemotingTimeoutError, ResponseError
from rmqfast.remoting import Channel, Later, RemotingClient, RemotingServer, Request, Response, ResponseCode
from tests.waiting import PATIENCE, until


def echo(request: Request) -> Response:
    return Response(7, request.remark, {"version": str(request.version), **request.ext_fields}, request.body)


def test_a_request_comes_whole_and_so_does_its_answer() -> None:
    with RemotingServer({1: echo}) as server, RemotingClient(server.listen("127.0.0.1:0")) as client:
        answer = client.request(1, {"name": "é"}, b"x" * 100_000)
        assert (answer.code, answer.ext_fields, len(answer.body)) == (7, {"version": "401", "name": "é"}, 100_000)
        with pytest.raises(ResponseError, match="CODE: 7") as refused:
            client.ask(1)
        assert refused.value.code == 7


def test_what_nobody_answers_is_answered_with_3_and_a_defect_with_1() -> None:
    def broken(_: Request) -> Response:
        raise ValueError("a defect")

    def refusing(_: Request) -> Response:
        raise ResponseError(ResponseCode.TOPIC_NOT_EXIST, "no topic")

    with RemotingServer({1: broken, 2: refusing}) as server, RemotingClient(server.listen("127.0.0.1:0")) as client:
        answers = [client.request(code) for code in (1, 2, 99)]
        told = [(answer.code, answer.remark) for answer in answers]
        assert told == [(1, "ValueError: a defect"), (17, "no topic"), (3, " request type 99 not supported")]


def test_an_answer_that_takes_time_keeps_nobody_waiting() -> None:
    release = threading.Event()

    def slow(_: Request) -> Later:
        def work() -> Response:
            assert release.wait(PATIENCE)
            return Response(remark="late")

        return Later(work)

    with RemotingServer({1: slow, 2: echo}, workers=1) as server:
        address = server.listen("127.0.0.1:0")
        with RemotingClient(address) as first, RemotingClient(address) as second:
            answers: list[Response] = []
            asking = threading.Thread(target=lambda: answers.append(first.request(1)))
            asking.start()
            assert second.request(2).code == 7
            release.set()
            asking.join(PATIENCE)
            assert answers[0].remark == "late"


DROPPED = "{} one-way requests are dropped: too many wait, or they waited for too long"


def test_a_request_that_waited_too_long_is_told_so(caplog: pytest.LogCaptureFixture) -> None:
    entered, release = threading.Event(), threading.Event()

    def blocking(_: Request) -> Response:
        entered.set()
        assert release.wait(PATIENCE)
        return Response()

    with RemotingServer({1: blocking, 2: echo, 3: echo}, workers=1, max_ages={2: 0.0, 3: 3600.0}) as server:
        address = server.listen("127.0.0.1:0")
        with RemotingClient(address) as first, RemotingClient(address) as second, RemotingClient(address) as third:
            first.send_oneway(1)
            assert entered.wait(PATIENCE)
            answers: dict[int, Response] = {}

            def ask(client: RemotingClient, code: int) -> None:
                answers[code] = client.request(code)

            asking = [threading.Thread(target=ask, args=asked) for asked in ((second, 2), (third, 3))]
            for thread in asking:
                thread.start()
            until(lambda: len(server.mailbox) == 2)
            for _ in range(3):
                first.send_oneway(2)
            until(lambda: len(server.mailbox) == 5)
            release.set()
            for thread in asking:
                thread.join(PATIENCE)
            assert answers[3].code == 7, "it may wait for longer"
            assert answers[2].code == ResponseCode.SYSTEM_BUSY
            assert str(answers[2].remark).startswith("[TIMEOUT_CLEAN_QUEUE]broker busy")
    # a warning at once for the first, then for all that came meanwhile: nobody else hears of one-way requests
    assert sum(int(text.partition(" ")[0]) for text in caplog.messages) == 3
    assert caplog.messages[0] == DROPPED.format(1)


def test_more_requests_than_may_wait_are_told_so(caplog: pytest.LogCaptureFixture) -> None:
    begun, release = threading.Event(), threading.Event()

    def blocking(_: Request) -> Response:
        begun.set()
        assert release.wait(PATIENCE)
        return Response()

    with RemotingServer({1: blocking}, workers=1, capacity=1) as server:
        with RemotingClient(server.listen("127.0.0.1:0")) as client:
            client.send_oneway(1)
            assert begun.wait(PATIENCE), "the only worker is at work"
            client.send_oneway(1)
            client.send_oneway(1)
            answer = client.request(1)
            release.set()
            until(lambda: caplog.messages == [DROPPED.format(1)])
        assert (answer.code, answer.remark) == (2, "[OVERLOAD]system busy, start flow control for a while")


def test_the_server_asks_back_and_hears_of_the_end() -> None:
    channels: list[Channel] = []
    ended = threading.Event()

    def closed(channel: Channel) -> None:
        assert channel == channels[0]
        assert not channel.is_open
        ended.set()

    def note(request: Request) -> Response:
        channels.append(request.channel)
        return Response()

    with RemotingServer({1: note}, closed=closed) as server:
        with RemotingClient(server.listen("127.0.0.1:0")) as client:
            client.request(1)
            client.request(1)
            assert channels[0] == channels[1]
            with pytest.raises(RemotingTimeoutError):
                channels[0].request(40, {}, timeout=0.05)  # this client answers nothing
        assert ended.wait(PATIENCE)
        with pytest.raises(ChannelClosedError):
            channels[0].request(40, {})


def test_who_is_checked_and_refused_reaches_no_processor() -> None:
    def check(request: Request) -> None:
        if "AccessKey" not in request.ext_fields:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "who are you?")

    with RemotingServer({1: echo}, check=check) as server, RemotingClient(server.listen("127.0.0.1:0")) as client:
        assert [client.request(1, fields).code for fields in ({}, {"AccessKey": "k"})] == [1, 7]


@pytest.mark.parametrize("make", [lambda: RemotingClient("127.0.0.1:1"), lambda: RemotingClient("nowhere.invalid:80")])
def test_nobody_at_an_address_is_an_error_that_names_it(make: Callable[[], RemotingClient]) -> None:
    client = make()
    with pytest.raises(RemotingConnectError, match=client.address):
        client.request(1)


def test_an_address_that_is_taken_is_an_error_that_names_it() -> None:
    with RemotingServer({}) as server:
        address = server.listen("127.0.0.1:0")
        with pytest.raises(RemotingError, match=address):
            server.listen(address)
