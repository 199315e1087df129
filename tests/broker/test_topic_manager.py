"""Topics: which names they may have, what sending makes, and who is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmqfast.broker.topics.topic_manager import mask_permission
from rmqfast.errors import ResponseError
from rmqfast.store.config import TopicConfig, TopicConfigTable
from tests.broker.control_plane import ControlPlane

FAQ = "\nSee http://rocketmq.apache.org/docs/faq/ for further details."


def send(
    plane: ControlPlane, topic: str, default: str = "TBW102", queues: int = 4, *, unit: bool = False
) -> TopicConfig:
    """The topic that a message is sent to."""
    return plane.topics.create_for_send(topic, default, queues, unit_mode=unit)


def saved(plane: ControlPlane) -> TopicConfigTable:
    """The topics that a broker would find."""
    return plane.metadata.load(TopicConfigTable)


@pytest.mark.parametrize(("wanted", "queues"), [(4, 4), (8, 8), (100, 8), (0, 0), (-3, 0), (2**31 - 1, 8)])
def test_sending_makes_a_topic_after_tbw102(plane: ControlPlane, wanted: int, queues: int) -> None:
    topic = send(plane, "orders", queues=wanted)
    assert topic == TopicConfig(topic_name="orders", read_queue_nums=queues, write_queue_nums=queues, perm=6)
    assert plane.tables.topics["orders"] == topic == saved(plane)["orders"]
    assert plane.registered == ["orders"]
    assert plane.topics.data_version.counter == 1


def test_a_topic_takes_after_another_that_lets_it(plane: ControlPlane) -> None:
    assert send(plane, "after-cluster", "DefaultCluster", 99).write_queue_nums == 16
    with pytest.raises(ResponseError) as error:
        send(plane, "after-plain", "BenchmarkTest")
    assert (error.value.code, error.value.remark) == (17, f"topic[after-plain] not exist, apply first please!{FAQ}")
    with pytest.raises(ResponseError) as error:
        send(plane, "after-nothing", "nobody")
    assert error.value.code == 17
    assert {"after-plain", "after-nothing"}.isdisjoint(plane.tables.topics)


def test_nothing_is_made_where_sending_may_not_make_topics(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path / "store", {"autoCreateTopicEnable": "false"})
    assert plane.topics.get("TBW102") is None
    with pytest.raises(ResponseError):
        send(plane, "orders")
    plane.topics.update(TopicConfig(topic_name="TBW102", perm=7))  # as an older file may have it
    with pytest.raises(ResponseError):
        send(plane, "orders")
    assert send(plane, "orders", "DefaultCluster").perm == 6  # another topic may be taken after
    plane.close()


def test_a_retry_topic_has_one_queue_where_there_is_nothing_to_take_after(plane: ControlPlane) -> None:
    assert send(plane, "%RETRY%g", "nobody") == TopicConfig(
        topic_name="%RETRY%g", read_queue_nums=1, write_queue_nums=1, perm=6
    )


@pytest.mark.parametrize(
    ("topic", "default", "unit", "flag"),
    [
        ("t", "TBW102", False, 0),
        ("t", "TBW102", True, 1),
        ("%RETRY%g", "TBW102", True, 2),
        ("%RETRY%g", "nobody", True, 2),
    ],
)
def test_a_topic_of_a_unit_is_marked(plane: ControlPlane, topic: str, default: str, unit: bool, flag: int) -> None:
    assert send(plane, topic, default, unit=unit).topic_sys_flag == flag


@pytest.mark.parametrize(
    ("topic", "code", "remark"),
    [
        ("../x", 1, "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        ("SELF_TEST_TOPIC", 16, "Sending message to topic[SELF_TEST_TOPIC] is forbidden."),
    ],
)
def test_a_name_that_nobody_may_send_to(still: ControlPlane, topic: str, code: int, remark: str) -> None:
    before = set(still.tables.topics)
    with pytest.raises(ResponseError) as error:
        send(still, topic)
    assert (error.value.code, error.value.remark) == (code, remark)
    assert set(still.tables.topics) == before
    assert still.topics.data_version.counter == 0


def test_the_broker_makes_topics_of_its_own(plane: ControlPlane) -> None:
    retry = plane.topics.create_for_send_back("%RETRY%g", 3)
    assert retry is not None
    assert (retry.read_queue_nums, retry.perm, retry.topic_sys_flag) == (3, 6, 0)
    assert plane.topics.create_for_send_back("%RETRY%g", 9) is retry
    assert plane.topics.create_for_send_back("%RETRY%../x", 1) is None
    assert plane.registered == ["%RETRY%g"]


def test_topics_are_there_again_after_a_restart(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path / "store")
    send(plane, "orders", queues=3)
    plane.topics.update(TopicConfig(topic_name="paid", perm=4, order=True))
    plane.topics.delete("orders")
    version = plane.topics.data_version
    plane.close()
    again = ControlPlane(tmp_path / "store")
    assert again.topics.get("orders") is None
    assert again.topics.get("paid") == TopicConfig(topic_name="paid", perm=4, order=True)
    assert again.topics.data_version == version
    assert again.tables.topics.keys() == {topic.topic_name for topic in again.topics.topics()}
    again.close()


def test_ordered_topics_are_those_that_a_name_server_says(plane: ControlPlane) -> None:
    send(plane, "a")
    send(plane, "b")
    plane.topics.update_order_topics({"a", "nobody"})
    assert [topic.topic_name for topic in plane.topics.topics() if topic.order] == ["a"]
    version = plane.topics.data_version
    plane.topics.update_order_topics({"a"})
    assert plane.topics.data_version == version
    plane.topics.update_order_topics({"b"})
    assert [topic.topic_name for topic in plane.topics.topics() if topic.order] == ["b"]
    assert plane.topics.data_version.counter == version.counter + 1
    assert saved(plane)["b"].order
    assert plane.tables.topics["b"].order


def test_a_broker_without_a_permission_registers_topics_without_it() -> None:
    topic = TopicConfig(topic_name="t", read_queue_nums=3, write_queue_nums=2, perm=6, order=True)
    assert mask_permission(topic, 6) is topic
    assert mask_permission(topic, 4) == TopicConfig(topic_name="t", read_queue_nums=3, write_queue_nums=2, perm=4)


def test_a_save_that_fails_is_no_answer_to_a_producer(plane: ControlPlane, caplog: pytest.LogCaptureFixture) -> None:
    plane.metadata.close()
    assert send(plane, "orders").topic_name == "orders"
    assert "were not saved, and are tried again" in caplog.text


def test_the_data_plane_hears_of_a_topic_once_it_is_saved(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    there: list[TopicConfig | None] = []
    monkeypatch.setattr(plane.tables, "put_topic", lambda topic: there.append(saved(plane).get(topic.topic_name)))
    made, updated = send(plane, "orders"), TopicConfig(topic_name="paid")
    plane.topics.update(updated)
    assert there == [made, updated]
