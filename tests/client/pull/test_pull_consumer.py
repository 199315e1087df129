"""Pulling by hand, against a broker in this process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias, TypeVar

import pytest

from rmqfast import EmbeddedCluster, Message, MessageQueue
from rmqfast.client.consumer import FilterContext
from rmqfast.client.consumer.strategies import AllocateMessageQueueByConfig
from rmqfast.client.instance import ClientConfig
from rmqfast.client.producer import Producer
from rmqfast.client.pull import MessageSelector, PullConsumer, PullOptions, PullResult, PullStatus
from rmqfast.client.pull.pull_consumer import PullMember
from rmqfast.errors import ArgumentError, ClientError, ResponseError, RmqError
from tests.client.awaited import Face
from tests.client.consumer.watching import Watcher
from tests.client.forks import refused_in_a_fork
from tests.waiting import PATIENCE, until

from .filled import bodies, fill, fresh, send
from .waiters import behind_a_wait, check_ends_by_ctrl_c

T = TypeVar("T")
#: Makes a consumer.
Make: TypeAlias = type[PullConsumer]


@pytest.fixture(scope="module")
def make(face: Face) -> Make:
    """What makes a consumer."""
    return face(PullConsumer)


@pytest.fixture(scope="module")
def cluster(make: Make) -> Iterator[EmbeddedCluster]:
    del make  # each has a cluster of its own, in which no group is there yet
    with EmbeddedCluster(config={"enablePropertyFilter": "true", "messageDelayLevel": "0s 0s 0s 0s 0s"}) as running:
        yield running


@pytest.fixture
def consumer(make: Make, cluster: EmbeddedCluster) -> Iterator[PullConsumer]:
    config = ClientConfig(name_server=cluster.name_server, heartbeat_interval=0.2, persist_offset_interval=0.2)
    with make(fresh("pg"), config=config) as running:
        yield running


@pytest.fixture
def blocking(rmqfast_cluster: EmbeddedCluster) -> Iterator[PullConsumer]:
    """For what asyncio has not: signals, forks, and what instances ask."""
    with PullConsumer("blocks", name_server=rmqfast_cluster.name_server) as running:
        yield running


def unless_refused(ask: Callable[[], T]) -> T | None:
    """The answer; nothing where there is none yet."""
    try:
        return ask()
    except (ClientError, ResponseError):
        return None


def told(result: PullResult) -> tuple[str, int, int, int, list[str]]:
    bounds = result.next_begin_offset, result.min_offset, result.max_offset
    return str(result.status), *bounds, bodies(result.messages)


def test_what_a_pull_brings_is_said_by_its_status(cluster: EmbeddedCluster, consumer: PullConsumer) -> None:
    queue = fill(cluster, fresh("said"), 10)[0]
    assert told(consumer.pull(queue, "*", 0, 32)) == ("FOUND", 5, 0, 5, ["p0", "p2", "p4", "p6", "p8"])
    assert told(consumer.pull(queue, "*", 1, 2)) == ("FOUND", 3, 0, 5, ["p2", "p4"])
    assert told(consumer.pull(queue, "*", 5, 32)) == ("NO_NEW_MSG", 5, 0, 5, [])
    assert told(consumer.pull(queue, "*", 7, 32)) == ("OFFSET_ILLEGAL", 5, 0, 5, [])
    assert told(consumer.pull(queue, "t2 || t4", 0, 32)) == ("FOUND", 5, 0, 5, ["p2", "p4"])
    assert told(consumer.pull(queue, MessageSelector.by_tag("t1"), 0, 32)) == ("FOUND", 5, 0, 5, ["p6"])
    assert told(consumer.pull(queue, "none", 0, 32)) == ("NO_MATCHED_MSG", 5, 0, 5, [])
    assert told(consumer.pull(queue, " ", 0, 32)) == ("NO_MATCHED_MSG", 5, 0, 5, [])
    found = consumer.pull(queue, None, 0, 2)
    assert found.size == sum(message.store_size for message in found.messages)
    message = found.messages[0]
    assert (message.queue, message.queue_offset, message.property("n")) == (queue, 0, "0")
    assert (message.min_offset, message.max_offset, message.property("MAX_OFFSET")) == (0, 5, "5")


def test_sql92_is_pulled_once_the_brokers_release_is_known(cluster: EmbeddedCluster, consumer: PullConsumer) -> None:
    queue = fill(cluster, fresh("sql"), 10)[0]
    wanted = MessageSelector.by_sql("n > 3")
    with pytest.raises(ClientError, match=r"The broker\[broker-a, 0\] does not upgrade to support .* by SQL92"):
        consumer.pull(queue, wanted, 0, 32)
    # the route that the pull has loaded has heartbeats go out
    until(lambda: unless_refused(lambda: consumer.pull(queue, wanted, 0, 32)))
    assert told(consumer.pull(queue, wanted, 0, 32)) == ("FOUND", 5, 0, 5, ["p4", "p6", "p8"])


def test_tags_of_one_hash_are_told_apart_by_the_client(cluster: EmbeddedCluster, consumer: PullConsumer) -> None:
    topic = fresh("hash")
    queue = fill(cluster, topic, 0)[0]
    with Producer("hashes", name_server=cluster.name_server) as producer:
        for tag in ("Aa", "BB", "Aa"):
            producer.send(Message(topic, tag.encode(), tags=tag), queue)
    assert told(consumer.pull(queue, "BB", 0, 32)) == ("FOUND", 3, 0, 3, ["BB"])
    assert told(consumer.pull(queue, "BB", 2, 32)) == ("FOUND", 3, 0, 3, [])


def test_a_pull_that_blocks_ends_with_the_message_that_comes(
    make: Make, cluster: EmbeddedCluster, consumer: PullConsumer
) -> None:
    topic = fresh("blocked")
    queues = fill(cluster, topic, 10)
    consumer.pull(queues[0], "*", 0, 1)
    with (
        Producer("later", name_server=cluster.name_server) as producer,
        behind_a_wait(lambda: send(producer, topic, queues, [10]), "request" if make is PullConsumer else "wait"),
    ):
        assert told(consumer.pull_block_if_not_found(queues[0], "*", 5, 32)) == ("FOUND", 6, 0, 6, ["p10"])


@pytest.mark.long
def test_a_pull_that_blocks_ends_when_the_broker_has_waited(cluster: EmbeddedCluster, make: Make) -> None:
    queue = fill(cluster, fresh("waited"), 2)[0]
    options = PullOptions(broker_suspend=0.1)
    with make(fresh("pg"), name_server=cluster.name_server, options=options) as consumer:
        # brokers look every five seconds
        assert told(consumer.pull_block_if_not_found(queue, "*", 1, 32)) == ("NO_NEW_MSG", 1, 0, 1, [])


def test_asynchronous_pulls_are_told_to_a_callback_or_a_future(
    cluster: EmbeddedCluster, consumer: PullConsumer
) -> None:
    topic = fresh("async")
    queues = fill(cluster, topic, 10)
    assert told(consumer.pull_async(queues[0], "*", 3, 32).result(PATIENCE)) == ("FOUND", 5, 0, 5, ["p6", "p8"])
    ends: list[PullResult | RmqError] = []
    consumer.pull_async(queues[1], "*", 5, 32, ends.append)
    until(lambda: ends)
    assert isinstance(ends[0], PullResult)
    assert ends[0].status is PullStatus.NO_NEW_MSG
    blocked = consumer.pull_block_if_not_found_async(queues[1], "*", 5, 32)
    assert not blocked.done()
    with Producer("later", name_server=cluster.name_server) as producer:
        send(producer, topic, queues, [11])
    assert told(blocked.result(PATIENCE)) == ("FOUND", 6, 0, 6, ["p11"])
    nowhere = MessageQueue(topic, queues[0].broker_name, 99)
    with pytest.raises(ResponseError, match=r"queueId\[99\] is illegal.* BROKER: 127\.0\.0\.1:"):
        consumer.pull_async(nowhere, "*", 0, 32).result(PATIENCE)
    assert len(ends) == 1, "it has not ended once more"


def test_what_is_wrong_with_a_pull_is_said_in_javas_words(cluster: EmbeddedCluster, consumer: PullConsumer) -> None:
    queue = fill(cluster, fresh("wrong"), 2)[0]
    for arguments, text in [
        ((None, "*", 0, 1), "^mq is null$"),
        ((queue, "*", -1, 1), "^offset < 0"),
        ((queue, "*", 0, 0), "^maxNums <= 0$"),
        ((queue, "||", 0, 1), "^parse subscription error"),
    ]:
        with pytest.raises(ClientError, match=text):
            consumer.pull(*arguments)  # type: ignore[arg-type]
    nowhere = MessageQueue(queue.topic, "none", 0)
    with pytest.raises(ClientError, match=rf"^The broker\[none\] not exist\n.* topic {queue.topic}:") as unknown:
        consumer.pull(nowhere, "*", 0, 1)
    assert unknown.value.response_code == 10003
    with pytest.raises(ResponseError, match=r"topic\[nowhere\] not exist, apply first please!"):
        consumer.pull(MessageQueue("nowhere", queue.broker_name, 0), "*", 0, 1)
    with pytest.raises(ClientError, match=r"^Can not find Message Queue for this topic, nowhere"):
        consumer.fetch_subscribe_message_queues("nowhere")
    with pytest.raises(ClientError, match="maybe started once, RUNNING"):
        consumer.start()
    with pytest.raises(ArgumentError, match="topic is null"):
        consumer.fetch_message_queues_in_balance(None)  # type: ignore[arg-type]


def test_a_consumer_that_does_not_run_says_so(cluster: EmbeddedCluster, make: Make) -> None:
    consumer = make("idle", name_server=cluster.name_server)
    queue = MessageQueue("t", "b", 0)
    for call in (
        lambda: consumer.pull(queue, "*", 0, 1),
        lambda: consumer.fetch_subscribe_message_queues("t"),
        lambda: consumer.fetch_consume_offset(queue, True),
        lambda: consumer.max_offset(queue),
        lambda: consumer.offset_store,
    ):
        with pytest.raises(ClientError, match=r"^The consumer is not in running status, CREATE_JUST"):
            call()
    consumer.shutdown()
    with consumer:
        pass
    consumer.shutdown()
    with pytest.raises(ClientError, match="SHUTDOWN_ALREADY"):
        consumer.pull(queue, "*", 0, 1)
    with pytest.raises(ClientError, match="maybe started once, SHUTDOWN_ALREADY"):
        consumer.start()


def test_groups_and_options_are_checked(cluster: EmbeddedCluster, make: Make) -> None:
    for group, text in (("", "is blank"), ("DEFAULT_CONSUMER", "can not equal DEFAULT_CONSUMER"), ("a b", "illegal")):
        with pytest.raises(ClientError, match=text):
            make(group, name_server=cluster.name_server).start()
    with pytest.raises(ClientError, match="Long polling mode, the consumer consumerTimeoutMillisWhenSuspend must"):
        PullOptions(broker_suspend=5.0, suspend_timeout=4.0)
    for wrong in ({"message_model": "ALL"}, {"pull_timeout": 0}, {"max_reconsume_times": -2}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            PullOptions(**wrong)
    with (
        make("twice", name_server=cluster.name_server, instance_name="one"),
        pytest.raises(ClientError, match=r"The consumer group\[twice\] has been created before, specify another name"),
    ):
        make("twice", name_server=cluster.name_server, instance_name="one").start()


def test_no_name_server_and_a_wrong_one_are_one_clear_error(monkeypatch: pytest.MonkeyPatch, make: Make) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    with pytest.raises(ClientError, match=r"No name server address, please set it."):
        make("lost").start()
    with make("lost", name_server="127.0.0.1:1") as consumer:
        with pytest.raises(ClientError, match=r"connect to <127.0.0.1:1> failed"):
            consumer.fetch_subscribe_message_queues("t")
        with pytest.raises(ClientError, match=r"connect to <127.0.0.1:1> failed"):
            consumer.pull(MessageQueue("t", "b", 0), "*", 0, 1)


def test_bounds_and_times_of_queues_are_asked(cluster: EmbeddedCluster, consumer: PullConsumer) -> None:
    topic, began = fresh("bounds"), int(time.time() * 1000)
    fill(cluster, topic, 10)
    queues = consumer.fetch_subscribe_message_queues(topic)
    assert [queue.queue_id for queue in queues] == [0, 1]
    later = int(time.time() * 1000) + 3_600_000
    for queue in queues:
        assert (consumer.min_offset(queue), consumer.max_offset(queue)) == (0, 5)
        assert (consumer.search_offset(queue, 0), consumer.search_offset(queue, later)) == (0, 4)
        assert began <= consumer.earliest_store_time(queue) <= time.time() * 1000
    with pytest.raises(ClientError, match=r"The broker\[none\] not exist"):
        consumer.max_offset(MessageQueue(topic, "none", 0))


def test_offsets_are_read_from_memory_first_or_from_the_broker(
    cluster: EmbeddedCluster, consumer: PullConsumer
) -> None:
    queue = fill(cluster, fresh("offsets"), 10)[0]
    consumer.update_consume_offset(queue, 3)
    assert consumer.fetch_consume_offset(queue, from_store=False) == 3
    # a group on a young topic has offset 0, where the queue's head is in memory
    assert consumer.fetch_consume_offset(queue, from_store=True) == 0
    assert consumer.fetch_consume_offset(queue, from_store=False) == 0, "what the store says stands in memory, too"
    consumer.offset_store.update_to_broker(queue, 4, oneway=False)
    assert consumer.fetch_consume_offset(queue, from_store=True) == 4
    for offset in range(100):  # what is stored without an answer is read next
        consumer.update_consume_offset(queue, offset)
        consumer.offset_store.persist(queue)
        assert consumer.fetch_consume_offset(queue, from_store=True) == offset
    nowhere = MessageQueue(queue.topic, "none", 0)
    assert consumer.fetch_consume_offset(nowhere, from_store=True) == -2, "nobody can be asked"


def test_registered_topics_are_shared_out_and_offsets_of_others_forgotten(cluster: EmbeddedCluster, make: Make) -> None:
    topic = fresh("shared")
    queues = fill(cluster, topic, 8, queues=4)
    changes: list[tuple[str, int, list[MessageQueue]]] = []
    options = PullOptions(
        message_queue_listener=lambda name, all_queues, mine: changes.append((name, len(all_queues), sorted(mine)))
    )
    config = ClientConfig(
        name_server=cluster.name_server,
        heartbeat_interval=0.2,
        persist_offset_interval=0.1,
        poll_name_server_interval=0.2,
    )
    first, second = (make("sharing", config=config, options=options) for _ in range(2))
    for consumer in (first, second):
        consumer.register_topics = [topic]
    with first:
        until(lambda: first.fetch_message_queues_in_balance(topic) == queues)
        until(lambda: changes)
        assert changes == [(topic, 4, queues)]
        with pytest.raises(ClientError, match="before the start"):
            first.register_topics = []
        first.update_consume_offset(queues[3], 7)
        first.update_consume_offset(MessageQueue("other", queues[0].broker_name, 0), 7)
        until(lambda: not first.offset_store.clone("other"))
        assert first.offset_store.clone(topic)[queues[3]] == 7
        with second:
            until(lambda: len(second.fetch_message_queues_in_balance(topic)) == 2)
            until(lambda: len(first.fetch_message_queues_in_balance(topic)) == 2)
            assert sorted(
                [*first.fetch_message_queues_in_balance(topic), *second.fetch_message_queues_in_balance(topic)]
            ) == sorted(queues)
            # given up: stored, and forgotten here
            until(lambda: second.fetch_consume_offset(queues[3], from_store=True) == 7)
        until(lambda: first.fetch_message_queues_in_balance(topic) == queues)


def test_a_topic_that_is_pulled_takes_part_in_the_rebalance(cluster: EmbeddedCluster, make: Make) -> None:
    topic = fresh("automatic")
    queues = fill(cluster, topic, 8, queues=4)
    config = ClientConfig(name_server=cluster.name_server, rebalance_interval=0.2)
    options = PullOptions(strategy=AllocateMessageQueueByConfig(tuple(queues[:1])))
    with make(fresh("auto"), config=config, options=options) as consumer:
        assert consumer.fetch_message_queues_in_balance(topic) == []
        consumer.pull(queues[0], "t1", 0, 1)
        until(lambda: consumer.fetch_message_queues_in_balance(topic) == queues[:1])
        if make is PullConsumer:
            assert consumer.running_info()["subscriptionSet"] == [], "heartbeats say nothing of it"


def test_broadcasting_keeps_its_offsets_in_a_file_that_java_reads(
    cluster: EmbeddedCluster, tmp_path: Path, make: Make
) -> None:
    topic = fresh("news")
    queues = fill(cluster, topic, 4)
    config = ClientConfig(
        name_server=cluster.name_server, local_offset_dir=tmp_path, client_ip="10.0.0.1", rebalance_interval=0.1
    )
    options = PullOptions(message_model="BROADCASTING")
    consumer = make("casting", config=config, options=options)
    consumer.register_topics = [topic]
    with consumer:
        assert consumer.client_id == "10.0.0.1@DEFAULT@STREAM"
        until(lambda: consumer.fetch_message_queues_in_balance(topic) == queues)
        consumer.update_consume_offset(queues[1], 2)
    path = tmp_path / "10.0.0.1@DEFAULT@STREAM" / "casting" / "offsets.json"
    assert f'"topic":"{topic}"\n\t\t}}:2' in path.read_text()
    again = make("casting", config=config, options=options)
    with again:
        assert again.fetch_consume_offset(queues[1], from_store=False) == 2
        assert again.fetch_consume_offset(queues[0], from_store=True) == -1


def test_a_message_that_is_sent_back_comes_from_the_retry_topic(cluster: EmbeddedCluster, make: Make) -> None:
    queue = fill(cluster, fresh("back"), 4)[0]
    group = fresh("backing")
    with make(group, name_server=cluster.name_server) as consumer:
        first, second = consumer.pull(queue, "*", 0, 2).messages
        consumer.send_message_back(first, 1)
        retry = MessageQueue(f"%RETRY%{group}", queue.broker_name, 0)
        back = until(lambda: consumer.pull(retry, "*", 0, 1).messages)[0]
        assert (back.body, back.reconsume_times, back.property("RETRY_TOPIC")) == (first.body, 1, queue.topic)
        assert back.property("ORIGIN_MESSAGE_ID") == first.offset_msg_id, "a broker has no other"
        # no such broker: the message itself is sent to the retry topic
        consumer.send_message_back(second, 0, broker_name="none")
        sent = until(lambda: consumer.pull(retry, "*", 1, 1).messages)[0]
        assert (sent.body, sent.property("RETRY_TOPIC"), sent.property("n")) == (second.body, queue.topic, "2")
        assert (sent.property("ORIGIN_MESSAGE_ID"), sent.property("RECONSUME_TIME")) == (second.msg_id, "1")
        consumer.send_message_back(first, -1)
        dead = MessageQueue(f"%DLQ%{group}", queue.broker_name, 0)
        until(lambda: unless_refused(lambda: consumer.max_offset(dead)))
        assert bodies(consumer.pull(dead, "*", 0, 1).messages) == ["p0"]


def test_a_namespace_stands_before_topic_and_group_and_nobody_sees_it(cluster: EmbeddedCluster, make: Make) -> None:
    topic = fresh("spaced")
    fill(cluster, f"space%{topic}", 4)
    with make("spacers", name_server=cluster.name_server, namespace="space") as consumer:
        assert consumer.group == "space%spacers"
        queue = consumer.fetch_subscribe_message_queues(topic)[0]
        assert queue.topic == topic
        message = consumer.pull(queue, "*", 0, 1).messages[0]
        assert (message.topic, message.queue_id) == (topic, queue.queue_id)
        assert consumer.max_offset(message.queue) == 2, "which a message has with the namespace"
        assert consumer.max_offset(queue) == 2
        consumer.update_consume_offset(queue, 2)
        assert consumer.fetch_consume_offset(queue, from_store=False) == 2
        assert consumer.offset_store.clone(f"space%{topic}")


def test_administrators_see_what_it_is(blocking: PullConsumer) -> None:
    info = blocking.running_info()
    assert info["properties"]["consumerGroup"] == blocking.group
    assert json.dumps(info)


def test_administrators_cannot_have_it_consume_a_message() -> None:
    member = PullMember("group", ClientConfig(), PullOptions())
    with pytest.raises(ResponseError, match="not exist in this consumer"):
        member.consume_message_directly(None, None)


def test_a_fork_says_that_it_has_no_consumer(rmqfast_cluster: EmbeddedCluster, blocking: PullConsumer) -> None:
    queue = fill(rmqfast_cluster, fresh("forked"), 2)[0]
    blocking.pull(queue, "*", 0, 1)
    assert "fork of the process" in refused_in_a_fork(lambda: blocking.pull(queue, "*", 0, 1), blocking.shutdown)
    assert blocking.pull(queue, "*", 0, 1).messages, "the parent's goes on"


def test_ctrl_c_ends_a_pull_that_blocks(rmqfast_cluster: EmbeddedCluster, blocking: PullConsumer) -> None:
    queue = fill(rmqfast_cluster, fresh("interrupted"), 2)[0]
    blocking.pull(queue, "*", 0, 1)
    check_ends_by_ctrl_c(lambda: blocking.pull_block_if_not_found(queue, "*", 1, 1), within="request")


class LeavesOut:
    """Takes the first message of a pull out."""

    name = "leaves out"

    def filter(self, context: FilterContext) -> None:
        del context.messages[0]


def test_hooks_are_told_of_messages_that_are_pulled_and_filters_take_some_out(
    cluster: EmbeddedCluster, make: Make
) -> None:
    queue, watcher = fill(cluster, fresh("told"), 6)[0], Watcher()
    with make(fresh("pg"), name_server=cluster.name_server) as consumer:
        consumer.register_consume_hook(watcher)
        consumer.register_filter_hook(LeavesOut())
        assert bodies(consumer.pull(queue, "*", 0, 32).messages) == ["p2", "p4"]
        assert bodies(consumer.pull_async(queue, "*", 1, 32).result(PATIENCE).messages) == ["p4"]
        assert consumer.pull(queue, "*", 3, 32).status is PullStatus.NO_NEW_MSG
    times = [("before", None, False, None, None), ("after", "CONSUME_SUCCESS", True, None, None)]
    expected = [(*each, found) for found in ([b"p2", b"p4"], [b"p4"]) for each in times]
    assert watcher.seen == expected
    assert [context.queue for context in watcher.contexts] == [queue, queue]
