"""What a server does when too much is asked of it, or an answer cannot be sent."""

from __future__ import annotations

import threading

import pytest

from rmqfast.errors import RmqError
from rmqfast.remoting import Again, Later, Processor, RemotingClient, RemotingServer, Request, Response, dispatcher
from tests.waiting import PATIENCE, until


def test_answers_that_take_time_have_threads_of_a_certain_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "LATER", 3)
    go_on = threading.Event()

    def work() -> Response:
        assert go_on.wait(PATIENCE)
        return Response(body=b"late")

    answers: list[Response] = []
    with RemotingServer({7: lambda _: Later(work), 8: lambda _: Response()}) as served:
        address = served.listen("127.0.0.1:0")

        def ask() -> None:
            with RemotingClient(address) as client:
                answers.append(client.request(7))

        asking = [threading.Thread(target=ask) for _ in range(10)]
        for thread in asking:
            thread.start()
        until(lambda: len(answers) >= 7)
        overload = "[OVERLOAD]system busy, start flow control for a while"
        assert [(answer.code, answer.remark) for answer in answers] == [(2, overload)] * 7
        go_on.set()
        for thread in asking:
            thread.join(PATIENCE)
        assert [answer.body for answer in answers[7:]] == [b"late"] * 3
        with RemotingClient(address) as client:
            assert client.request(7).body == b"late"


def test_an_answer_that_cannot_be_sent_ends_no_worker() -> None:
    def half(_: Request) -> Response:
        return Response(remark="\ud800", ext_fields={"a": "\udfff"}, body=b"x")

    def later(_: Request) -> Later:
        return Later(lambda: half(_))

    with (
        RemotingServer({7: half, 8: later}, workers=1) as served,
        RemotingClient(served.listen("127.0.0.1:0")) as client,
    ):
        for code in (7, 8, 7):
            answer = client.request(code)
            assert (answer.code, answer.remark, answer.body) == (1, "the answer is no text", b"")


def test_a_request_that_cannot_be_taken_back_ends_no_worker(caplog: pytest.LogCaptureFixture) -> None:
    def again(*_: object) -> None:
        raise RmqError("no data plane any more")

    processors: dict[int, Processor] = {7: lambda _: Again(), 8: lambda _: Response(body=b"x")}
    with (
        RemotingServer(processors, workers=1, again=again) as served,
        RemotingClient(served.listen("127.0.0.1:0")) as client,
    ):
        for _ in range(3):
            client.send_oneway(7)
        assert client.request(8).body == b"x"
    assert [record.getMessage()[:9] for record in caplog.records] == ["request 7"] * 3
