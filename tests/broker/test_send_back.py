"""CONSUMER_SEND_MSG_BACK: what is stored, what is answered."""

from __future__ import annotations

from typing import Any

import pytest

from rmqfast import Message
from rmqfast.broker.messages.send_back import SendBackProcessor
from rmqfast.errors import ArgumentError, FlushTimeoutError, RmqError, StoreNotWritableError
from rmqfast.remoting import Response, process
from rmqfast.store.config import SubscriptionGroupConfig, TopicConfig
from tests.broker.client_doubles import Groups, Topics, request
from tests.broker.memory_store import SCHEDULE_TOPIC, MemoryStore
from tests.broker.recorded import recorded


class Broker:
    """A group, a message at offset 0, and what a consumer of it sends back."""

    def __init__(self, name: str = "g", **group: Any) -> None:
        self.store = MemoryStore(lambda: 1000)
        self.group = SubscriptionGroupConfig(group_name=name, **group)
        self.topics = Topics()
        self.is_writable = True
        self.counted: list[tuple[str, str]] = []
        self.store.deliver(Message("orders", b"paid", properties={"KEYS": "k", "TAGS": "t"}, flag=9), sys_flag=1)
        self.processor = SendBackProcessor(
            self.store,
            self.store.append,
            find_group=Groups(self.group).find,
            make_topic=self.make_topic,
            is_writable=lambda: self.is_writable,
            broker_ip="10.0.0.1",
            sent_back=lambda group, topic: self.counted.append((group, topic)),
        )

    def make_topic(self, name: str, queues: int, perm: int, sys_flag: int) -> TopicConfig | None:
        return self.topics.make(name, queues, perm, sys_flag)

    def send_back(self, **fields: Any) -> Response:
        header: dict[str, Any] = {"offset": 0, "group": "g", "delayLevel": 0} | fields
        answer = process(self.processor.processors(), request(36, **header))
        assert isinstance(answer, Response)
        return answer


def test_a_message_comes_back_behind_a_delay() -> None:
    broker = Broker()
    assert broker.send_back() == Response()
    (back,) = broker.store.messages(SCHEDULE_TOPIC, 2)
    assert (back.body, back.flag, back.sys_flag, back.reconsume_times) == (b"paid", 9, 1, 1)
    assert back.properties == {
        "KEYS": "k",
        "TAGS": "t",
        "WAIT": "false",
        "DELAY": "3",
        "RETRY_TOPIC": "orders",
        "ORIGIN_MESSAGE_ID": "7F00000100002A9F0000000000000000",
        "REAL_TOPIC": "%RETRY%g",
        "REAL_QID": "0",
    }
    assert broker.topics.table["%RETRY%g"].perm == 6
    assert broker.counted == [("g", "orders")]


def test_the_first_topic_and_id_are_kept() -> None:
    broker = Broker()
    kept = {"RETRY_TOPIC": "first", "ORIGIN_MESSAGE_ID": "F" * 32}
    place = broker.store.deliver(Message("%RETRY%g", b"", properties=kept), reconsume_times=4)
    broker.send_back(offset=place.physical_offset)
    (back,) = broker.store.messages(SCHEDULE_TOPIC, 6)
    assert (back.properties | kept, back.reconsume_times) == (back.properties, 5)
    assert broker.counted == [("g", "first")]


def test_a_message_that_is_given_up_is_not_delayed() -> None:
    broker = Broker()
    assert broker.send_back(delayLevel=-1).code == 0
    (dead,) = broker.store.messages("%DLQ%g")
    assert (dead.properties["DELAY"], dead.properties["RETRY_TOPIC"], dead.reconsume_times) == ("0", "orders", 1)
    assert broker.topics.table["%DLQ%g"].read_queue_nums == 1


def test_queues_of_the_retry_topic_are_used_by_turns() -> None:
    broker = Broker(retry_queue_nums=3)
    for _ in range(60):
        broker.send_back()
    queues = {one.properties["REAL_QID"] for one in broker.store.messages(SCHEDULE_TOPIC, 2)}
    assert queues == {"0", "1", "2"}
    assert broker.topics.table["%RETRY%g"].write_queue_nums == 3


def test_all_that_a_group_gives_up_goes_to_one_queue() -> None:
    broker = Broker(retry_queue_nums=3)
    for _ in range(20):
        broker.send_back(delayLevel=-1)
    assert len(broker.store.messages("%DLQ%g")) == 20


def test_bytes_that_only_look_like_a_record_are_none() -> None:
    broker = Broker()
    broker.store.records[100] = broker.store.records[0]
    assert broker.send_back(offset=100).remark == "look message by offset failed, 100"


def test_a_group_without_queues_for_it_loses_the_message_in_silence() -> None:
    broker = Broker(retry_queue_nums=0)
    assert broker.send_back(offset=77) == Response()
    assert list(broker.store.records) == [0]


def test_a_topic_of_a_unit_says_so() -> None:
    broker = Broker()
    broker.send_back(unitMode="true")
    assert broker.topics.table["%RETRY%g"].topic_sys_flag == 2


FAQ = "\nSee http://rocketmq.apache.org/docs/faq/ for further details."


@pytest.mark.parametrize(
    ("fields", "code", "remark"),
    [
        ({"group": "x"}, 26, f"subscription group not exist, x {FAQ}"),
        ({"offset": 5}, 1, "look message by offset failed, 5"),
        ({"offset": -1}, 1, "look message by offset failed, -1"),
        ({"offset": 1 << 62}, 1, f"look message by offset failed, {1 << 62}"),
        ({"offset": "x"}, 1, "the header field offset is no number: 'x'"),
        ({"maxReconsumeTimes": "x"}, 1, "the header field maxReconsumeTimes is no number: 'x'"),
    ],
)
def test_what_cannot_be_sent_back_is_answered(fields: dict[str, object], code: int, remark: str) -> None:
    broker = Broker()
    answer = broker.send_back(**fields)
    assert (answer.code, answer.remark) == (code, remark)
    assert list(broker.store.records) == [0]


def test_a_broker_or_a_topic_that_takes_no_messages_says_so() -> None:
    broker = Broker()
    broker.topics.table["%RETRY%g"] = TopicConfig(topic_name="%RETRY%g", perm=4)
    answer = broker.send_back()
    assert (answer.code, answer.remark) == (16, "the topic[%RETRY%g] sending message is forbidden")
    broker.is_writable = False
    answer = broker.send_back()
    assert (answer.code, answer.remark) == (16, "the broker[10.0.0.1] sending message is forbidden")
    broker.is_writable, broker.topics = True, Topics(refused=frozenset({"%RETRY%g"}))
    answer = broker.send_back()
    assert (answer.code, answer.remark) == (1, "topic[%RETRY%g] not exist")


@pytest.mark.parametrize(
    ("error", "status"),
    [(ArgumentError("x"), "MESSAGE_ILLEGAL"), (StoreNotWritableError("x"), "SERVICE_NOT_AVAILABLE")],
)
def test_what_the_store_refuses_is_answered_with_its_status(error: RmqError, status: str) -> None:
    broker = Broker()
    error.put_status = status
    broker.store.refusals = [error]
    answer = broker.send_back()
    assert (answer.code, answer.remark, broker.counted) == (1, status, [])


def test_what_is_stored_and_not_yet_on_the_disk_was_sent_back() -> None:
    broker = Broker()
    broker.store.refusals = [FlushTimeoutError("slow")]
    assert (broker.send_back(), broker.counted) == (Response(), [("g", "orders")])


def test_what_consumers_sent_back_to_a_real_broker_is_answered_as_it_did() -> None:
    requests = recorded(36)
    broker = Broker("wire_later")
    for one in requests:
        broker.store.records[int(one["fields"]["offset"])] = b""
    for one in requests:
        at = int(one["fields"]["offset"])
        broker.store.end = at
        broker.store.deliver(Message("wire", b"x"))
        broker.store.end = 1 << 20 | at
        answer = process(broker.processor.processors(), request(36, **one["fields"], version=one["version"]))
        assert isinstance(answer, Response)
        wanted = one["response"]
        assert (answer.code, answer.ext_fields, answer.remark) == (wanted["code"], wanted["fields"], wanted["remark"])
    assert len(requests) == len(broker.store.messages(SCHEDULE_TOPIC, 2)) == 4
