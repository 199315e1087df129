"""What an administrator does, against brokers in this process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from rmqfast import EmbeddedCluster, Message, MessageQueue
from rmqfast.admin import Admin
from rmqfast.client.instance import ClientConfig, ClientInstance
from rmqfast.client.producer import Producer
from rmqfast.errors import ArgumentError, ClientError, ResponseError, UnknownMessageError
from tests.client.instance.doubles import FakeProducer
from tests.waiting import until

from .faces import made
from .members import online, wants

BROKERS = ("broker-a", "broker-b")


@pytest.fixture(scope="module")
def cluster(face: str) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=2) as running:
        yield running


def queue(topic: str, queue_id: int = 0, broker_name: str = "broker-a") -> MessageQueue:
    return MessageQueue(topic, broker_name, queue_id)


def fill(admin: Admin, producer: Producer, topic: str, *bodies: str, queues: int = 1) -> list[str]:
    """A topic on both brokers with messages in its first queue on the first one; their ids by the broker."""
    admin.create_topic(topic, queues=queues)
    return [
        producer.send(Message(topic, body.encode(), tags="t", keys=f"k{body}"), queue(topic)).offset_msg_id
        for body in bodies
    ]


def test_a_topic_is_made_on_all_masters_changed_and_removed(admin: Admin) -> None:
    admin.create_topic("made", queues=3)
    assert {(q.broker_name, q.read_queue_nums, q.perm) for q in admin.topics.route("made").queue_datas} == {
        ("broker-a", 3, 6),
        ("broker-b", 3, 6),
    }
    admin.topics.update("made", perm=4, broker_names=["broker-b"])
    assert {(q.broker_name, q.perm, q.write_queue_nums) for q in admin.topics.route("made").queue_datas} == {
        ("broker-a", 6, 3),
        ("broker-b", 4, 3),
    }
    admin.topics.update("made", queues=5)
    assert {(q.perm, q.read_queue_nums, q.write_queue_nums) for q in admin.topics.route("made").queue_datas} == {
        (6, 5, 5),
        (4, 5, 5),
    }
    assert "made" in admin.topics.all()
    admin.topics.delete("made")
    assert "made" not in admin.topics.all()
    with pytest.raises(ResponseError, match="No topic route info") as raised:
        admin.topics.route("made")
    assert raised.value.code == 17


def test_a_topic_is_made_on_one_broker_where_that_is_asked_for(admin: Admin) -> None:
    admin.create_topic("half", queues=2, read_queues=4, broker_names=["broker-b"])
    (only,) = admin.topics.route("half").queue_datas
    assert (only.broker_name, only.read_queue_nums, only.write_queue_nums) == ("broker-b", 4, 2)
    with pytest.raises(ResponseError, match="broker-x"):
        admin.create_topic("half", broker_names=["broker-x"])
    with pytest.raises(ClientError, match="clusters here: DefaultCluster"):
        admin.create_topic("half", cluster="nowhere")
    with pytest.raises(ClientError, match="contains illegal characters"):
        admin.create_topic("a topic")


def test_the_stats_of_a_topic_are_those_of_all_its_brokers(admin: Admin, producer: Producer) -> None:
    before = int(time.time() * 1000)
    fill(admin, producer, "stats", "a", "b", queues=2)
    rows = admin.topics.status("stats")
    assert [(row.broker_name, row.queue_id, row.min_offset, row.max_offset) for row in rows] == [
        ("broker-a", 0, 0, 2),
        ("broker-a", 1, 0, 0),
        ("broker-b", 0, 0, 0),
        ("broker-b", 1, 0, 0),
    ]
    assert rows[0].queue == queue("stats")
    assert rows[0].last_update_timestamp >= before - 1000
    assert rows[1].last_update_timestamp == 0


def test_the_cluster_and_its_brokers_are_told(admin: Admin, cluster: EmbeddedCluster) -> None:
    rows = admin.clusters.brokers()
    assert [(row.cluster, row.broker_name, row.broker_id, row.is_master) for row in rows] == [
        ("DefaultCluster", name, 0, True) for name in BROKERS
    ]
    assert [row.address for row in rows] == [broker.address for broker in cluster.brokers]
    assert admin.brokers.config("broker-b")["brokerName"] == "broker-b"
    assert admin.brokers.config(rows[0].address)["brokerName"] == "broker-a"
    assert admin.brokers.status("broker-a")["brokerVersionDesc"] == "V4_9_4"
    with pytest.raises(ClientError, match="the name server knows broker-a, broker-b"):
        admin.brokers.config("broker-x")


def test_only_what_may_be_changed_while_a_broker_runs_is_changed(admin: Admin) -> None:
    admin.brokers.update_config("broker-a", {"transactionCheckMax": 50, "autoCreateSubscriptionGroup": True})
    assert admin.brokers.config("broker-a")["transactionCheckMax"] == "50"
    assert admin.brokers.config("broker-b")["transactionCheckMax"] == "15"
    with pytest.raises(ClientError, match="did not take defaultTopicQueueNums"):
        admin.brokers.update_config("broker-a", {"defaultTopicQueueNums": 5})
    with pytest.raises(ArgumentError, match="got storePathRootDir"):
        admin.brokers.update_config("broker-a", {"storePathRootDir": "/elsewhere"})
    with pytest.raises(ArgumentError, match="got none"):
        admin.brokers.update_config("broker-a", {})


def test_a_group_is_made_changed_and_removed(admin: Admin) -> None:
    admin.create_group("made_group", retry_max_times=3, consume_broadcast_enable=False)
    made = admin.groups.all()["made_group"]
    assert (made.retry_max_times, made.consume_broadcast_enable, made.retry_queue_nums) == (3, False, 1)
    admin.groups.update("made_group", retry_queue_nums=2)
    changed = admin.groups.all()["made_group"]
    assert (changed.retry_max_times, changed.consume_broadcast_enable, changed.retry_queue_nums) == (3, False, 2)
    assert "TOOLS_CONSUMER" in admin.groups.all(cluster="DefaultCluster")
    admin.groups.delete("made_group")
    assert "made_group" not in admin.groups.all()
    with pytest.raises(ClientError, match="does not exist") as raised:
        admin.groups.update("made_group", retry_max_times=1)
    assert raised.value.response_code == 26
    with pytest.raises(ArgumentError, match="retry_max_times"):
        admin.create_group("made_group", retries=3)


def test_the_progress_of_a_group_is_that_on_all_brokers(
    admin: Admin, producer: Producer, cluster: EmbeddedCluster
) -> None:
    fill(admin, producer, "progress", "a", "b", "c")
    with online(cluster.name_server, "p1", "progressing", [wants("progress", "*")]):
        admin.offsets.reset("progressing", queue("progress"), 2, force=True)
        admin.offsets.reset("progressing", queue("progress", broker_name="broker-b"), 0, force=True)
        stats = admin.groups.progress("progressing")
        rows = [(row.topic, row.broker_name, row.broker_offset, row.consumer_offset, row.diff) for row in stats]
        assert rows == [("progress", "broker-a", 3, 2, 1), ("progress", "broker-b", 0, 0, 0)]
        assert (stats.diff_total, len(stats), stats[0].queue) == (1, 2, queue("progress"))
        assert stats[0].last_timestamp > 0
        assert stats.of_queue(queue("progress", 7)) is None
        assert list(admin.groups.progress("progressing", "progress")) == list(stats)
    with pytest.raises(ResponseError, match="No topic route info"):
        admin.groups.progress("nobody")
    with online(cluster.name_server, "p2", "beginners", [wants("progress", "*")]):
        with pytest.raises(ClientError, match="has no offsets") as raised:
            admin.groups.progress("beginners")
        assert raised.value.response_code == 206
        assert admin.groups.progress("beginners", "progress").diff_total == 3


def test_who_is_connected_is_told_and_what_each_says_of_itself(admin: Admin, cluster: EmbeddedCluster) -> None:
    admin.create_topic("connected", queues=1)
    held = [queue("connected")]
    with online(cluster.name_server, "c1", "connecting", [wants("connected", "A", 7)], held) as client_id:
        known = admin.groups.connections("connecting")
        assert known.client_ids == [client_id] == ["10.0.0.1@c1"]
        assert (known.consume_type, known.message_model) == ("CONSUME_PASSIVELY", "CLUSTERING")
        assert known.subscriptions["connected"].sub_string == "A"
        assert known.connections[0].version == 401
        info = admin.groups.running_info("connecting", client_id)
        assert list(info.queues) == held
        assert info.subscriptions["connected"].sub_version == 7
        with pytest.raises(ResponseError, match="not online"):
            admin.groups.running_info("connecting", "10.0.0.1@other")
    with pytest.raises(ResponseError, match="not online") as raised:
        admin.groups.connections("connecting")
    assert raised.value.code == 206


def test_the_producers_of_a_topic_are_told(admin: Admin, producer: Producer, cluster: EmbeddedCluster) -> None:
    fill(admin, producer, "produced", "a")
    config = ClientConfig(name_server=cluster.name_server, instance_name="p", client_ip="10.0.0.1")
    instance = ClientInstance.of(config, config.client_id())
    instance.register_producer("makers", FakeProducer("produced"))
    instance.start()
    instance.update_route("produced")
    assert instance.send_heartbeats()
    assert [known.client_id for known in admin.groups.producer_connections("makers", "produced")] == [
        instance.client_id
    ]
    instance.unregister_producer("makers")
    instance.release()
    with pytest.raises(ResponseError, match="not exist"):
        admin.groups.producer_connections("nobody", "produced")


def test_a_message_is_found_by_both_ids_by_its_key_and_by_its_place(admin: Admin, producer: Producer) -> None:
    ids = fill(admin, producer, "found", "a", "b")
    message = admin.view_message(ids[1])
    assert (message.body, message.queue, message.queue_offset) == (b"b", queue("found"), 1)
    assert admin.view_message(message.msg_id, "found") == message
    assert admin.messages.by_unique_key("found", message.msg_id) == message
    assert admin.messages.by_key("found", "kb") == [message]
    assert admin.messages.by_key("found", "k") == []
    assert admin.messages.by_key("found", "kb", end_timestamp=1) == []
    assert admin.messages.by_offset(queue("found"), 1) == message


def test_a_message_that_is_not_there_is_an_error_that_says_so(admin: Admin, producer: Producer) -> None:
    (found,) = fill(admin, producer, "absent", "a")
    with pytest.raises(UnknownMessageError, match="can not find message by the offset"):
        admin.view_message(found[:-8] + "0FFFFFFF")
    with pytest.raises(UnknownMessageError, match="has the id"):
        admin.messages.by_unique_key("absent", "7F0000010000000000000000000000AA")
    for offset in (1, 9):
        with pytest.raises(UnknownMessageError, match=f"no message at offset {offset}: OFFSET_OVERFLOW"):
            admin.messages.by_offset(queue("absent"), offset)
    with pytest.raises(ResponseError, match="is illegal"):
        admin.messages.by_offset(queue("absent", 5), 0)
    with pytest.raises(ClientError, match="broker-x"):
        admin.messages.by_offset(queue("absent", broker_name="broker-x"), 0)
    with pytest.raises(ArgumentError, match="32 or 56 hexadecimal digits"):
        admin.view_message("no id")


def test_offsets_are_set_back_and_forth_while_nobody_is_online(
    admin: Admin, producer: Producer, cluster: EmbeddedCluster
) -> None:
    fill(admin, producer, "reset", "a", "b", "c")
    first, other = queue("reset"), queue("reset", broker_name="broker-b")
    with online(cluster.name_server, "r1", "resetting", [wants("reset", "*")]):
        admin.offsets.reset("resetting", first, 2, force=True)
        admin.offsets.reset("resetting", other, 0, force=True)
        with pytest.raises(ClientError, match=r"members online.*10\.0\.0\.1@r1"):
            admin.offsets.reset("resetting", first, 1)
    admin.offsets.reset("resetting", first, 1)
    assert admin.groups.progress("resetting")[0].consumer_offset == 1
    assert admin.offsets.reset_to_end("resetting", "reset") == {first: 3, other: 0}
    assert admin.groups.progress("resetting").diff_total == 0
    assert admin.offsets.reset_to_begin("resetting", "reset") == {first: 0, other: 0}
    assert admin.offsets.reset_to_end("resetting", "reset")[first] == 3
    later = datetime(2100, 1, 1, tzinfo=UTC)
    assert admin.offsets.reset_by_time("resetting", "reset", later)[first] == 2  # as 4.9.4: the last message
    assert admin.offsets.reset_by_time("resetting", "reset", -1, force=False) == {other: 0}  # never forward
    assert admin.groups.progress("resetting")[0].consumer_offset == 2
    with pytest.raises(ArgumentError, match="with a zone"):
        admin.offsets.reset_by_time("resetting", "reset", datetime(2100, 1, 1))  # noqa: DTZ001
    with pytest.raises(ArgumentError, match="0 or more"):
        admin.offsets.reset("resetting", first, -1)


def test_members_that_are_online_are_told_of_a_reset(
    admin: Admin, producer: Producer, cluster: EmbeddedCluster
) -> None:
    fill(admin, producer, "told", "a", "b")
    with online(cluster.name_server, "t1", "tellers", [wants("told", "*")]):
        for broker_name in BROKERS:
            admin.offsets.reset("tellers", queue("told", broker_name=broker_name), 0, force=True)
        assert admin.offsets.reset_to_end("tellers", "told")[queue("told")] == 2


def test_a_group_goes_on_where_another_one_is(admin: Admin, producer: Producer, cluster: EmbeddedCluster) -> None:
    fill(admin, producer, "cloned", "a", "b", "c")
    with online(cluster.name_server, "s1", "original", [wants("cloned", "*")]):
        admin.offsets.reset("original", queue("cloned"), 2, force=True)
        assert admin.offsets.clone("original", "copy", "cloned")[queue("cloned")] == 2
    assert admin.groups.progress("copy", "cloned")[0].consumer_offset == 2


def test_an_admin_is_started_once_and_shut_down_as_often_as_one_likes(cluster: EmbeddedCluster, face: str) -> None:
    with made(face, cluster.name_server) as admin:
        with pytest.raises(ClientError, match="not started"):
            admin.topics.all()
        with admin:
            assert admin.topics.all()
            with pytest.raises(ClientError, match="was started before"):
                admin.start()
        admin.shutdown()
        with pytest.raises(ClientError, match="shut down"):
            admin.topics.all()


def test_without_a_name_server_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch, face: str) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    with made(face) as admin, pytest.raises(ClientError, match="NAMESRV_ADDR") as raised:
        admin.start()
    assert raised.value.response_code == 10004


def test_a_reset_and_a_copy_of_offsets_are_shown_before(admin: Admin, producer: Producer) -> None:
    admin.create_topic("previewed", queues=2)
    queues = [MessageQueue("previewed", name, number) for name in ("broker-a", "broker-b") for number in range(2)]
    for queue in queues[:3]:
        for _ in range(4):
            producer.send(Message("previewed", b"x"), queue)
    offsets = dict(zip(queues, (1, 4, 3, 0), strict=True))
    for queue, offset in offsets.items():
        admin.offsets.reset("previewers", queue, offset)
    for when in (0, -1):
        changes = admin.offsets.preview("previewers", "previewed", when)
        told = {each.queue: (each.before, each.after) for each in changes}
        assert {queue: before for queue, (before, _) in told.items()} == offsets
        assert sum(each.again for each in changes) == (8 if when == 0 else 0)
        assert sum(each.skipped for each in changes) == (0 if when == 0 else 4)
        if when == -1:
            assert sum(each.behind for each in changes) == 4
        done = admin.offsets.reset_by_time("previewers", "previewed", when)
        assert done == {queue: after for queue, (_, after) in told.items()}
        for queue, offset in offsets.items():
            admin.offsets.reset("previewers", queue, offset)
    copies = admin.offsets.preview_clone("previewers", "previewed_too", "previewed")
    assert {each.queue: each.after for each in copies} == offsets
    assert all(each.before in {None, 0} for each in copies)
    assert admin.offsets.clone("previewers", "previewed_too", "previewed") == offsets


def test_producers_of_all_brokers_are_listed_once(admin: Admin, cluster: EmbeddedCluster) -> None:
    admin.create_topic("listed", queues=1)
    with Producer("listed_shop", name_server=cluster.name_server) as other:
        for name in ("broker-a", "broker-b"):
            other.send(Message("listed", b"x"), MessageQueue("listed", name, 0))
        until(lambda: "listed_shop" in admin.groups.producers())
        (connection,) = admin.groups.producers()["listed_shop"]
    assert connection.client_addr.startswith("127.0.0.1")
    assert connection.language
