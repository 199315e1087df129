"""Requests about topics and groups, as a real broker of 4.9.4 answered them; hostile ones store nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rmqfast
from rmqfast.remoting.fastjson import decode
from rmqfast.store.config import SubscriptionGroupConfig, SubscriptionGroupTable, TopicConfig, TopicConfigTable
from tests.broker.control_plane import ControlPlane

NEW_TOPIC = {
    "topic": "orders",
    "defaultTopic": "TBW102",
    "readQueueNums": "4",
    "writeQueueNums": "3",
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": "0",
    "order": "true",
}
#: The topics that the real broker had at first.
LISTED = {
    "SCHEDULE_TOPIC_XXXX",
    "SELF_TEST_TOPIC",
    "DefaultCluster",
    "DefaultCluster_REPLY_TOPIC",
    "broker-a",
    "TBW102",
    "BenchmarkTest",
    "OFFSET_MOVED_EVENT",
}
ILLEGAL = "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"


def conflict(topic: str) -> str:
    """The remark for a topic of the broker's own."""
    return f"The topic[{topic}] is conflict with system topic."


def test_a_topic_is_made_and_registered_alone(plane: ControlPlane) -> None:
    answer = plane.answer(17, NEW_TOPIC)
    assert (answer.code, answer.remark, answer.ext_fields) == (0, "not set any response code", None)
    expected = TopicConfig(topic_name="orders", read_queue_nums=4, write_queue_nums=3, perm=6)  # order is ignored
    assert plane.topics.get("orders") == expected == plane.tables.topics["orders"]
    assert plane.metadata.load(TopicConfigTable)["orders"] == expected
    assert plane.registered == ["orders"]
    assert plane.topics.data_version.counter == 1


@pytest.mark.parametrize(
    ("changed", "remark"),
    [
        ({"topic": ""}, "The specified topic is blank."),
        ({"topic": None}, "The specified topic is blank."),
        ({"topic": "../x"}, ILLEGAL),
        ({"topic": "a" * 128}, "The specified topic is longer than topic max length."),
        ({"topic": "TBW102"}, conflict("TBW102")),
        ({"topic": "broker-a"}, conflict("broker-a")),
        ({"topic": "DefaultCluster"}, conflict("DefaultCluster")),
        ({"topic": "DefaultCluster_REPLY_TOPIC"}, conflict("DefaultCluster_REPLY_TOPIC")),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, conflict("SCHEDULE_TOPIC_XXXX")),
        ({"topic": "rmq_sys_abc"}, conflict("rmq_sys_abc")),
        ({"topicFilterType": "X"}, "topicFilterType = [X] value invalid"),
        ({"topicFilterType": None}, "topicFilterType = [null] value invalid"),
        ({"readQueueNums": "-1"}, "readQueueNums: expected 0 to 65536, got -1"),
        ({"writeQueueNums": "100000000"}, "writeQueueNums: expected 0 to 65536, got 100000000"),
        ({"perm": "99"}, "perm: expected 0 to 7, got 99"),
        ({"perm": "-1"}, "perm: expected 0 to 7, got -1"),
        ({"perm": None}, "the header field perm is missing"),
        ({"readQueueNums": "abc"}, "the header field readQueueNums is no number: 'abc'"),
        ({"readQueueNums": "4294967296"}, "the header field readQueueNums is no number of 32 bits: 4294967296"),
        ({"readQueueNums": "9" * 99}, f"the header field readQueueNums is no number: '{'9' * 40}'"),
    ],
)
def test_what_makes_no_topic_changes_nothing(still: ControlPlane, changed: dict[str, str | None], remark: str) -> None:
    before = dict(still.tables.topics)
    asked = {name: value for name, value in (NEW_TOPIC | changed).items() if value is not None}
    answer = still.answer(17, asked)
    assert (answer.code, answer.remark) == (1, remark)
    assert still.tables.topics == before
    assert still.topics.data_version.counter == 0
    assert still.registered == []


def test_a_filter_type_or_a_flag_may_be_left_out_where_java_lets_it(plane: ControlPlane) -> None:
    asked = {name: value for name, value in NEW_TOPIC.items() if name not in {"topicSysFlag", "order"}}
    assert plane.answer(17, asked | {"topicFilterType": "MULTI_TAG"}).code == 0
    topic = plane.topics.get("orders")
    assert topic is not None
    assert (topic.topic_sys_flag, topic.topic_filter_type) == (0, "MULTI_TAG")


def test_a_deleted_topic_takes_its_queues_along(plane: ControlPlane) -> None:
    plane.answer(17, NEW_TOPIC)
    plane.answer(17, NEW_TOPIC | {"topic": "kept"})
    for topic in ("orders", "kept"):
        plane.store.append(rmqfast.Message(topic, b"x"))
    answer = plane.answer(215, {"topic": "orders"})
    assert (answer.code, answer.remark) == (0, None)
    assert "orders" not in plane.tables.topics
    assert plane.queue_directories() == {"kept"}
    assert plane.store.live.queue_bounds("orders", 0) == (0, 0)
    assert plane.store.live.queue_bounds("kept", 0) == (0, 1)
    assert plane.answer(215, {"topic": "nobody"}).code == 0


def test_a_deleted_topic_takes_the_offsets_of_its_groups_along(plane: ControlPlane) -> None:
    """As in 5.3.3; with those of 4.9.4, which stay, a group passes over messages of a topic that is made anew."""
    plane.answer(17, NEW_TOPIC)
    for group, topic in (("g", "orders"), ("h", "orders"), ("g", "orders2"), ("g", "%RETRY%g")):
        plane.tables.commit_offset(group, topic, 0, 20)
    plane.answer(215, {"topic": "orders"})
    plane.offsets.persist()
    assert plane.tables.offsets() == {"orders2@g": {0: 20}, "%RETRY%g@g": {0: 20}}


@pytest.mark.parametrize(
    ("topic", "remark"),
    [("../x", ILLEGAL), ("TBW102", conflict("TBW102")), ("SELF_TEST_TOPIC", conflict("SELF_TEST_TOPIC"))],
)
def test_what_may_not_be_deleted_stays(still: ControlPlane, topic: str, remark: str) -> None:
    answer = still.answer(215, {"topic": topic})
    assert (answer.code, answer.remark) == (1, remark)
    assert "TBW102" in still.tables.topics


def test_statistics_go_with_a_topic_if_they_are_to(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path / "store", {"autoDeleteUnusedStats": "true"})
    plane.tables.counted = [("TOPIC_PUT_NUMS", "orders", 1, 1), ("GROUP_GET_NUMS", "other@g", 1, 1)]
    assert plane.stats.item("TOPIC_PUT_NUMS", "orders") is not None
    plane.answer(215, {"topic": "orders"})
    assert plane.stats.item("TOPIC_PUT_NUMS", "orders") is None
    plane.answer(207, {"groupName": "g"})
    assert plane.stats.item("GROUP_GET_NUMS", "other@g") is None
    plane.close()


def test_all_topics_are_listed(still: ControlPlane) -> None:
    answer = still.answer(21)
    body = decode(answer.body)
    assert answer.ext_fields == {}
    assert set(body["topicConfigTable"]) == LISTED
    assert body["topicConfigTable"]["broker-a"] == {
        "order": False,
        "perm": 7,
        "readQueueNums": 1,
        "topicFilterType": "SINGLE_TAG",
        "topicName": "broker-a",
        "topicSysFlag": 0,
        "writeQueueNums": 1,
    }
    assert body["dataVersion"].keys() == {"counter", "timestamp"}


def test_the_broker_lists_its_own_topics(still: ControlPlane) -> None:
    assert still.json(305) == {"topicList": still.topics.system_topics}


def test_one_topic_or_group_is_told_as_to_clients_of_5x(still: ControlPlane) -> None:
    assert still.json(351, {"topic": "TBW102", "lo": "true"})["writeQueueNums"] == 8
    answer = still.answer(351, {"topic": "nobody"})
    assert (answer.code, answer.remark) == (17, "No topic in this broker. topic: nobody")
    assert still.json(352, {"group": "TOOLS_CONSUMER"})["groupName"] == "TOOLS_CONSUMER"
    answer = still.answer(352, {"group": "nobody"})
    assert (answer.code, answer.remark) == (26, "No group in this broker. group: nobody")


def test_a_group_is_made_of_what_the_body_says(plane: ControlPlane) -> None:
    body = b'{"groupName":"g","retryMaxTimes":"7","consumeBroadcastEnable":false,"brokerId":3,"unknown":1}'
    assert plane.answer(200, body=body).code == 0
    group = plane.groups.get("g")
    assert group is not None
    assert (group.retry_max_times, group.consume_broadcast_enable, group.broker_id, group.other) == (7, False, 3, {})
    assert plane.tables.groups["g"] == group == plane.metadata.load(SubscriptionGroupTable)["g"]


@pytest.mark.parametrize(
    ("body", "remark"),
    [
        (b"", "body: expected an object, got nothing"),
        (b"[1]", "body: expected an object, got a list"),
        (b"{}", "the specified group is blank"),
        (b'{"groupName":""}', "the specified group is blank"),
        (b'{"groupName":"g","retryQueueNums":"x"}', "body.retryQueueNums: expected a whole number, got a text"),
        (b'{"groupName":"g","retryQueueNums":-5}', "body.retryQueueNums: expected 0 to 65536, got -5"),
        (
            b'{"groupName":"g","retryMaxTimes":4294967296}',
            "body.retryMaxTimes: expected -2147483648 to 2147483647, got 4294967296",
        ),
        (b'{"groupName":"g","consumeEnable":[]}', "body.consumeEnable: expected true or false, got a list"),
    ],
)
def test_what_makes_no_group_changes_nothing(still: ControlPlane, body: bytes, remark: str) -> None:
    before = dict(still.tables.groups)
    answer = still.answer(200, body=body)
    assert (answer.code, answer.remark) == (1, remark)
    assert still.tables.groups == before
    assert still.groups.data_version.counter == 0


@pytest.mark.parametrize("name", ["../x", "a b", "a@b"])
def test_a_group_has_no_name_that_a_topic_could_not_have(still: ControlPlane, name: str) -> None:
    answer = still.answer(200, body=json.dumps({"groupName": name}).encode())
    expected = f"the specified group[{name}] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
    assert (answer.code, answer.remark) == (1, expected)


def test_a_body_that_is_no_json_is_refused(still: ControlPlane) -> None:
    answer = still.answer(200, body=b"xx")
    assert answer.code == 1
    assert (answer.remark or "").startswith("body: no json at character 0: ")
    assert still.answer(200, body=b"[" * 100_000).code == 1


@pytest.mark.parametrize(
    ("fields", "is_gone"),
    [
        ({}, False),
        ({"removeOffset": "false"}, False),
        ({"removeOffset": "true"}, True),
        ({"cleanOffset": "TRUE"}, True),
    ],
)
def test_a_deleted_group_takes_its_offsets_along_if_asked(
    plane: ControlPlane, fields: dict[str, str], is_gone: bool
) -> None:
    plane.groups.find("g")
    plane.tables.commit_offset("g", "t", 0, 5)
    plane.tables.commit_offset("other", "t", 0, 5)
    assert plane.answer(207, {"groupName": "g"} | fields).code == 0
    assert "g" not in plane.tables.groups
    assert (plane.tables.offset("g", "t", 0) == -1) is is_gone
    assert plane.tables.offset("other", "t", 0) == 5


def test_a_heartbeat_makes_its_group_once(plane: ControlPlane) -> None:
    for _ in range(2):
        plane.come_online("orders", "t")
        assert plane.json(352, {"group": "orders"})["groupName"] == "orders"
        assert plane.groups.data_version.counter == 1
    plane.metadata.flush()
    saved = plane.metadata.load(SubscriptionGroupTable)["orders"]
    assert saved == plane.tables.groups["orders"] == SubscriptionGroupConfig(group_name="orders")


def test_who_sees_a_new_group_has_its_pulls_answered(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pulls that come together: the second one finds the group that the first one is making."""
    seen = []
    put_group = plane.tables.put_group

    def put(config: SubscriptionGroupConfig) -> None:
        seen.append(plane.groups.get(config.group_name))
        put_group(config)

    monkeypatch.setattr(plane.tables, "put_group", put)
    plane.groups.find("new")
    assert seen == [None]
    assert "new" in plane.tables.groups


def test_only_groups_of_the_system_are_made_where_none_is_to_be_made(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path / "store", {"autoCreateSubscriptionGroup": "false"})
    plane.come_online("orders", "t")
    plane.come_online("CID_RMQ_SYS_TRANS", "t")
    assert plane.answer(352, {"group": "orders"}).code == 26
    for name in ("CID_RMQ_SYS_TRANS", "TOOLS_CONSUMER"):
        assert plane.answer(352, {"group": name}).code == 0
    plane.close()


@pytest.mark.parametrize("name", ["", "../x", "a b", "a@b", "grüppe", "g" * 256])
def test_a_name_that_no_group_may_have_makes_none(still: ControlPlane, name: str) -> None:
    assert still.groups.find(name) is None
    assert name not in still.tables.groups


def test_a_group_that_is_deleted_is_gone_after_a_restart(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path / "store")
    for name in ("a", "b"):
        assert plane.answer(200, body=json.dumps({"groupName": name}).encode()).code == 0
    assert plane.answer(207, {"groupName": "a"}).code == 0
    plane.close()
    again = ControlPlane(tmp_path / "store")
    assert [again.answer(352, {"group": name}).code for name in ("a", "b")] == [26, 0]
    assert {"a", "b"} & set(again.tables.groups) == {"b"}
    assert again.groups.data_version.counter == 3
    again.close()


def test_deleting_a_group_that_is_not_there_is_no_error(plane: ControlPlane) -> None:
    assert plane.answer(207, {"groupName": "nobody"}).code == 0
    assert plane.answer(207, {"groupName": "../x"}).code == 0
    assert (plane.answer(207).code, plane.answer(207).remark) == (1, "the header field groupName is missing")


def test_all_groups_are_listed(still: ControlPlane) -> None:
    body = still.json(201)
    assert {"SELF_TEST_C_GROUP", "CID_ONSAPI_OWNER", "CID_ONSAPI_PERMISSION"} <= set(body["subscriptionGroupTable"])
    assert len(body["subscriptionGroupTable"]) == 7
