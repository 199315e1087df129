"""Requests about how far topics are written and consumed, over a real store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import rmqfast
from rmqfast.message import MessageQueue
from rmqfast.store.config import TopicConfig
from tests.broker.control_plane import NOW, ControlPlane
from tests.broker.pulled import records_of

TAG_A = 97  # the hash of "a"


def fill(plane: ControlPlane) -> ControlPlane:
    """Five messages in two queues of a topic whose consumers see three; a group has consumed one."""
    plane.topics.update(TopicConfig(topic_name="tt", read_queue_nums=3, write_queue_nums=2))
    for number in range(5):
        plane.now = NOW + number
        properties = {"UNIQ_KEY": f"u{number}"}
        plane.store.append(
            rmqfast.Message(
                "tt", b"x" * 10, tags="a", keys=f"k{number} all", properties=properties, queue_id=number % 2
            )
        )
    plane.groups.find("gg")
    plane.tables.commit_offset("gg", "tt", 0, 1)
    return plane


@pytest.fixture
def filled(plane: ControlPlane) -> ControlPlane:
    """Those messages, for a test that changes something."""
    return fill(plane)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Those messages, for tests that change nothing."""
    plane = fill(ControlPlane(tmp_path_factory.mktemp("full") / "store"))
    yield plane
    plane.close()


def queue(queue_id: int, topic: str = "tt") -> MessageQueue:
    """A queue of this broker."""
    return MessageQueue(topic, "broker-a", queue_id)


def test_a_topic_is_told_queue_by_queue(full: ControlPlane) -> None:
    assert full.json(202, {"topic": "tt"})["offsetTable"] == {
        queue(0): {"minOffset": 0, "maxOffset": 3, "lastUpdateTimestamp": NOW + 4},
        queue(1): {"minOffset": 0, "maxOffset": 2, "lastUpdateTimestamp": NOW + 3},
    }
    assert full.json(202, {"topic": "broker-a"})["offsetTable"] == {
        queue(0, "broker-a"): {"minOffset": 0, "maxOffset": 0, "lastUpdateTimestamp": 0}
    }


@pytest.mark.parametrize("code", [202, 303])
def test_a_topic_that_is_not_there_is_17(still: ControlPlane, code: int) -> None:
    answer = still.answer(code, {"topic": "nope", "group": "g"})
    assert (answer.code, answer.remark) == (17, "topic[nope] not exist")


CONSUMED = {
    queue(0): {"brokerOffset": 3, "consumerOffset": 1, "lastTimestamp": NOW},
    queue(1): {"brokerOffset": 2, "consumerOffset": 0, "lastTimestamp": 0},
    queue(2): {"brokerOffset": 0, "consumerOffset": 0, "lastTimestamp": 0},
}


@pytest.mark.parametrize("topic", [None, "", " ", "tt"])
def test_a_group_is_told_how_far_it_is_in_each_queue_that_it_sees(full: ControlPlane, topic: str | None) -> None:
    fields = {"consumerGroup": "gg"} | ({} if topic is None else {"topic": topic})
    assert full.json(208, fields) == {"consumeTps": 0.0, "offsetTable": CONSUMED}


def test_consumption_has_a_rate(filled: ControlPlane) -> None:
    filled.tables.counted = [("GROUP_GET_NUMS", "tt@gg", 3, 9), ("GROUP_GET_NUMS", "tt@other", 3, 9)]
    filled.stats.run_once(NOW)
    assert filled.json(208, {"consumerGroup": "gg"})["consumeTps"] == 0.9


def test_a_group_that_is_online_shows_only_what_it_wants(filled: ControlPlane) -> None:
    filled.topics.update(TopicConfig(topic_name="other"))
    filled.tables.commit_offset("gg", "gone", 0, 1)
    filled.come_online("gg", "other")
    assert filled.json(208, {"consumerGroup": "gg"})["offsetTable"] == {}
    assert filled.json(208, {"consumerGroup": "gg", "topic": "other"})["offsetTable"].keys() == {
        queue(number, "other") for number in range(16)
    }
    assert filled.json(208, {"consumerGroup": "gg", "topic": "gone"})["offsetTable"] == {}
    filled.come_online("gg", "tt")
    assert filled.json(208, {"consumerGroup": "gg"})["offsetTable"] == CONSUMED


def test_a_topic_names_those_who_want_it_and_those_who_have_consumed_it(filled: ControlPlane) -> None:
    filled.come_online("live", "tt")
    assert set(filled.json(300, {"topic": "tt"})["groupList"]) == {"gg", "live"}
    assert filled.answer(300, {"topic": "nope"}).body == b'{"groupList":[]}'


def test_all_groups_are_told_at_once(full: ControlPlane) -> None:
    body = full.json(317, {"isOrder": "false"})
    stats = {group: rows for entry in body["consumeStatsList"] for group, rows in entry.items()}
    assert stats["gg"] == [
        {"consumeTps": 0.0, "offsetTable": {queue(0): CONSUMED[queue(0)], queue(1): CONSUMED[queue(1)]}}
    ]
    assert stats["TOOLS_CONSUMER"] == []
    assert len(stats) == 8
    assert (body["brokerAddr"], body["totalDiff"]) == ("127.0.0.1:25010", 4)


def test_only_ordered_topics_are_told_if_asked(filled: ControlPlane) -> None:
    assert filled.json(317, {"isOrder": "true"})["totalDiff"] == 0
    filled.topics.update_order_topics({"tt"})
    assert filled.json(317, {"isOrder": "true"})["totalDiff"] == 4


def test_times_of_a_topic_are_told_queue_by_queue(filled: ControlPlane) -> None:
    filled.now = NOW + 1000
    spans = filled.json(303, {"topic": "tt", "group": "gg"})["consumeTimeSpanSet"]
    numbers = ["minTimeStamp", "maxTimeStamp", "consumeTimeStamp", "delayTime"]
    assert [[span[name] for name in numbers] for span in spans] == [
        [NOW, NOW + 4, NOW, 998],
        [NOW + 1, NOW + 3, NOW + 1, NOW + 1001],  # nothing consumed: RocketMQ subtracts -1
    ]
    assert [span["messageQueue"] for span in spans] == [
        {"brokerName": "broker-a", "queueId": number, "topic": "tt"} for number in range(2)
    ]
    assert spans[0]["maxTimeStampStr"].endswith(":004")
    empty = filled.json(303, {"topic": "broker-a", "group": "g"})["consumeTimeSpanSet"][0]
    assert [empty[name] for name in numbers] == [-1, -1, -1, NOW + 1001]


def unit(number: int, size: int) -> dict[str, Any]:
    """A unit of queue 0, to which every second message went."""
    return {"eval": False, "physicOffset": number * 2 * size, "physicSize": size, "tagsCode": TAG_A}


def test_a_queue_lists_its_units(full: ControlPlane) -> None:
    size = full.store.message_at(0).store_size
    asked = {"topic": "tt", "queueId": "0", "index": "0", "count": "2"}
    answer = full.answer(321, asked)
    assert (answer.code, answer.remark) == (0, "not set any response code")
    expected = {"maxQueueIndex": 3, "minQueueIndex": 0, "queueData": [unit(0, size), unit(1, size)]}
    assert full.json(321, asked) == expected
    assert full.json(321, asked | {"index": "2", "count": "99999"})["queueData"] == [unit(2, size)]
    assert full.json(321, asked | {"count": "-1"})["queueData"] == []
    assert full.json(321, asked | {"consumerGroup": "gg"}) == expected | {"filterData": "gg@tt is not online!"}


def test_a_queue_lists_what_a_group_wants_of_it(filled: ControlPlane) -> None:
    filled.come_online("gg", "tt")
    body = filled.json(321, {"topic": "tt", "queueId": "0", "index": "0", "count": "1", "consumerGroup": "gg"})
    assert body["filterData"] == "null"
    assert body["subscriptionData"].items() >= {"topic": "tt", "subString": "*", "expressionType": "TAG"}.items()


@pytest.mark.parametrize("index", ["3", "99", "-1", "-9223372036854775808"])
def test_an_index_outside_a_queue_is_no_error(full: ControlPlane, index: str) -> None:
    answer = full.answer(321, {"topic": "tt", "queueId": "0", "index": index, "count": "2"})
    assert (answer.code, answer.remark, answer.body) == (0, f"Index {index} of 0@tt is not exist!", b"")


@pytest.mark.parametrize(("topic", "queue_id"), [("tt", "-1"), ("tt", "3"), ("nope", "0"), ("../x", "0")])
def test_a_queue_that_is_not_there_is_told_so(full: ControlPlane, topic: str, queue_id: str) -> None:
    answer = full.answer(321, {"topic": topic, "queueId": queue_id, "index": "0", "count": "1"})
    assert (answer.code, answer.remark) == (1, f"{queue_id}@{topic} is not exist!")


def test_a_queue_has_times(full: ControlPlane) -> None:
    asked = {"topic": "tt", "queueId": "0"}
    assert full.answer(32, asked).ext_fields == {"timestamp": str(NOW)}
    assert full.answer(29, asked | {"timestamp": "9999999999999"}).ext_fields == {"offset": "2"}
    assert full.answer(29, asked | {"timestamp": "0"}).ext_fields == {"offset": "0"}


@pytest.mark.parametrize(("topic", "queue_id"), [("nope", "0"), ("../x", "-1"), ("tt", "2147483647"), ("tt", "-1")])
def test_a_queue_that_is_not_there_is_an_empty_one(full: ControlPlane, topic: str, queue_id: str) -> None:
    asked = {"topic": topic, "queueId": queue_id, "timestamp": "0"}
    assert full.answer(29, asked).ext_fields == {"offset": "0"}
    assert full.answer(32, asked).ext_fields == {"timestamp": "-1"}


@pytest.mark.parametrize("code", [29, 32, 321])
@pytest.mark.parametrize("queue_id", [None, "x", "99999999999", ""])
def test_a_queue_that_is_no_number_is_refused(full: ControlPlane, code: int, queue_id: str | None) -> None:
    asked = {"topic": "tt", "timestamp": "0", "index": "0", "count": "1"}
    answer = full.answer(code, asked if queue_id is None else asked | {"queueId": queue_id})
    assert answer.code == 1
    assert "queueId" in (answer.remark or "")


ANY_TIME = {"beginTimestamp": "0", "endTimestamp": str((1 << 63) - 1)}


def query(plane: ControlPlane, key: str, count: int, topic: str = "tt", unique: str = "false") -> list[str]:
    """The UNIQ_KEYs of the records that are answered."""
    fields = {"topic": topic, "key": key, "maxNum": str(count), "_UNIQUE_KEY_QUERY": unique} | ANY_TIME
    answer = plane.answer(12, fields)
    if answer.code != 0:
        assert (answer.code, answer.remark) == (22, "can not find message, maybe time range not correct")
        assert answer.ext_fields == {"indexLastUpdatePhyoffset": "0", "indexLastUpdateTimestamp": "0"}
        return []
    assert answer.ext_fields is not None
    assert answer.ext_fields["indexLastUpdateTimestamp"] == str(NOW + 4)
    return [record.split(b"UNIQ_KEY\x01")[1][:2].decode() for record in records_of(answer.body)]


def test_messages_are_found_by_key_in_the_order_of_the_log(full: ControlPlane) -> None:
    assert query(full, "all", 32) == ["u0", "u1", "u2", "u3", "u4"]
    assert query(full, "all", 2) == ["u3", "u4"]
    assert query(full, "u1", 1) == ["u1"]
    assert query(full, "u1", 0) == []
    assert query(full, "u1", 0, unique="true") == ["u1"]  # then the broker's own number counts
    assert query(full, "nope", 9) == []
    assert query(full, "all", 9, topic="../x") == []


@pytest.mark.parametrize(("name", "value"), [("maxNum", "-1"), ("maxNum", "x"), ("key", None), ("endTimestamp", "")])
def test_a_query_that_is_none_is_refused(full: ControlPlane, name: str, value: str | None) -> None:
    fields = {"topic": "tt", "key": "all", "maxNum": "1"} | ANY_TIME | {name: value}
    answer = full.answer(12, {field: text for field, text in fields.items() if text is not None})
    assert answer.code == 1
    assert name in (answer.remark or "")


def test_a_record_is_found_by_its_offset(full: ControlPlane) -> None:
    size = full.store.message_at(0).store_size
    assert len(full.answer(33, {"offset": "0"}).body) == size
    assert b"u1" in full.answer(33, {"offset": str(size)}).body


@pytest.mark.parametrize("offset", ["1", "-5", "99999999", "9223372036854775807"])
def test_an_offset_without_a_record_is_told_so(full: ControlPlane, offset: str) -> None:
    answer = full.answer(33, {"offset": offset})
    assert (answer.code, answer.remark) == (1, f"can not find message by the offset, {offset}")


def test_a_statistic_is_told_by_minute_hour_and_day(plane: ControlPlane) -> None:
    plane.tables.counted = [("TOPIC_PUT_SIZE", "tt", 2, 300)]
    plane.stats.run_once(NOW)
    body = plane.json(315, {"statsName": "TOPIC_PUT_SIZE", "statsKey": "tt"})
    assert body == {
        "statsMinute": {"sum": 300, "tps": 30.0, "avgpt": 150.0},
        "statsHour": {"sum": 300, "tps": 0.5, "avgpt": 150.0},
        "statsDay": {"sum": 300, "tps": 300 / 3600, "avgpt": 150.0},
    }
    answer = plane.answer(315, {"statsName": "TOPIC_PUT_NUMS", "statsKey": "nope"})
    assert (answer.code, answer.remark) == (1, "The stats <TOPIC_PUT_NUMS> <nope> not exist")


def test_progress_of_delayed_messages_is_told_by_level(plane: ControlPlane) -> None:
    assert plane.answer(45).body == b'{"offsetTable":{}}'
    plane.delay_offsets = {2: 5, 1: 0}
    assert plane.answer(45).body == b'{"offsetTable":{1:0,2:5}}'
