"""INVOKE_BROKER_TO_RESET_OFFSET."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rmqfast.message import MessageQueue
from rmqfast.remoting import Response
from rmqfast.remoting.fastjson import encode
from rmqfast.store.config import TopicConfig

from .client_control import Control
from .client_doubles import Line, QueuesByHand, client, consumer, request

Q0, Q1 = MessageQueue("t", "broker-a", 0), MessageQueue("t", "broker-a", 1)


@pytest.fixture
def control(tmp_path: Path) -> Control:
    """A topic of two queues with 100 messages each, in which the offset for a time is that number; a group at 10."""
    control = Control(tmp_path, QueuesByHand({("t", 0): (0, 100), ("t", 1): (0, 100)}))
    control.topics["t"] = TopicConfig(topic_name="t", write_queue_nums=2)
    control.tables.committed = {"t@g": {0: 10, 1: 50}}
    return control


def _online(control: Control, version: int = 401) -> Line:
    line = Line()
    control.consumers.register(client(line, f"c{version}", version=version), consumer("g"))
    line.sent.clear()
    return line


@pytest.mark.parametrize(
    ("timestamp", "is_force", "table"),
    [
        (20, False, {Q0: 10, Q1: 20}),
        (20, True, {Q0: 20, Q1: 20}),
        (0, False, {Q0: 0, Q1: 0}),
        (-1, False, {Q0: 10, Q1: 50}),
        (-1, True, {Q0: 100, Q1: 100}),
        (-5, True, {Q0: 0, Q1: 0}),
    ],
    ids=["back only", "by force", "to the start", "the end is not back", "to the end", "no offset below 0"],
)
def test_where_a_group_goes_on(
    control: Control, timestamp: int, is_force: bool, table: dict[MessageQueue, int]
) -> None:
    line = _online(control)
    answer = control.answer(request(222, topic="t", group="g", timestamp=timestamp, isForce=is_force))
    body = encode({"offsetTable": table})
    assert answer == Response(body=body)
    fields = {"topic": "t", "group": "g", "timestamp": str(timestamp), "isForce": "false"}
    assert line.sent == [(220, fields, body)]
    assert control.tables.committed == {"t@g": {0: 10, 1: 50}}, "the consumers commit it, not the broker"


@pytest.mark.parametrize("language", ["CPP", "JAVA", "PYTHON", None])
def test_who_asks_in_cpp_has_a_list_sent(control: Control, language: str | None) -> None:
    line = _online(control)
    asked = request(222, topic="t", group="g", timestamp=-1, isForce=True)
    answer = control.answer(replace(asked, language=language))
    queues = encode({"offsetTable": {Q0: 100, Q1: 100}})
    listed = (
        b'{"offsetTable":[{"brokerName":"broker-a","offset":100,"queueId":0,"topic":"t"},'
        b'{"brokerName":"broker-a","offset":100,"queueId":1,"topic":"t"}]}'
    )
    assert answer.body == queues
    assert line.sent[0][2] == (listed if language == "CPP" else queues)


def test_a_topic_that_is_not_there(control: Control) -> None:
    answer = control.answer(request(222, topic="x", group="g", timestamp=0, isForce=True))
    assert (answer.code, answer.remark) == (
        1,
        "[reset-offset] reset offset failed, no topic in this broker. topic=x",
    )


def test_a_group_that_has_not_committed_for_some_queue(control: Control) -> None:
    del control.tables.committed["t@g"][1]
    _online(control)
    answer = control.answer(request(222, topic="t", group="g", timestamp=0, isForce=True))
    assert (answer.code, answer.remark) == (1, "THe consumer group <g> not exist")


def test_a_group_that_is_not_online(control: Control) -> None:
    answer = control.answer(request(222, topic="t", group="g", timestamp=7, isForce=True))
    remark = "Consumer not online, so can not reset offset, Group: g Topic: t Timestamp: 7"
    assert (answer.code, answer.remark) == (206, remark)


def test_one_client_before_3_0_7_refuses_for_all(control: Control) -> None:
    lines = [_online(control, 28), _online(control, 27)]
    for line in lines:
        line.sent.clear()
    answer = control.answer(request(222, topic="t", group="g", timestamp=0, isForce=True))
    assert (answer.code, answer.remark) == (1, "the client does not support this feature. version=V3_0_6")
    assert [line.sent for line in lines] == [[], []]
