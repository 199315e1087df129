"""How often, where and how long a send is tried; with time and brokers of the test's own."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from rmqfast.client.producer import ProducerOptions, SendResult, SendStatus
from rmqfast.client.producer.fault_strategy import FaultStrategy
from rmqfast.client.producer.send import ONCE, RetryRules, Send
from rmqfast.errors import (
    ChannelClosedError,
    ClientError,
    ForkError,
    RemotingConnectError,
    RemotingProtocolError,
    RemotingTimeoutError,
    ResponseError,
    RmqError,
)
from rmqfast.message import Message, MessageQueue

from .topics import publish_queues

#: Of a send that is called back.
ASYNC = RetryRules(2, is_async=True)
CHOSEN = MessageQueue("t", "b", 7)


class Brokers:
    """Answers as it was told, one after the other, each after so many seconds."""

    def __init__(self, answers: Iterable[tuple[float, RmqError | SendStatus]]) -> None:
        self.answers = list(answers)
        self.now = 100.0
        self.asked: list[tuple[str, int, float]] = []

    def send(
        self,
        options: ProducerOptions | None = None,
        timeout: float = 3.0,
        *,
        queue: MessageQueue | None = None,
        rules: RetryRules | None = None,
        strategy: FaultStrategy | None = None,
    ) -> SendResult:
        options = options or ProducerOptions()
        waited = RetryRules(options.retries, options.retry_response_codes, options.retry_another_broker)
        message, queues = Message("t", b"x"), publish_queues({"a": 1, "b": 1})
        rules = rules or (ONCE if queue else waited)
        send = Send(message, (message,), queues, queue, rules, strategy, self.now, timeout)
        while True:
            queue, left = send.begin(self.now)
            self.asked.append((queue.broker_name, queue.queue_id, round(left, 3)))
            seconds, answer = self.answers.pop(0)
            self.now += seconds
            end = answer if isinstance(answer, RmqError) else SendResult(answer, "ID", "OFFSET", queue, 0)
            if not send.ended(end, self.now):
                return send.result(self.now)


def test_a_broker_that_takes_it_is_asked_once() -> None:
    brokers = Brokers([(0.1, SendStatus.SEND_OK)])
    assert brokers.send().queue == MessageQueue("t", "a", 0)
    assert brokers.asked == [("a", 0, 3.0)]


@pytest.mark.parametrize(
    "error",
    [
        RemotingConnectError("connect to <a> failed"),
        RemotingTimeoutError("wait response"),
        ChannelClosedError("closed"),
        ClientError("The broker[a] not exist"),
        *(ResponseError(code, "remark") for code in (17, 14, 1, 16, 204, 205)),
    ],
)
def test_what_another_broker_may_do_is_tried_there_with_the_time_that_is_left(error: RmqError) -> None:
    brokers = Brokers([(1.0, error), (0.5, error), (0.1, SendStatus.SEND_OK)])
    assert brokers.send().status == "SEND_OK"
    assert brokers.asked == [("a", 0, 3.0), ("b", 0, 2.0), ("a", 0, 1.5)]


@pytest.mark.parametrize("code", [2, 13, 15, 26])
def test_other_answers_are_final(code: int) -> None:
    brokers = Brokers([(0.1, ResponseError(code, "no"))])
    with pytest.raises(ResponseError) as raised:
        brokers.send()
    assert raised.value.code == code
    assert len(brokers.asked) == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ResponseError(14, "service not available now"), 14),
        (RemotingConnectError("nobody"), 10001),
        (RemotingTimeoutError("late"), 10002),
        (ClientError("The broker[a] not exist"), 10003),
    ],
)
def test_where_all_fail_the_error_says_where_it_was_tried(error: RmqError, code: int) -> None:
    brokers = Brokers([(0.5, error)] * 3)
    with pytest.raises(ClientError) as raised:
        brokers.send()
    text = str(raised.value)
    assert text.startswith("Send [3] times, still failed, cost [1500]ms, Topic: t, BrokersSent: [a, b, a]")
    assert str(error) in text
    assert raised.value.response_code == code
    assert raised.value.__cause__ is error


def test_no_attempt_begins_once_the_time_is_over() -> None:
    brokers = Brokers([(3.5, RemotingConnectError("slow"))])
    with pytest.raises(RemotingTimeoutError, match="sendDefaultImpl call timeout"):
        brokers.send()
    assert len(brokers.asked) == 1


def test_a_message_that_is_stored_less_safely_is_sent_again_where_that_is_asked_for() -> None:
    answers = [(0.1, SendStatus.FLUSH_DISK_TIMEOUT), (0.1, SendStatus.SEND_OK)]
    assert Brokers(answers).send().status is SendStatus.FLUSH_DISK_TIMEOUT
    assert Brokers(answers).send(ProducerOptions(retry_another_broker=True)).status is SendStatus.SEND_OK
    # what comes after does not hide that it is stored
    refused = Brokers([(0.1, SendStatus.SLAVE_NOT_AVAILABLE), (0.1, ResponseError(13, "no"))])
    assert refused.send(ProducerOptions(retry_another_broker=True)).status is SendStatus.SLAVE_NOT_AVAILABLE


def test_without_retries_there_is_one_attempt() -> None:
    brokers = Brokers([(0.1, RemotingConnectError("nobody"))])
    with pytest.raises(ClientError, match=r"Send \[1\] times.*BrokersSent: \[a\]"):
        brokers.send(ProducerOptions(retries=0))


@pytest.mark.parametrize(
    "error", [RemotingConnectError("nobody"), ResponseError(14, "service not available now"), ClientError("no broker")]
)
def test_where_the_application_chose_the_queue_there_is_one_attempt(error: RmqError) -> None:
    brokers = Brokers([(0.1, error)])
    with pytest.raises(type(error)) as raised:
        brokers.send(queue=CHOSEN)
    assert raised.value is error
    assert brokers.asked == [("b", 7, 3.0)]
    with pytest.raises(RemotingTimeoutError, match=r"^call timeout"):
        Brokers([]).send(queue=CHOSEN, timeout=-1.0)


def test_an_asynchronous_send_keeps_the_number_of_its_queue_and_ends_with_the_last_error() -> None:
    errors: list[RmqError] = [RemotingConnectError("one"), ChannelClosedError("two"), RemotingConnectError("three")]
    brokers = Brokers([(0.5, errors[0]), (0.5, errors[1]), (0.1, SendStatus.SEND_OK)])
    assert brokers.send(queue=CHOSEN, rules=ASYNC).queue == CHOSEN
    assert brokers.asked == [("b", 7, 3.0), ("a", 7, 2.5), ("b", 7, 2.0)]
    with pytest.raises(RemotingConnectError) as raised:
        Brokers([(0.5, error) for error in errors]).send(queue=CHOSEN, rules=ASYNC)
    assert raised.value is errors[2]


def test_an_asynchronous_send_to_a_queue_that_was_chosen_is_tried_there_again() -> None:
    brokers = Brokers([(0.5, RemotingConnectError("one")), (0.1, SendStatus.SEND_OK)])
    assert brokers.send(queue=CHOSEN, rules=ASYNC._replace(moves=False)).queue == CHOSEN
    assert [name for name, *_ in brokers.asked] == ["b", "b"]


@pytest.mark.parametrize("error", [ResponseError(14, "no"), RemotingProtocolError("no offset"), ForkError("a fork")])
def test_an_asynchronous_send_is_not_tried_again_after_an_answer(error: RmqError) -> None:
    with pytest.raises(type(error)):
        Brokers([(0.5, error)]).send(queue=CHOSEN, rules=ASYNC)


def test_an_asynchronous_send_whose_time_is_over_is_not_tried_again() -> None:
    with pytest.raises(ChannelClosedError):
        Brokers([(3.5, ChannelClosedError("late"))]).send(queue=CHOSEN, rules=ASYNC)


def test_the_strategy_is_told_how_each_attempt_went() -> None:
    brokers, strategy = Brokers([(0.1, RemotingConnectError("nobody")), (0.7, SendStatus.SEND_OK)]), FaultStrategy()
    brokers.send(strategy=strategy)
    assert [name for name, *_ in brokers.asked] == ["a", "b"]
    assert [strategy.tolerance.is_available(name) for name in ("a", "b", "c")] == [False, False, True]
