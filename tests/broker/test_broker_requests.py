"""Requests about the broker as a whole: its configuration, what it has done, and what it may let go of."""

from __future__ import annotations

from pathlib import Path

import pytest

import rmqfast
from rmqfast.broker.queries.query_message_processor import MAX_BODY, newest
from rmqfast.broker.queries.runtime_info_processor import readable_bytes
from rmqfast.store.config import TopicConfig
from tests.broker.control_plane import NOW, ControlPlane


def test_what_the_broker_allows_can_be_changed(plane: ControlPlane) -> None:
    answer = plane.answer(25, body=b"brokerPermission=4\nbrokerName=zzz\nnobody=knows\n")
    assert (answer.code, answer.remark, answer.ext_fields) == (0, None, None)
    assert plane.tables.permission == 4
    assert plane.config().text("brokerName") == "broker-a"
    assert plane.topics.data_version.counter == 1
    assert plane.registered == [None]
    assert plane.changed == [{"brokerPermission": "4"}]


def test_what_is_told_is_what_it_was_changed_to(plane: ControlPlane) -> None:
    plane.answer(25, body=b"defaultQueryMaxNum=7")
    answer = plane.answer(26)
    assert answer.ext_fields == {"version": f'{{"counter":1,"timestamp":{NOW}}}'}
    assert b"\ndefaultQueryMaxNum=7\n" in answer.body
    assert plane.topics.data_version.counter == 0


@pytest.mark.parametrize(
    ("body", "code", "remark"),
    [
        (b"", 0, None),
        (b"xx=y\n", 0, None),
        (b"\xff\xfe=1\n", 0, None),
        (b"\\u00zz", 1, "string2Properties error"),
        (b"brokerPermission=abc\n", 1, "brokerPermission: expected a whole number of 32 bits, got 'abc'"),
        (b"autoCreateTopicEnable=maybe", 1, "autoCreateTopicEnable: expected true or false, got 'maybe'"),
    ],
)
def test_what_changes_nothing(plane: ControlPlane, body: bytes, code: int, remark: str | None) -> None:
    before = dict(plane.config())
    answer = plane.answer(25, body=body)
    assert (answer.code, answer.remark) == (code, remark)
    assert dict(plane.config()) == before
    assert plane.tables.permission is None
    assert plane.registered == []


def test_the_broker_tells_what_it_has_done(plane: ControlPlane) -> None:
    plane.tables.counted = [("TOPIC_PUT_NUMS", "t", 8, 8), ("TOPIC_PUT_SIZE", "t", 8, 1142)]
    plane.delay_offsets = {3: 0}
    plane.store.append(rmqfast.Message("t", b"x"))
    plane.now += 165_000
    table = plane.json(28)["table"]
    assert {f"commitLogDiskRatio_{plane.path / 'commitlog'}", "scheduleMessageOffset_3"} <= table.keys()
    assert all(isinstance(value, str) for value in table.values())
    told = {
        name: table[name] for name in ("runtime", "putMessageAverageSize", "msgPutTotalTodayNow", "brokerVersionDesc")
    }
    assert told == {
        "runtime": "[ 0 days, 0 hours, 2 minutes, 45 seconds ]",
        "putMessageAverageSize": "142.75",
        "msgPutTotalTodayNow": "8",
        "brokerVersionDesc": "V4_9_4",
    }
    assert table["earliestMessageTimeStamp"] == str(NOW)
    assert (table["commitLogMinOffset"], table["commitLogMaxOffset"]) == (
        "0",
        str(plane.store.message_at(0).store_size),
    )
    assert table["remainHowManyDataToFlush"] == "1.1 KiB"
    assert 0 < float(table["commitLogDiskRatio"]) <= 1


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1 << 20, "1.0 MiB"), (1 << 40, "1.0 TiB")]
)
def test_bytes_are_written_for_people(count: int, text: str) -> None:
    assert readable_bytes(count) == text


def test_queues_of_topics_that_are_not_there_can_be_let_go(plane: ControlPlane) -> None:
    plane.topics.update(TopicConfig(topic_name="kept"))
    for topic in ("kept", "gone"):
        plane.store.append(rmqfast.Message(topic, b"x"))
    assert plane.answer(316).code == 0
    assert plane.queue_directories() == {"kept"}
    assert plane.answer(306).code == 0
    assert plane.queue_directories() == {"kept"}


def test_files_that_are_too_old_can_be_let_go(plane: ControlPlane) -> None:
    assert plane.answer(329).code == 0
    assert plane.store.last_clean is not None


def test_a_store_that_cannot_clean_says_why(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path / "store", retention=False)
    answer = plane.answer(329)
    assert answer.code == 1
    assert "retention" in (answer.remark or "")
    plane.close()


def test_a_code_that_nobody_knows_is_not_supported(still: ControlPlane) -> None:
    answer = still.answer(301)
    assert (answer.code, answer.remark) == (3, " request type 301 not supported")


def test_an_answer_fits_into_a_frame() -> None:
    records = [bytes(4 << 20)] * 5
    assert sum(len(record) for record in newest(records, MAX_BODY)) <= MAX_BODY
    assert len(newest(records, MAX_BODY)) == 3
