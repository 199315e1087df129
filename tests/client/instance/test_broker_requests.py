"""What brokers ask of a client, and what they are answered."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from rmqfast.client.instance.broker_requests import BrokerRequests
from rmqfast.client.instance.members import Members
from rmqfast.errors import ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting import Request, RequestCode, Response, fastjson, process
from tests.broker.client_doubles import Line
from tests.client.instance.doubles import FakeConsumer, FakeProducer
from tests.waiting import PATIENCE


class World:
    """A client with a consumer and a producer, and a broker that asks."""

    def __init__(self) -> None:
        self.members, self.woken = Members(), 0
        self.consumer, self.producer = FakeConsumer("cg", "t"), FakeProducer()
        self.members.add_consumer("cg", self.consumer)
        self.members.add_producer("pg", self.producer)
        self.message = SimpleNamespace(properties={"PGROUP": "pg"})
        self.requests = BrokerRequests(self.members, self._wake, lambda *_: self.message, ("n:1", "m:1"))

    def ask(self, code: RequestCode, body: bytes = b"", **fields: str) -> Any:
        return process(self.requests.processors(), Request(code, fields, body, Line()))

    def _wake(self) -> None:
        self.woken += 1


@pytest.fixture
def world() -> World:
    return World()


def test_that_members_came_or_left_wakes_the_rebalance_and_is_not_answered(world: World) -> None:
    assert world.ask(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, consumerGroup="another") is None
    assert world.woken == 1


def test_a_producer_is_asked_for_the_end_of_its_transaction(world: World) -> None:
    assert world.ask(RequestCode.CHECK_TRANSACTION_STATE, b"record", tranStateTableOffset="7") is None
    ((address, message, fields),) = world.producer.checked
    assert message is world.message
    assert fields["tranStateTableOffset"] == "7"
    assert ":" in address


def test_a_transaction_of_a_group_that_is_not_here_is_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.message.properties = {"PGROUP": "another"}
    assert world.ask(RequestCode.CHECK_TRANSACTION_STATE, b"record") is None
    assert world.producer.checked == []
    assert "another" in caplog.text


def test_offsets_are_reset_on_a_thread_and_once_at_a_time(world: World, caplog: pytest.LogCaptureFixture) -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow() -> None:
        entered.set()
        leave.wait(PATIENCE)

    world.consumer.on_reset = slow
    body = fastjson.encode({"offsetTable": {MessageQueue("t", "b", 1): 9}})
    for _ in range(3):
        assert world.ask(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, body, topic="t", group="cg", timestamp="1") is None
    assert entered.wait(PATIENCE)
    # one that is asked for meanwhile is refused before a thread is made for it
    assert [record.getMessage().endswith("asked for once more") for record in caplog.records] == [True, True]
    leave.set()
    assert world.consumer.reset == [("t", {MessageQueue("t", "b", 1): 9})]


def test_offsets_of_a_group_that_is_not_here_are_not_reset(world: World, caplog: pytest.LogCaptureFixture) -> None:
    assert world.ask(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, b'{"offsetTable":{}}', topic="t", group="x") is None
    assert "group x" in caplog.text


@pytest.mark.parametrize("body", [b"[", b'{"offsetTable":{"a":1}}', b'{"offsetTable":7}', b'{"offsetTable":{0:1}}'])
def test_offsets_that_are_none_are_refused(world: World, body: bytes) -> None:
    with pytest.raises(ResponseError):
        world.requests.reset_offset(
            Request(
                RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
                {"topic": "t", "group": "cg"},
                body,
                Line(),
            )
        )
    assert world.consumer.reset == []


def test_the_status_of_a_consumer_is_its_offsets(world: World) -> None:
    answer = world.ask(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, topic="t", group="cg")
    expected = b'{"consumerTable":{},"messageQueueTable":{{"brokerName":"broker-a","queueId":0,"topic":"t"}:9}}'
    assert answer.body == expected
    nobody = world.ask(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, topic="t", group="x")
    assert (nobody.code, nobody.body) == (0, b'{"consumerTable":{},"messageQueueTable":{}}')


def test_running_info_has_what_mqadmin_needs(world: World) -> None:
    answer = world.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, consumerGroup="cg", clientId="c", jstackEnable="false")
    info = fastjson.decode(answer.body)
    assert info["properties"] == {
        "PROP_CLIENT_VERSION": "V4_9_4",
        "PROP_CONSUMER_START_TIMESTAMP": "1",
        "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
        "PROP_NAMESERVER_ADDR": "n:1;m:1;",
    }
    assert "jstack" not in info


def test_running_info_has_the_stacks_of_all_threads_where_asked_for(world: World) -> None:
    answer = world.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, consumerGroup="cg", clientId="c", jstackEnable="true")
    stacks = fastjson.decode(answer.body)["jstack"]
    assert "MainThread TID: " in stacks
    assert "running_info" in stacks


@pytest.mark.parametrize("code", [RequestCode.GET_CONSUMER_RUNNING_INFO, RequestCode.CONSUME_MESSAGE_DIRECTLY])
def test_a_group_that_is_not_here_is_an_error(world: World, code: RequestCode) -> None:
    answer = world.ask(code, consumerGroup="x", clientId="c")
    assert isinstance(answer, Response)
    assert (answer.code, answer.remark) == (1, "The Consumer Group <x> not exist in this consumer")


def test_one_message_is_consumed_now(world: World) -> None:
    answer = world.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, b"record", consumerGroup="cg", brokerName="b")
    assert fastjson.decode(answer.body)["consumeResult"] == "CR_SUCCESS"
    assert world.consumer.consumed == [(world.message, "b")]
