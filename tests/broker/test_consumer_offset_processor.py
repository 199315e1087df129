"""Requests about offsets of consumers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rmqfast.remoting import Response
from rmqfast.store.config import TopicConfig

from .client_control import Control
from .client_doubles import Line, QueuesByHand, client, consumer, request, subscription


@pytest.fixture
def control(tmp_path: Path) -> Control:
    control = Control(tmp_path, QueuesByHand({("old", 0): (5, 9)}))
    control.tables.committed = {"t@g": {0: 7, 1: 8}, "u@g": {0: 3}}
    control.topics |= {name: TopicConfig(topic_name=name) for name in ("t", "u")}
    return control


@pytest.mark.parametrize(
    ("topic", "group", "answer"),
    [
        ("t", "g", Response(ext_fields={"offset": "7"})),
        ("t", "new", Response(ext_fields={"offset": "0"})),
        ("nowhere", "new", Response(ext_fields={"offset": "0"})),
        (
            "old",
            "new",
            Response(22, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first", ext_fields={}),
        ),
    ],
)
def test_where_a_group_begins(control: Control, topic: str, group: str, answer: Response) -> None:
    assert control.answer(request(14, consumerGroup=group, topic=topic, queueId=0)) == answer


def test_a_client_of_5_x_may_decide_itself_where_a_new_group_begins(control: Control) -> None:
    fields: dict[str, Any] = {"consumerGroup": "new", "topic": "t", "queueId": 0}
    assert control.answer(request(14, **fields, setZeroIfNotFound=False)).code == 22
    assert control.answer(request(14, **fields, setZeroIfNotFound=True)).code == 0
    fields["consumerGroup"] = "g"
    assert control.answer(request(14, **fields, setZeroIfNotFound=False)).ext_fields == {"offset": "7"}


def test_an_offset_is_overwritten_by_a_smaller_one_too(control: Control) -> None:
    fields: dict[str, Any] = {"consumerGroup": "g", "topic": "t", "queueId": 0}
    assert control.answer(request(15, **fields, commitOffset=5)) == Response(ext_fields={})
    assert control.answer(request(14, **fields)).ext_fields == {"offset": "5"}


@pytest.mark.parametrize(
    ("fields", "remark"),
    [
        ({"topic": "a@b"}, "the specified topic[a@b] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        ({"consumerGroup": "../g"}, "the specified group[../g] contains illegal characters, allowing only "),
        ({"queueId": 1 << 31}, "the header field queueId is no number: '2147483648'"),
        ({"queueId": "x"}, "the header field queueId is no number: 'x'"),
        ({"commitOffset": 1 << 63}, "the header field commitOffset is no number: "),
    ],
)
def test_what_no_table_holds_is_refused(control: Control, fields: dict[str, Any], remark: str) -> None:
    before = control.tables.offsets()
    good: dict[str, Any] = {"consumerGroup": "g", "topic": "t", "queueId": 0, "commitOffset": 1}
    answer = control.answer(request(15, **(good | fields)))
    assert answer.code == 1
    assert (answer.remark or "").startswith(remark)
    assert control.tables.offsets() == before


def test_all_offsets_have_whole_numbers_as_keys(control: Control) -> None:
    assert control.answer(request(43)).body == b'{"offsetTable":{"t@g":{0:7,1:8},"u@g":{0:3}}}'
    control.tables.committed.clear()
    assert control.answer(request(43)).body == b'{"offsetTable":{}}'


def test_a_correction_leaves_the_offsets_alone(control: Control) -> None:
    control.tables.committed["t@late"] = {0: 2, 1: 9}
    before = control.tables.offsets()
    answer = control.answer(request(308, topic="t", compareGroup="g", filterGroups="late,other"))
    assert answer.body == b'{"correctionOffsets":{0:7,1:8}}'
    answer = control.answer(request(308, topic="t", compareGroup="g"))
    assert answer.body == b'{"correctionOffsets":{0:2,1:8}}'
    answer = control.answer(request(308, topic="t", compareGroup="g", filterGroups="g,late"))
    assert answer.body == b'{"correctionOffsets":{}}'
    assert control.tables.offsets() == before


def test_one_topic_or_all_are_copied(control: Control) -> None:
    assert control.answer(request(314, srcGroup="g", destGroup="one", topic="t", offline=True)) == Response()
    assert control.tables.committed["t@one"] == {0: 7, 1: 8}
    assert "u@one" not in control.tables.committed
    control.answer(request(314, srcGroup="g", destGroup="all", offline=False))
    assert (control.tables.committed["t@all"], control.tables.committed["u@all"]) == ({0: 7, 1: 8}, {0: 3})


def test_a_topic_that_is_not_there_is_not_copied(control: Control) -> None:
    del control.topics["u"]
    control.answer(request(314, srcGroup="g", destGroup="all"))
    assert "u@all" not in control.tables.committed


def test_what_an_online_group_does_not_want_is_copied_only_when_it_may_be_offline(control: Control) -> None:
    control.consumers.register(client(Line()), consumer("g", subscription("t")))
    control.answer(request(314, srcGroup="g", destGroup="online", offline=False))
    assert {key for key in control.tables.committed if key.endswith("@online")} == {"t@online"}
    control.answer(request(314, srcGroup="g", destGroup="offline", offline=True))
    assert {key for key in control.tables.committed if key.endswith("@offline")} == {"t@offline", "u@offline"}


def test_offsets_are_not_copied_to_a_group_that_no_file_can_name(control: Control) -> None:
    answer = control.answer(request(314, srcGroup="g", destGroup="a@b", offline=True))
    assert answer.code == 1
    assert "t@a@b" not in control.tables.committed
