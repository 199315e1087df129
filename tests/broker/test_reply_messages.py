"""Replies: whom they reach, what is kept, what is answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rmqfast.broker.messages.preparation import SendHeader
from rmqfast.broker.messages.reply_messages import ReplyMessageProcessor, ReplyOptions
from rmqfast.errors import ChannelClosedError, RemotingTimeoutError, ResponseError, RmqError
from rmqfast.remoting import Later, Request, Response, process
from rmqfast.store.config import TopicConfig
from tests.broker.client_doubles import Line, request
from tests.broker.memory_store import MemoryStore

TOPIC = "DefaultCluster_REPLY_TOPIC"
PROPERTIES = "REPLY_TO_CLIENT\x01asker\x02CORRELATION_ID\x01c\x02MSG_TYPE\x01reply\x02TTL\x013000"
LONG: dict[str, Any] = {
    "producerGroup": "p",
    "topic": TOPIC,
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": 4,
    "queueId": 0,
    "sysFlag": 1,
    "bornTimestamp": 77,
    "flag": 5,
    "properties": PROPERTIES,
    "reconsumeTimes": 0,
    "unitMode": "false",
}
SHORT: dict[str, Any] = dict(zip("abcdefghijk", LONG.values(), strict=True)) | {"m": "false"}


class Broker:
    def __init__(self, *, store_replies: bool = True) -> None:
        self.store = MemoryStore(lambda: 1000)
        self.asker = Line(answer=Response)
        self.refusal: ResponseError | None = None
        self.processor = ReplyMessageProcessor(
            self.store.append,
            find_channel={"asker": self.asker}.get,
            check=self.check,
            options=ReplyOptions("127.0.0.1:10911", store_replies=store_replies),
            now=lambda: 999,
        )

    def check(self, _request: Request, header: SendHeader) -> TopicConfig:
        if self.refusal is not None:
            raise self.refusal
        return TopicConfig(topic_name=header.topic, write_queue_nums=4)

    def send(self, code: int = 324, **fields: Any) -> Response:
        header = (LONG if code == 324 else SHORT) | fields
        answer = process(self.processor.processors(), request(code, body=b"yes", **header))
        assert isinstance(answer, Later)
        return answer.work()


@pytest.mark.parametrize("code", [324, 325])
def test_a_reply_reaches_who_asked_and_is_kept(code: int) -> None:
    broker = Broker()
    answer = broker.send(code)
    assert (answer.code, answer.remark) == (0, None)
    assert answer.ext_fields == {
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
        "msgId": "7F00000100002A9F0000000000000000",
        "queueId": "0",
        "queueOffset": "0",
    }
    ((pushed, fields, body, _),) = broker.asker.asked
    assert (pushed, body) == (326, b"yes")
    properties = (
        "REPLY_TO_CLIENT\x01asker\x02PUSH_REPLY_TIME\x01999\x02TTL\x013000\x02CORRELATION_ID\x01c\x02MSG_TYPE\x01reply"
    )
    assert sorted(fields.pop("properties").split("\x02")) == sorted(properties.split("\x02"))
    wanted = {name: str(value) for name, value in LONG.items() if name != "properties"}
    assert fields == wanted | {"bornHost": "192.0.2.7:40001", "storeHost": "127.0.0.1:10911", "storeTimestamp": "999"}
    (kept,) = broker.store.messages(TOPIC)
    assert (kept.property_bytes.decode(), kept.body, kept.flag, kept.sys_flag) == (PROPERTIES, b"yes", 5, 0)
    assert (kept.born_timestamp, str(kept.born_host)) == (77, "192.0.2.7:40001")


def test_without_a_store_for_replies_the_answer_has_empty_fields() -> None:
    broker = Broker(store_replies=False)
    fields = broker.send().ext_fields
    assert fields is not None
    assert (fields["msgId"], fields["queueId"], fields["queueOffset"]) == ("0", "0", "0")
    assert broker.store.records == {}


def test_a_queue_is_chosen_where_the_client_names_none() -> None:
    broker = Broker()
    queues = {(broker.send(queueId=-1).ext_fields or {})["queueId"] for _ in range(60)}
    assert queues == {"0", "1", "2", "3"}
    assert broker.asker.asked[0][1]["queueId"] == "-1"


def fails(error: Exception) -> Callable[[], Response]:
    def raise_it() -> Response:
        raise error

    return raise_it


FAILED = "push reply message to askerfail."


@pytest.mark.parametrize(
    ("answer", "properties", "remark"),
    [
        (Response, "MSG_TYPE\x01reply", "reply message properties[REPLY_TO_CLIENT] is null"),
        (Response, "REPLY_TO_CLIENT\x01x", "push reply message fail, channel of <x> not found."),
        (lambda: Response(1, "process reply message fail"), PROPERTIES, FAILED),
        (fails(RemotingTimeoutError("late")), PROPERTIES, FAILED),
        (fails(ChannelClosedError("gone")), PROPERTIES, FAILED),
    ],
)
def test_a_reply_that_reaches_nobody_says_so_and_is_kept(
    answer: Callable[[], Response], properties: str, remark: str
) -> None:
    broker = Broker()
    broker.asker.answer = answer
    found = broker.send(properties=properties)
    assert (found.code, found.remark) == (1, remark)
    assert len(broker.store.messages(TOPIC)) == 1


def test_a_reply_that_cannot_be_kept_is_handed_on() -> None:
    broker = Broker()
    broker.store.refusals = [RmqError("full")]
    answer = broker.send()
    assert (answer.code, (answer.ext_fields or {})["msgId"], len(broker.asker.asked)) == (0, "0", 1)


def test_what_no_message_may_be_no_reply_may_be() -> None:
    broker = Broker()
    broker.refusal = ResponseError(17, "no topic")
    answer = process(broker.processor.processors(), request(324, **LONG))
    assert isinstance(answer, Response)
    assert (answer.code, answer.remark, broker.asker.asked) == (17, "no topic", [])


@pytest.mark.parametrize(("code", "name"), [(324, "queueId"), (325, "e")])
def test_a_field_that_is_missing_is_named(code: int, name: str) -> None:
    fields = {key: value for key, value in (LONG if code == 324 else SHORT).items() if key != name}
    answer = process(Broker().processor.processors(), request(code, **fields))
    assert isinstance(answer, Response)
    assert (answer.code, answer.remark) == (1, "the header field queueId is missing")
