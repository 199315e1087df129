"""Pulling in the background, against a broker in this process."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest

from rmqfast import Admin, EmbeddedCluster, Message, MessageQueue
from rmqfast._native import MessageView
from rmqfast.broker import Broker, BrokerConfig
from rmqfast.client.instance import ClientConfig
from rmqfast.client.lite_pull import ConsumeFromWhere, LitePullConsumer, LitePullOptions, MessageSelector
from rmqfast.client.producer import Producer
from rmqfast.client.pulling import pulled_queues
from rmqfast.errors import ArgumentError, ClientError, UnknownColumnError
from rmqfast.nameserver import NameServer, NamesrvConfig
from tests.client.accounts import SECRET, guarded_cluster
from tests.client.awaited import Face
from tests.client.consumer.watching import Watcher
from tests.client.pull.filled import bodies, fill, fresh, send
from tests.client.pull.waiters import behind_a_wait
from tests.client.ranges.clusters import SMALL
from tests.waiting import PATIENCE, collect, until

#: Makes a consumer, of what consumers are made of.
Make: TypeAlias = type[LitePullConsumer]


@pytest.fixture(scope="module")
def make(face: Face) -> Make:
    """What makes a consumer."""
    return face(LitePullConsumer)


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config={"enablePropertyFilter": "true"}) as running:
        yield running


def made(
    make: Make, cluster: EmbeddedCluster, group: str | None = None, namespace: str = "", **options: Any
) -> LitePullConsumer:
    """A consumer whose heartbeats are soon, and that commits when it is told."""
    config = ClientConfig(
        name_server=cluster.name_server, heartbeat_interval=0.1, persist_offset_interval=0.2, rebalance_interval=0.5
    )
    given = {"auto_commit": False, "pull_batch_size": 32, **options}
    name = fresh("lg") if group is None else group
    return make(name, config=config, namespace=namespace, options=LitePullOptions(**given))


def polled(consumer: LitePullConsumer, count: int) -> list[str]:
    """What so many messages say, and all that came with the last of them."""
    return collect(lambda: bodies(consumer.poll(1.0)), count)


def stored(cluster: EmbeddedCluster, consumer: LitePullConsumer, queue: MessageQueue) -> int:
    """The offset that the broker has; 0 where it has none."""
    return max(cluster.brokers[0].state.offsets.offset(consumer.group, queue.topic, queue.queue_id), 0)


def all_of(count: int) -> list[str]:
    return sorted(f"p{number}" for number in range(count))


def test_the_quick_start_polls_and_commits(make: Make, cluster: EmbeddedCluster) -> None:
    topic = fresh("quick")
    queues = fill(cluster, topic, 100, queues=4)
    consumer = made(make, cluster, pull_batch_size=50)
    consumer.subscribe(topic, "*")
    with consumer:
        batches: list[list[MessageView]] = []
        while sum(map(len, batches)) < 100:
            batches.append(consumer.poll(PATIENCE))
        assert all(len(batch) <= 32 for batch in batches), "as many as a broker gives at once"
        assert all(len({message.queue_id for message in batch}) == 1 for batch in batches), "of one queue each"
        for queue in queues:
            offsets = [m.queue_offset for batch in batches for m in batch if m.queue_id == queue.queue_id]
            assert offsets == list(range(25)), "in their order"
        assert {consumer.committed(queue) for queue in queues} == {0}, "polled is not committed"
        consumer.commit_sync()
        assert {consumer.committed(queue) for queue in queues} == {25}
        until(lambda: {stored(cluster, consumer, queue) for queue in queues} == {25})
        assert consumer.poll(0.0) == []
    again = made(make, cluster, consumer.group)
    again.subscribe(topic, "*")
    with Producer("more", name_server=cluster.name_server) as producer:
        send(producer, topic, queues, range(100, 104))
    with again:
        assert sorted(polled(again, 4)) == ["p100", "p101", "p102", "p103"]


def test_an_account_signs_what_is_pulled_in_the_background(tmp_path: Path) -> None:
    with guarded_cluster(tmp_path, consumer1="PUB|SUB") as cluster:
        account = ClientConfig(name_server=cluster.name_server, access_key="consumer1", secret_key=SECRET)
        with Producer("signed", config=account) as producer:
            queue = producer.send(Message("signed", b"x")).queue
        with LitePullConsumer("signs", config=account) as consumer:
            consumer.assign([queue])
            consumer.seek_to_begin(queue)
            assert polled(consumer, 1) == ["x"]


def test_iteration_commits_a_batch_with_the_next_one_so_that_the_last_one_comes_once_more(
    cluster: EmbeddedCluster,
) -> None:
    topic = fresh("iterated")
    (queue,) = fill(cluster, topic, 40, queues=1)
    first = made(LitePullConsumer, cluster, auto_commit=True)
    first.subscribe(topic)
    found = []
    with first:
        for message in first:
            found.append(message.queue_offset)
            first._next_commit = 0.0  # noqa: SLF001 - the interval is over: options allow no less than a second
            if message.queue_offset == 35:
                assert first.committed(queue) == 32
            if len(found) == 40:
                first.shutdown()
    assert found == list(range(40))
    second = made(LitePullConsumer, cluster, first.group)
    second.subscribe(topic)
    with second:
        assert polled(second, 8) == [f"p{n}" for n in range(32, 40)]


def test_a_seek_throws_away_what_waits_and_goes_on_there(make: Make, cluster: EmbeddedCluster) -> None:
    topic = fresh("sought")
    queue = fill(cluster, topic, 100, queues=1)[0]
    consumer = made(make, cluster, pull_batch_size=10)
    consumer.assign([queue])
    with consumer:
        consumer.seek_to_begin(queue)
        assert consumer.poll(PATIENCE)[0].queue_offset == 0
        until(lambda: consumer.backlog == 90)
        consumer.seek(queue, 95)
        assert bodies(consumer.poll(PATIENCE)) == ["p95", "p96", "p97", "p98", "p99"]
        consumer.seek(queue, 50)
        consumer.commit_sync()
        assert consumer.committed(queue) == 50
        assert consumer.poll(PATIENCE)[0].queue_offset == 50
        consumer.seek_to_end(queue)
        with Producer("more", name_server=cluster.name_server) as producer:
            send(producer, topic, [queue], [100])
        assert bodies(consumer.poll(PATIENCE)) == ["p100"]
        consumer.seek_to_time(queue, 0)
        assert consumer.poll(PATIENCE)[0].queue_offset == 0
        for offset in (-1, 102):
            text = f"Seek offset illegal, seek offset = {offset}, min offset = 0, max offset = 101"
            with pytest.raises(ClientError, match=text):
                consumer.seek(queue, offset)
        other = MessageQueue(topic, queue.broker_name, 7)
        with pytest.raises(ClientError, match="not in assigned list, message queue"):
            consumer.seek(other, 0)
    subscribed = made(make, cluster)
    subscribed.subscribe("elsewhere")
    with subscribed, pytest.raises(ClientError, match="not in assigned list, may be rebalancing"):
        subscribed.seek(queue, 0)


def test_a_paused_queue_gives_what_waits_and_nothing_new(make: Make, cluster: EmbeddedCluster) -> None:
    topic = fresh("paused")
    queue, other = fill(cluster, topic, 20)
    nowhere = MessageQueue(topic, "none", 0)
    consumer = made(make, cluster)
    consumer.assign([queue, other])
    consumer.pause([queue, nowhere])
    with consumer, Producer("more", name_server=cluster.name_server) as producer:
        assert (consumer.is_paused(queue), consumer.is_paused(other), consumer.is_paused(nowhere)) == (
            True,
            False,
            True,
        )
        consumer.seek(queue, 2)
        odd = polled(consumer, 10)
        # what comes last was asked for when all of the paused queue would have been there
        send(producer, topic, [other], [21])
        odd += polled(consumer, 1)
        assert odd == [f"p{n}" for n in range(1, 23, 2)]
        consumer.resume([queue])
        until(lambda: consumer.backlog == 8)
        consumer.pause([queue])
        assert polled(consumer, 8) == [f"p{n}" for n in range(4, 20, 2)]


def test_sql92_is_evaluated_by_the_broker(make: Make, cluster: EmbeddedCluster) -> None:
    topic = fresh("sql")
    fill(cluster, topic, 20, queues=2)
    consumer = made(make, cluster)
    consumer.subscribe(topic, MessageSelector.by_sql("n BETWEEN 5 AND 8"))
    with consumer:
        assert sorted(polled(consumer, 4)) == ["p5", "p6", "p7", "p8"]
    wrong = made(make, cluster)
    wrong.subscribe(topic, MessageSelector.by_sql("n >"))
    with pytest.raises(ClientError, match="CODE: 23"), wrong:
        pass
    assert not wrong.is_running, "what was begun does not go on"


def test_a_subscription_may_come_and_go_while_it_runs(make: Make, cluster: EmbeddedCluster) -> None:
    one, two = fresh("one"), fresh("two")
    fill(cluster, one, 10)
    fill(cluster, two, 10)
    with made(make, cluster) as consumer:
        assert consumer.poll(0.0) == []
        consumer.subscribe(one)
        assert sorted(polled(consumer, 10)) == all_of(10)
        consumer.subscribe(two)
        assert sorted(polled(consumer, 10)) == all_of(10)
        consumer.unsubscribe(one)
        assert {queue.topic for queue in consumer.assignment} == {two}


def test_members_share_queues_and_lose_none_while_messages_wait(make: Make, cluster: EmbeddedCluster) -> None:
    topic = fresh("members")
    queues = fill(cluster, topic, 200, queues=4)
    changes: list[int] = []
    first = made(
        make, cluster, pull_batch_size=10, message_queue_listener=lambda _topic, _all, mine: changes.append(len(mine))
    )
    second = made(make, cluster, first.group, pull_batch_size=10)
    for consumer in (first, second):
        consumer.subscribe(topic)
    with first:
        polled_before = first.poll(PATIENCE)
        until(lambda: first.assignment == queues and first.backlog == 190)
        first.commit_sync()
        until(lambda: sum(stored(cluster, first, queue) or 0 for queue in queues) == 10)
        with second:
            until(lambda: len(first.assignment) == 2)
            kept = {queue.queue_id for queue in first.assignment}
            until(lambda: {queue.queue_id for queue in second.assignment} == set(range(4)) - kept)
            # what waited here of queues that are another's now is not given any more
            of_kept = 100 - sum(message.queue_id in kept for message in polled_before)
            mine = collect(lambda: first.poll(1.0), of_kept)
            assert {message.queue_id for message in mine} <= kept
            found = bodies(polled_before) + bodies(mine) + polled(second, 190 - of_kept)
            first.commit_sync()
            second.commit_sync()
        assert changes[:2] == [4, 2]
        assert sorted(found) == all_of(200), "none lost, none twice: what was polled was stored before the queues moved"
        until(lambda: len(first.assignment) == 4)
        with Producer("more", name_server=cluster.name_server) as producer:
            send(producer, topic, queues, range(200, 204))
        assert sorted(polled(first, 4)) == ["p200", "p201", "p202", "p203"]


def test_commit_of_some_queues_or_all_stores_them_if_asked(make: Make, cluster: EmbeddedCluster) -> None:
    topic = fresh("some")
    one, two = fill(cluster, topic, 20)
    config = ClientConfig(name_server=cluster.name_server, heartbeat_interval=0.1, persist_offset_interval=60.0)
    options = LitePullOptions(auto_commit=False, pull_batch_size=32)
    consumer = make(fresh("lg"), config=config, options=options)
    consumer.subscribe(topic)
    with consumer:
        assert len(polled(consumer, 20)) == 20
        consumer.commit([one, MessageQueue(topic, "none", 0)], persist=False)
        assert (consumer.committed(one), consumer.committed(two)) == (10, 0)
        consumer.commit()
        assert (consumer.committed(one), consumer.committed(two)) == (10, 10)
        assert stored(cluster, consumer, one) == 0
        consumer.commit([two], persist=True)
        until(lambda: stored(cluster, consumer, two) == 10)
        assert consumer.committed(one) == 10, "what is noted of other queues stays"
        consumer.commit([], persist=True)


def test_committed_says_where_a_broker_does_not_answer(make: Make) -> None:
    with EmbeddedCluster() as cluster:
        queue = fill(cluster, "t", 2)[0]
        with made(make, cluster) as consumer:
            consumer.assign([queue])
            assert consumer.max_offset(queue) == 1, "the broker is known"
            cluster.stop()
            consumer.offset_store.remove_offset(queue)
            with pytest.raises(ClientError, match=r"^the broker broker-a does not tell an offset"):
                consumer.committed(queue)


def test_listeners_are_told_when_a_topic_has_got_other_queues(make: Make, cluster: EmbeddedCluster) -> None:
    topic = fresh("grown")
    fill(cluster, topic, 0, queues=2)
    told: list[tuple[str, int]] = []
    consumer = made(make, cluster, topic_metadata_check_interval=0.1)
    consumer.register_topic_message_queue_change_listener(topic, lambda name, queues: told.append((name, len(queues))))
    with consumer:
        assert len(consumer.fetch_message_queues(topic)) == 2
        fill(cluster, topic, 0, queues=5)
        until(lambda: told)
        assert told == [(topic, 5)], "not of those that it had"
        with pytest.raises(ClientError, match="Topic or listener is null"):
            consumer.register_topic_message_queue_change_listener("", lambda *_: None)


def test_what_is_wrong_is_said_in_javas_words(make: Make, cluster: EmbeddedCluster) -> None:
    consumer = made(make, cluster)
    for call in (lambda: consumer.poll(1), lambda: consumer.committed(MessageQueue("t", "b", 0))):
        with pytest.raises(ClientError, match=r"^The consumer not running, please start it first\."):
            call()
    with pytest.raises(ClientError, match=r"^subscribe exception: Topic can not be null or empty\."):
        consumer.subscribe("")
    with pytest.raises(ClientError, match=r"^subscribe exception: subString split error"):
        consumer.subscribe("t", "||")
    with pytest.raises(ArgumentError, match=r"^Message queues can not be null or empty\."):
        consumer.assign([])
    consumer.subscribe("t")
    with pytest.raises(ClientError, match=r"^Subscribe and assign are mutually exclusive\."):
        consumer.assign([MessageQueue("t", "b", 0)])
    with consumer:
        with pytest.raises(ArgumentError, match=r"^timeout: expected seconds from 0 on"):
            consumer.poll(-1)
        with pytest.raises(ClientError, match="maybe started once, RUNNING"):
            consumer.start()
        with pytest.raises(ClientError, match=r"^Can not find Message Queue for this topic, nowhere"):
            consumer.fetch_message_queues("nowhere")
    assigned = made(make, cluster)
    assigned.assign([MessageQueue("t", "b", 0)])
    with pytest.raises(ClientError, match=r"^subscribe exception: Subscribe and assign are mutually exclusive\."):
        assigned.subscribe("t")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("auto_commit_interval", 0.5),
        ("pull_batch_size", 0),
        ("pull_threads", 0),
        ("pull_threshold_for_all", 0),
        ("pull_threshold_for_queue", 0),
        ("pull_threshold_size_for_queue", 0),
        ("consume_max_span", 0),
        ("poll_timeout", -1.0),
        ("topic_metadata_check_interval", 0.0),
        ("pull_time_delay_when_exception", -1.0),
        ("suspend_timeout", 0.0),
        ("pull_batch_size", "many"),
    ],
)
def test_options_out_of_range_are_refused(name: str, wrong: Any) -> None:
    with pytest.raises(ArgumentError, match=name):
        LitePullOptions(**{name: wrong})


def test_a_beginning_that_there_is_not_is_refused() -> None:
    with pytest.raises(ClientError, match="Invalid ConsumeFromWhere Value"):
        LitePullOptions(consume_from_where=ConsumeFromWhere.CONSUME_FROM_MIN_OFFSET)
    with pytest.raises(ArgumentError, match="consumeTimestamp is invalid"):
        LitePullOptions(consume_timestamp="yesterday")


def test_a_topic_that_is_not_there_yet_is_polled_once_it_is(make: Make, cluster: EmbeddedCluster) -> None:
    topic = fresh("unborn")
    config = ClientConfig(name_server=cluster.name_server, poll_name_server_interval=0.1, rebalance_interval=0.1)
    consumer = make(fresh("lg"), config=config, options=LitePullOptions(auto_commit=False))
    consumer.subscribe(topic)
    with consumer:
        assert consumer.poll(0.0) == []
        fill(cluster, topic, 2, queues=1)
        assert sorted(polled(consumer, 2)) == all_of(2)


def test_who_has_started_is_a_member_and_does_not_wait_for_a_heartbeat(make: Make, cluster: EmbeddedCluster) -> None:
    topic = fresh("joined")
    fill(cluster, topic, 2, queues=1)
    with make(fresh("lg"), name_server=cluster.name_server) as consumer:
        consumer.subscribe(topic)
        with Admin(name_server=cluster.name_server) as admin:
            assert len(admin.groups.connections(consumer.group).client_ids) == 1


def test_a_wrong_name_server_is_one_clear_error(make: Make) -> None:
    consumer = make("lost", name_server="127.0.0.1:1")
    consumer.subscribe("t")
    with pytest.raises(ClientError, match=r"connect to <127\.0\.0\.1:1> failed"):
        consumer.start()
    consumer.shutdown()


def test_a_namespace_stands_before_topic_and_group_and_nobody_sees_it(make: Make, cluster: EmbeddedCluster) -> None:
    topic = fresh("spaced")
    fill(cluster, f"space%{topic}", 4, queues=1)
    consumer = made(make, cluster, namespace="space")
    consumer.subscribe(topic)
    with consumer:
        messages = consumer.poll(PATIENCE)
        assert {message.topic for message in messages} == {topic}
        assert {queue.topic for queue in consumer.assignment} == {topic}
        consumer.commit_sync()
        (queue,) = consumer.assignment
        assert consumer.committed(queue) == 4
        consumer.seek_to_begin(queue)
        assert {row["topic"] for row in arrow_polled(consumer, 4)} == {topic}


def test_broadcasting_members_get_all_messages_each_and_keep_offsets_in_a_file(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    topic = fresh("news")
    queue = fill(cluster, topic, 10, queues=1)[0]
    options = LitePullOptions(
        message_model="BROADCASTING", consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, auto_commit=False
    )
    config = ClientConfig(
        name_server=cluster.name_server, local_offset_dir=tmp_path, client_ip="10.0.0.1", rebalance_interval=0.1
    )
    for name in ("one", "two"):
        consumer = LitePullConsumer("casting", config=config, instance_name=name, options=options)
        consumer.subscribe(topic)
        with consumer:
            assert sorted(polled(consumer, 10)) == all_of(10)
            consumer.commit_sync()
            assert consumer.committed(queue) == 10
        assert "}:10" in (tmp_path / f"10.0.0.1@{name}@STREAM" / "casting" / "offsets.json").read_text()


def test_threads_that_poll_get_each_message_once(make: Make, cluster: EmbeddedCluster) -> None:
    topic = fresh("threads")
    fill(cluster, topic, 300, queues=4)
    consumer = made(make, cluster, pull_batch_size=3)
    consumer.subscribe(topic)
    found: list[str] = []

    def poll() -> None:
        while len(found) < 300:
            found.extend(bodies(consumer.poll(0.1)))

    with consumer:
        threads = [threading.Thread(target=poll) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    assert sorted(found) == all_of(300)


def test_a_poll_that_waits_ends_with_the_consumer(cluster: EmbeddedCluster) -> None:
    consumer = made(LitePullConsumer, cluster)
    consumer.subscribe("t")
    consumer.start()
    with behind_a_wait(consumer.shutdown, within="take"):
        assert consumer.poll(3600.0) == []
    assert list(consumer) == []


def test_administrators_see_what_it_is(cluster: EmbeddedCluster) -> None:
    consumer = made(LitePullConsumer, cluster)
    consumer.subscribe("t", "A || B")
    with consumer:
        info = consumer.running_info()
        assert [each["subString"] for each in info["subscriptionSet"]] == ["A || B"]
        assert info["properties"]["pull_batch_size"] == "32"


SCRIPT = """
import sys
from rmqfast.client.lite_pull import LitePullConsumer
from tests.client.ranges.clusters import SMALL
from tests.client.pull.waiters import check_ends_by_ctrl_c
consumer = LitePullConsumer("interrupted", name_server=sys.argv[1])
consumer.subscribe(sys.argv[2])
consumer.start()
check_ends_by_ctrl_c(lambda: consumer.poll(3600.0), within="take")
"""


def test_ctrl_c_ends_a_poll_and_the_interpreter_ends_with_a_running_consumer(cluster: EmbeddedCluster) -> None:
    topic = fresh("interrupted")
    fill(cluster, topic, 0)
    command = [sys.executable, "-c", SCRIPT, cluster.name_server, topic]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def arrow_polled(consumer: LitePullConsumer, count: int, columns: list[str] | None = None) -> list[dict[str, Any]]:
    """So many rows."""

    def poll() -> list[dict[str, Any]]:
        batch = consumer.poll_arrow(1.0, columns)
        return [] if batch is None else pa.record_batch(batch).to_pylist()

    return collect(poll, count)


def test_poll_arrow_gives_the_rows_that_poll_gives(make: Make, cluster: EmbeddedCluster) -> None:
    topic = fresh("arrow")
    queues = fill(cluster, topic, 100, queues=4)
    consumer = made(make, cluster)
    consumer.subscribe(topic)
    with consumer:
        rows = arrow_polled(consumer, 100)
        assert consumer.poll_arrow(0.0) is None
        consumer.commit_sync()
        assert {consumer.committed(queue) for queue in queues} == {25}
        for queue in queues:
            consumer.seek_to_begin(queue)
        messages: list[MessageView] = []
        while len(messages) < 100:
            messages += consumer.poll(PATIENCE)
    assert sorted(row["body"] for row in rows) == sorted(message.body or b"" for message in messages)
    by_place = {(message.queue_id, message.queue_offset): message for message in messages}
    for row in rows:
        message = by_place[row["queue_id"], row["queue_offset"]]
        assert (row["msg_id"], row["tags"], row["topic"]) == (message.msg_id, message.tags, topic)
        assert (row["broker_name"], row["store_host"]) == (message.broker_name, message.store_host)


def test_poll_arrow_gives_the_columns_that_are_asked_for(make: Make, cluster: EmbeddedCluster) -> None:
    topic = fresh("columns")
    fill(cluster, topic, 20, queues=1)
    consumer = made(make, cluster)
    consumer.subscribe(topic, "t1 || t2")
    with consumer:
        with pytest.raises(UnknownColumnError):
            consumer.poll_arrow(0.0, ["nothing"])
        rows = arrow_polled(consumer, 8, ["queue_offset", "tags"])
        assert rows == [{"queue_offset": n, "tags": f"t{n % 5}"} for n in range(20) if n % 5 in {1, 2}]
        with pytest.raises(ArgumentError, match="timeout: expected seconds from 0 on"):
            consumer.poll_arrow(-1)


def test_what_does_not_fit_into_one_arrow_batch_comes_with_the_next(make: Make, cluster: EmbeddedCluster) -> None:
    topic = fresh("large")
    (queue,) = fill(cluster, topic, 0, queues=1)
    with Producer("large", name_server=cluster.name_server) as producer:
        for number in range(40):  # 4 MB of one byte are a few kB on their way
            producer.send(Message(topic, b"%c" % (65 + number % 26) * 4_000_000), queue)
    consumer = made(make, cluster)
    consumer.subscribe(topic)
    offsets: list[int] = []
    with consumer:
        until(lambda: consumer.backlog == 40)
        while len(offsets) < 40:
            batch = pa.record_batch(consumer.poll_arrow(PATIENCE, ["queue_offset", "body"]))
            offsets += batch.column("queue_offset").to_pylist()
            consumer.commit_sync()
            assert consumer.committed(queue) == offsets[-1] + 1, "no more is consumed than was returned"
    assert offsets == list(range(40))


def test_a_broker_that_comes_back_elsewhere_is_found_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulled_queues, "WITHOUT_BROKER", 0.05)
    with NameServer(NamesrvConfig(listen_port=0)) as name_server:
        anywhere = {"storePathRootDir": str(tmp_path), "namesrvAddr": name_server.address, "listenPort": "0"}
        config = BrokerConfig(SMALL | anywhere)
        with Broker(config) as first, Producer("filler", name_server=name_server.address) as producer:
            producer.create_topic("t", 2)
            queues = producer.fetch_publish_message_queues("t")
            send(producer, "t", queues, range(10))
            consumer = LitePullConsumer("follows", name_server=name_server.address)
            consumer.assign(queues)
            consumer.start()
            assert sorted(polled(consumer, 10)) == all_of(10)
        with Broker(config) as second, Producer("more", name_server=name_server.address) as producer:
            assert second.address != first.address
            send(producer, "t", queues, range(10, 14))
            assert sorted(polled(consumer, 4)) == ["p10", "p11", "p12", "p13"]
            consumer.shutdown()


@pytest.mark.parametrize("as_arrow", [False, True])
def test_hooks_are_told_of_messages_that_are_polled(make: Make, cluster: EmbeddedCluster, as_arrow: bool) -> None:
    topic, watcher = fresh("told"), Watcher()
    (queue,) = fill(cluster, topic, 5, queues=1)
    with made(make, cluster) as consumer:
        consumer.register_consume_hook(watcher)
        consumer.assign([queue])
        if as_arrow:
            assert pa.record_batch(consumer.poll_arrow(PATIENCE, ["queue_offset"])).num_rows == 5
        else:
            assert len(consumer.poll(PATIENCE)) == 5
    found = [b"p%d" % number for number in range(5)]
    assert watcher.seen == [
        ("before", None, False, None, None, found),
        ("after", "CONSUME_SUCCESS", True, None, None, found),
    ]
