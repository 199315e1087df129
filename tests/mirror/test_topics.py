"""Mirrors of some topics: what they refuse, and what they have, beside a cluster of this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqfast import Admin, EmbeddedCluster, Message, Mirror, MirrorOptions, Producer, open_store
from rmqfast._native import TopicRead, load_mark
from rmqfast.errors import ArgumentError, MirrorError
from rmqfast.mirror.copy_directory import of_topics
from rmqfast.remoting import RemotingClient, RequestCode
from rmqfast.store.config import ConsumerOffsetTable, DelayOffsetTable, SubscriptionGroupTable, TopicConfigTable
from tests.cli.command_line import run
from tests.disks import ROOMY
from tests.mirror.copies import rows_of
from tests.spark.in_process import topic_rows
from tests.waiting import until

TOPICS = ("bills", "clicks", "orders")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """Three topics whose messages stand one among the others; `bills` is at one of two brokers only."""
    small = ROOMY | {
        "mappedFileSizeCommitLog": str(1 << 20),
        "mappedFileSizeConsumeQueue": "20000",
        "maxHashSlotNum": "1000",
    }
    stores = tmp_path_factory.mktemp("stores")
    with EmbeddedCluster(stores, brokers=2, config=small | {"maxIndexNum": "4000"}) as running:
        with Admin(name_server=running.name_server) as admin:
            for topic in TOPICS:
                admin.create_topic(topic, queues=2, broker_names=["broker-a"] if topic == "bills" else None)
        with Producer("mirrored", name_server=running.name_server) as producer:
            for number in range(4500):
                body = f"{number} ".encode().ljust(100 + number * 37 % 700, b"x")
                producer.send(Message(TOPICS[number % 3], body, tags=f"t{number % 2}", keys=f"k{number}"))
        yield running


def mirrored(cluster: EmbeddedCluster, copies: Path, *topics: str, brokers: tuple[str, ...] = ()) -> None:
    """Mirrors what there is now.

    Raises:
        MirrorError: It cannot.
    """
    options = MirrorOptions(topics=topics)
    every = not brokers
    with Mirror(
        copies, name_server=cluster.name_server, brokers=brokers, all_brokers=every, options=options, once=True
    ) as mirror:
        until(lambda: mirror.wait(0.1))


def test_its_messages_are_those_of_the_broker_with_their_offsets(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    group = {"consumerGroup": "readers", "topic": "orders", "queueId": "1", "commitOffset": "77"}
    with RemotingClient(cluster.brokers[0].address) as client:
        for topic in ("orders", "clicks"):
            client.ask(RequestCode.UPDATE_CONSUMER_OFFSET, group | {"topic": topic})
    # the second time it goes on, and finds nothing
    for _ in range(2):
        mirrored(cluster, tmp_path, "orders", "bills")
        for broker in cluster.brokers:
            copy = tmp_path / broker.config.text("brokerName")
            store_path = Path(broker.config.text("storePathRootDir"))
            for topic in ("bills", "orders"):
                expected = rows_of(store_path, topic)
                assert rows_of(copy, topic) == expected
                assert expected or (topic, copy.name) == ("bills", "broker-b")
            with open_store(copy) as store:
                assert "clicks" not in store.topics()
                assert store.verify().ok
    copy = tmp_path / "broker-a"
    assert TopicConfigTable.load(copy).keys() == {"bills", "orders"}
    assert list(ConsumerOffsetTable.load(copy)) == [("orders", "readers")]
    assert not (copy / "config" / "subscriptionGroup.json").exists()


def test_a_copy_that_begins_later_has_the_offsets_of_its_master(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    options = MirrorOptions(topics=["orders"], start="latest")
    with Mirror(tmp_path, name_server=cluster.name_server, brokers=["broker-a"], options=options, once=True) as mirror:
        until(lambda: mirror.wait(0.1))
    store = Path(cluster.brokers[0].config.text("storePathRootDir"))
    begin = max(int(path.name) for path in (store / "commitlog").iterdir() if has_data(path))
    with open_store(store) as opened:
        places = opened.scan("orders", columns=["physical_offset", "queue_id", "queue_offset"]).to_arrow().to_pylist()
    wanted = {(row["queue_id"], row["queue_offset"]) for row in places if row["physical_offset"] >= begin}
    expected = [row for row in rows_of(store, "orders") if (row["queue_id"], row["queue_offset"]) in wanted]
    assert rows_of(tmp_path / "broker-a", "orders") == expected
    assert 0 < len(expected) < len(places)
    with open_store(tmp_path / "broker-a") as copy:
        assert copy.verify().ok


def has_data(path: Path) -> bool:
    """Whether a file of a log holds a record: the next one may be there before it is needed."""
    with path.open("rb") as log:
        return any(log.read(4))


def test_the_mark_follows_the_copy_while_it_grows(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    options = MirrorOptions(topics=["orders"])
    running = Mirror(tmp_path, name_server=cluster.name_server, brokers=["broker-a"], options=options)
    with running, Producer("mirrored", name_server=cluster.name_server) as producer:
        until(running.is_caught_up)
        position = running.status()[0].position

        def is_followed() -> bool:
            producer.send(Message("clicks", b"passed over"))
            mark = load_mark(str(tmp_path / "broker-a"))
            return mark is not None and mark[0] > position

        until(is_followed)


def test_a_copy_keeps_the_topics_that_it_began_with(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    def refused(*topics: str) -> str:
        with pytest.raises(MirrorError) as error:
            mirrored(cluster, tmp_path, *topics, brokers=("broker-a",))
        return str(error.value)

    mirrored(cluster, tmp_path, "orders", brokers=("broker-a",))
    text = refused("bills", "orders")
    assert "expected a mirror of bills, orders, got one of orders" in text
    assert "another directory" in text
    assert "expected a mirror of all topics, got one of orders" in refused()
    # the name alone does not decide
    (tmp_path / "broker-a" / "mirror.json").unlink()
    assert "expected a mirror of all topics, got one of some topics" in refused()
    (tmp_path / "broker-a" / "mirror-position.json").unlink()
    assert "expected a mirror of orders, got one of all topics" in refused("orders")
    whole = tmp_path / "whole"
    mirrored(cluster, whole, brokers=("broker-a",))
    with pytest.raises(MirrorError, match="expected a mirror of orders, got one of all topics"):
        mirrored(cluster, whole, "orders", brokers=("broker-a",))


def test_a_topic_that_no_broker_has_is_refused_unless_it_is_gone_since(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    with pytest.raises(MirrorError, match="no broker has the topic odrers\nrmqfast topic list"):
        mirrored(cluster, tmp_path, "odrers", "orders")
    assert not list(tmp_path.iterdir())
    with Admin(name_server=cluster.name_server) as admin:
        admin.create_topic("brief", queues=1)
        mirrored(cluster, tmp_path, "brief", "orders")
        admin.topics.delete("brief", cluster="DefaultCluster")
    mirrored(cluster, tmp_path, "brief", "orders")


def test_names_that_are_none_and_a_copy_that_is_cut_are_refused() -> None:
    assert MirrorOptions(topics=["b", "a", "b"]).topics == ("a", "b")
    with pytest.raises(ArgumentError, match="topics: expected a sequence of names, got the text 'orders'"):
        MirrorOptions(topics="orders")
    with pytest.raises(ArgumentError, match=r"topics: expected letters, digits, .* got 'a b'"):
        MirrorOptions(topics=["orders", "a b"])
    with pytest.raises(ArgumentError, match="expected stop or anew for a mirror of some topics, got withdraw"):
        MirrorOptions(topics=["orders"], if_broken="withdraw")
    for topics, more in (("orders,,bills", ""), ("", ""), ("orders", "withdraw")):
        words = ("--topics", topics, *(("--if-broken", more) if more else ()))
        done = run("mirror", "-n", "127.0.0.1:1", "copies", *words)
        assert done.exit_code == 2
        assert ("topics:" if not more else "if_broken:") in done.stderr


def test_delay_offsets_go_with_the_delay_topic_and_groups_never() -> None:
    delays, groups = DelayOffsetTable(), SubscriptionGroupTable()
    assert of_topics(delays, {"orders"}) is None
    assert of_topics(delays, {"orders", "SCHEDULE_TOPIC_XXXX"}) is delays
    assert of_topics(groups, {"orders"}) is None


def test_topics_are_read_out_of_copies_that_keep_them(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    def bodies(topic: str, **options: str) -> list[object]:
        read = TopicRead("topic batch", {"nameServer": cluster.name_server, "topic": topic} | options, ["body"])
        return sorted(row["body"] for row in topic_rows(read))

    mirrored(cluster, tmp_path, "orders")
    copies = {"via": "mirror", "mirrorPath": str(tmp_path)}
    assert bodies("orders", **copies) == bodies("orders")
    with pytest.raises(ArgumentError, match=r"expected a copy of clicks at .*, got one of orders; rmqfast mirror"):
        bodies("clicks", **copies)
