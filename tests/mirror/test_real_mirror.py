"""Copies of real brokers: what they have, what becomes of them, and whom they follow."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from rmqfast import Admin, Message, Mirror, MirrorOptions, Producer, SendStatus, open_store
from rmqfast.errors import MirrorError
from rmqfast.remoting import RemotingClient, RequestCode
from rmqfast.store.config import ConsumerOffsetTable, TopicConfigTable
from tests.interop.rocketmq import PATIENT, RocketMQ, java
from tests.mirror.copies import SMALL, assert_same, caught_up, ends_of, log_of, lose_tail, rows_of, send, units_of
from tests.mirror.kills import CopyProcess, kill, load
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


#: Tests that also run on each push: one of each kind, as each takes a quarter of a minute and more.
ON_PUSH = pytest.mark.parametrize("master", [pytest.param("4.9.4", marks=pytest.mark.real), "5.3.3"], indirect=True)


@pytest.fixture(params=["4.9.4", "5.3.3"])
def master(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RocketMQ]:
    with RocketMQ(request.param, tmp_path / "mq", *SMALL, *PATIENT, clean=False) as broker:
        broker.create_topic("orders", 4)
        yield broker


def has_listed(store: Path, topic: str, count: int) -> bool:
    """Whether the queues of a topic list as many messages."""
    return sum(ends_of(store, [topic]).get(topic, {}).values()) == count


def connections() -> str:
    """The connections of this machine, as `ss` lists them."""
    return subprocess.run(["ss", "-tn"], capture_output=True, text=True, check=True).stdout


def bodies(count: int, size: int = 500) -> list[bytes]:
    return [f"{number} ".encode().ljust(size, b"x") for number in range(count)]


@ON_PUSH
def test_a_mirror_has_log_queues_index_and_configuration_and_goes_on_where_it_was(
    master: RocketMQ, tmp_path: Path
) -> None:
    send(master.name_server, "orders", bodies(3000))
    copies = tmp_path / "copies"
    with Mirror(copies, name_server=master.name_server) as mirror:
        caught_up(mirror, master.store)
        send(master.name_server, "orders", bodies(500), DELAY="1")
        status = caught_up(mirror, master.store)
        # the master delivers delayed messages meanwhile
        until(lambda: mirror.status()[0].lag_bytes == 0)
    copy = status.directory
    assert (copy.name, status.withdrawn_bytes) == ("broker-a", 0)
    assert_same(master.store, copy)
    assert not (copy / "abort").exists()
    # half a mebibyte and more, while nobody copies
    send(master.name_server, "orders", bodies(1000))
    with Admin(name_server=master.name_server) as admin:
        admin.create_topic("later", queues=1)
        admin.create_group("readers")
    with RemotingClient(master.broker) as client:
        offset = {"consumerGroup": "readers", "topic": "orders", "queueId": "1", "commitOffset": "77"}
        client.ask(RequestCode.UPDATE_CONSUMER_OFFSET, offset)
    # those with a delay are in the log a second time then, and no more come
    until(lambda: sum(ends_of(master.store, ["orders"])["orders"].values()) == 4500)
    command = [sys.executable, "-m", "rmqfast", "mirror", "-n", master.name_server, str(copies), "--once", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    (told,) = json.loads(done.stdout)[-1:]
    assert (told["state"], told["lag_bytes"], told["note"]) == ("stopped", 0, "")
    assert_same(master.store, copy)
    assert {"orders", "later"} <= TopicConfigTable.load(copy).keys()
    assert ConsumerOffsetTable.load(copy).offset("orders", "readers", 1) == 77
    with open_store(copy) as store:
        assert store.verify().ok
        assert store.scan("orders").to_arrow().num_rows >= 4000
    # RocketMQ's own classes find it sound: it ends with an error where something leads astray
    java(master.version, "DumpStore", copy, "--start")


def test_a_new_copy_begins_where_it_is_told_to_and_has_the_offsets_of_its_master(
    master: RocketMQ, tmp_path: Path
) -> None:
    send(master.name_server, "orders", bodies(2000, size=700))
    with open_store(master.store) as store:
        table = store.scan(
            "orders", columns=["physical_offset", "store_timestamp", "queue_id", "queue_offset"]
        ).to_arrow()
    rows = sorted(tuple(row.values()) for row in table.to_pylist())
    files = [1 << 20, 2 << 20]
    first_of_second = next(stored for place, stored, *_ in rows if place >= files[0])
    after = first_of_second + timedelta(milliseconds=1)
    begins: list[tuple[MirrorOptions, int]] = [
        (MirrorOptions(start="latest"), rows[-1][0] // files[0] * files[0]),
        (MirrorOptions(start=files[0] + 5), files[0]),
        (MirrorOptions(start=after), files[0]),
        (MirrorOptions(start=datetime(2020, 1, 1, tzinfo=UTC)), 0),
    ]
    for number, (options, begin) in enumerate(begins):
        where = tmp_path / f"copies{number}"
        with Mirror(where, name_server=master.name_server, options=options, once=True) as mirror:
            until(lambda mirror=mirror: mirror.wait(0.1))  # type: ignore[misc]
        assert log_of(where / "broker-a")[0] == begin
        assert_same(master.store, where / "broker-a", queues=False)
        with open_store(where / "broker-a") as store:
            copied = store.scan("orders", columns=table.column_names).to_arrow()
            assert store.verify().ok
        assert sorted(tuple(row.values()) for row in copied.to_pylist()) == [row for row in rows if row[0] >= begin]


def test_what_comes_can_be_read_while_it_is_copied(master: RocketMQ, tmp_path: Path) -> None:
    send(master.name_server, "orders", bodies(10))
    with Mirror(tmp_path / "copies", name_server=master.name_server) as mirror:
        copy = caught_up(mirror, master.store).directory
        seen: list[bytes] = []

        def read() -> None:
            with open_store(copy) as store, store.tail("orders", columns=["body"], last=0) as messages:
                following.set()
                for batch in messages:
                    seen.extend(batch["body"].to_pylist())
                    if len(seen) >= 200:
                        return

        following = threading.Event()
        reader = threading.Thread(target=read)
        reader.start()
        assert following.wait(60)
        sent = [f"new {number}".encode() for number in range(200)]
        send(master.name_server, "orders", sent)
        reader.join(60)
    assert sorted(seen) == sorted(sent)


def test_the_queues_of_a_topic_that_was_deleted_and_made_again_are_those_of_the_master(
    master: RocketMQ, tmp_path: Path
) -> None:
    master.create_topic("gone", 1)
    for topic in ("orders", "gone"):
        send(master.name_server, topic, bodies(40))
        # what the broker lists later would make the queue anew
        until(partial(has_listed, master.store, topic, 40))
    with Admin(name_server=master.name_server) as admin:
        admin.topics.delete("orders", cluster="DefaultCluster")
        admin.topics.delete("gone", cluster="DefaultCluster")
    master.create_topic("orders", 2)
    send(master.name_server, "orders", [b"new"] * 7)
    with Mirror(tmp_path / "late", name_server=master.name_server) as late:
        copy = caught_up(late, master.store).directory
        # what got no message since goes with the configuration
        until(lambda: units_of(copy).keys() == units_of(master.store).keys())
        assert_same(master.store, copy)
        # and once more, beside a mirror
        with Admin(name_server=master.name_server) as admin:
            admin.topics.delete("orders", cluster="DefaultCluster")
        master.create_topic("orders", 2)
        send(master.name_server, "orders", [b"newer"] * 3)
        caught_up(late, master.store)
        until(lambda: units_of(copy).keys() == units_of(master.store).keys())
        assert_same(master.store, copy)
    with open_store(copy) as store:
        assert store.scan("orders").to_arrow()["body"].to_pylist() == [b"newer"] * 3


@ON_PUSH
def test_a_master_that_lost_its_tail_and_went_on_is_found_and_what_it_lost_is_withdrawn(
    master: RocketMQ, tmp_path: Path
) -> None:
    send(master.name_server, "orders", bodies(200))
    options = MirrorOptions(if_broken="withdraw")
    with Mirror(tmp_path / "copies", name_server=master.name_server, options=options) as mirror:
        position = caught_up(mirror, master.store).position
        master.kill9()
        end = lose_tail(master.store, 5)
        master.start()
        send(master.name_server, "orders", bodies(30, size=333))
        # as far as before, and the bytes of now
        until(lambda: mirror.status()[0].withdrawn_bytes == position - end, lambda: str(mirror.status()))
        status = caught_up(mirror, master.store)
    assert_same(master.store, status.directory)
    with open_store(status.directory) as store:
        assert store.verify().ok
        assert store.scan("orders").to_arrow().num_rows == 225


def test_without_leave_to_withdraw_it_stops_and_says_what_to_do_or_begins_anew(
    master: RocketMQ, tmp_path: Path
) -> None:
    send(master.name_server, "orders", bodies(200))
    copies = tmp_path / "copies"
    with Mirror(copies, name_server=master.name_server) as mirror:
        caught_up(mirror, master.store)
    whole = units_of(copies / "broker-a")
    master.kill9()
    end = lose_tail(master.store, 5)
    master.start()
    # it ends where the log does, so it would be done at once if it compared nothing
    for once in (False, True):
        with Mirror(copies, name_server=master.name_server, once=once) as mirror:
            error = until(lambda mirror=mirror: failure_of(mirror))  # type: ignore[misc]
            assert f"lost the end of its log, and goes on with other messages from {end} on" in error
            assert "--if-broken withdraw" in error
            assert mirror.status()[0].state == "failed"
    # what it has stays as it is
    assert units_of(copies / "broker-a") == whole
    options = MirrorOptions(if_broken="anew")
    # once begun anew, it goes on there
    for _ in range(2):
        with Mirror(copies, name_server=master.name_server, options=options) as mirror:
            until(lambda mirror=mirror: mirror.status()[0].directory.name == "broker-a.2")  # type: ignore[misc]
            caught_up(mirror, master.store)
    assert sorted(path.name for path in copies.iterdir()) == ["broker-a", "broker-a.2"]
    assert "orders" in TopicConfigTable.load(copies / "broker-a.2")
    # a broker leaves the units of what it lost behind the ends of its queues
    assert_same(master.store, copies / "broker-a.2", queues=False)
    with open_store(copies / "broker-a") as store:
        assert store.scan("orders").to_arrow().num_rows == 200


@pytest.mark.parametrize("topics", [(), ("orders",)], ids=["all", "some"])
def test_where_retention_overtook_it_a_mirror_says_so(
    master: RocketMQ, tmp_path: Path, topics: tuple[str, ...]
) -> None:
    send(master.name_server, "orders", bodies(500))
    copies, options = tmp_path / "copies", MirrorOptions(topics=topics)
    with Mirror(copies, name_server=master.name_server, options=options) as mirror:
        caught_up(mirror, master.store)
    send(master.name_server, "orders", bodies(3000, size=1000))
    master.kill9()
    for file in sorted((master.store / "commitlog").iterdir())[:2]:
        file.unlink()
    master.start()
    with Mirror(copies, name_server=master.name_server, options=options) as mirror:
        error = until(lambda: failure_of(mirror))
        assert "removed its log up to 2097152" in error
        assert "fileReservedTime" in error
    if topics:
        return
    options = MirrorOptions(if_broken="anew")
    with Mirror(copies, name_server=master.name_server, options=options) as mirror:
        until(lambda: mirror.status()[0].directory.name == "broker-a.2")
        caught_up(mirror, master.store)
    assert_same(master.store, copies / "broker-a.2", queues=False)


def test_a_sync_master_without_a_slave_is_refused_and_with_one_the_slave_is_followed(tmp_path: Path) -> None:
    sync = (*SMALL, *PATIENT, "brokerRole=SYNC_MASTER", "slaveTimeout=3000")
    with RocketMQ("4.9.4", tmp_path / "master", *sync, clean=False) as master:
        master.create_topic("orders", 4)
        with Mirror(tmp_path / "refused", name_server=master.name_server) as mirror:
            error = until(lambda: failure_of(mirror))
            assert "each send would wait for slaveTimeout, 3000 ms" in error
            assert "--let-sends-time-out" in error
        own = ("brokerName=broker-a", "brokerId=1", "brokerRole=SLAVE", *SMALL, *PATIENT)
        slave = RocketMQ("4.9.4", tmp_path / "slave", *own, beside=master, clean=False)
        with slave:
            send(master.name_server, "orders", bodies(300))
            with Mirror(tmp_path / "copies", name_server=master.name_server) as mirror:
                status = caught_up(mirror, master.store)
                assert status.source.endswith(f":{slave.broker_port + 1}")
                slave.kill9()
                until(lambda: mirror.status()[0].state == "waiting")
                # nobody is connected to the master, once it has noticed that the slave is gone
                until(lambda: f":{master.broker_port + 1} " not in connections(), connections)
                slave.start()
                send(master.name_server, "orders", bodies(10))
                caught_up(mirror, master.store)
        assert_same(master.store, status.directory)


def test_a_sync_master_without_a_slave_is_followed_where_its_sends_may_time_out(tmp_path: Path) -> None:
    sync = (*SMALL, *PATIENT, "brokerRole=SYNC_MASTER", "slaveTimeout=500")
    with RocketMQ("4.9.4", tmp_path / "master", *sync, clean=False) as master:
        master.create_topic("orders", 4)
        with Producer("tests", name_server=master.name_server) as producer:

            def sent() -> SendStatus:
                return producer.send(Message("orders", b"x" * 500)).status

            assert sent() is SendStatus.SLAVE_NOT_AVAILABLE
            with Mirror(tmp_path / "refused", name_server=master.name_server) as mirror:
                assert "--let-sends-time-out" in until(lambda: failure_of(mirror))
            assert sent() is SendStatus.SLAVE_NOT_AVAILABLE
            options = MirrorOptions(let_sends_time_out=True)
            with Mirror(tmp_path / "copies", name_server=master.name_server, options=options) as mirror:
                # it is connected, and is taken for a slave that is never done
                until(lambda: sent() is SendStatus.FLUSH_SLAVE_TIMEOUT)
                assert {sent() for _ in range(5)} == {SendStatus.FLUSH_SLAVE_TIMEOUT}
                status = caught_up(mirror, master.store)
        assert_same(master.store, status.directory)


def test_a_mirror_of_some_topics_that_is_killed_again_and_again_neither_loses_nor_doubles_a_message(
    master: RocketMQ, tmp_path: Path
) -> None:
    wanted, copy = ("bills", "orders"), tmp_path / "copies" / "broker-a"
    for topic in ("bills", "clicks"):
        master.create_topic(topic, 4)
    acknowledged: list[bytes] = []
    mirror = CopyProcess(master.name_server, copy.parent, "--topics", ",".join(wanted))
    mirror.start()
    until((copy / "mirror.json").exists)
    with load(master.name_server, acknowledged, ("orders", "clicks", "bills")):
        for victim in ("mirror", "both", "mirror", "master", "mirror"):
            count = len(acknowledged) + 800
            until(lambda count=count: len(acknowledged) >= count)  # type: ignore[misc]
            kill(victim, master, mirror)
    until(lambda: ends_of(copy, wanted) == ends_of(master.store, wanted), lambda: ends_of(copy, wanted))
    assert mirror.end(signal.SIGTERM) == 0
    for topic in wanted:
        rows = rows_of(copy, topic)
        assert rows == rows_of(master.store, topic)
        assert len(rows) > 1000
    with open_store(copy) as store:
        assert store.topics().keys() == set(wanted)
        assert store.verify().ok
    assert len(list((copy / "commitlog").iterdir())) > 1
    assert TopicConfigTable.load(copy).keys() == set(wanted)
    java(master.version, "DumpStore", copy, "--start")


def test_a_mirror_of_some_topics_finds_a_lost_tail_and_stops_or_begins_anew(master: RocketMQ, tmp_path: Path) -> None:
    master.create_topic("clicks", 4)
    for _ in range(3):
        send(master.name_server, "orders", bodies(100))
        send(master.name_server, "clicks", bodies(50))
    copies, options = tmp_path / "copies", MirrorOptions(topics=["orders"])
    with Mirror(copies, name_server=master.name_server, options=options) as mirror:
        caught_up(mirror, master.store)
    before = rows_of(copies / "broker-a", "orders")
    assert before == rows_of(master.store, "orders")
    master.kill9()
    lose_tail(master.store, 60)
    master.start()
    # shorter than before, and longer
    for more in (0, 200):
        send(master.name_server, "orders", bodies(more, size=333))
        with Mirror(copies, name_server=master.name_server, options=options) as mirror:
            error = until(lambda mirror=mirror: failure_of(mirror))  # type: ignore[misc]
            assert "lost the end of its log" in error
            assert "--if-broken anew" in error
            assert "withdraw" not in error
    assert rows_of(copies / "broker-a", "orders") == before
    anew = MirrorOptions(topics=["orders"], if_broken="anew")
    with Mirror(copies, name_server=master.name_server, options=anew) as mirror:
        until(lambda: mirror.status()[0].directory.name == "broker-a.2")
        caught_up(mirror, master.store)
    assert rows_of(copies / "broker-a.2", "orders") == rows_of(master.store, "orders")


@ON_PUSH
def test_a_mirror_of_some_topics_has_the_queues_of_one_that_was_deleted_and_made_again(
    master: RocketMQ, tmp_path: Path
) -> None:
    send(master.name_server, "orders", bodies(40))
    options = MirrorOptions(topics=["orders"])
    with Mirror(tmp_path / "copies", name_server=master.name_server, options=options) as mirror:
        copy = caught_up(mirror, master.store).directory
        with Admin(name_server=master.name_server) as admin:
            admin.topics.delete("orders", cluster="DefaultCluster")
        master.create_topic("orders", 2)
        # one of its queues has a message, the others those of the topic that is gone
        send(master.name_server, "orders", [b"new"])
        caught_up(mirror, master.store)
        until(lambda: len(queues_of(copy)) == 1, lambda: queues_of(copy))
        assert queues_of(copy) == {name for name in queues_of(master.store) if name.startswith("orders/")}
        send(master.name_server, "orders", [b"new"] * 6)
        caught_up(mirror, master.store)
    assert [row["body"] for row in rows_of(copy, "orders")] == [b"new"] * 7


def queues_of(store: Path) -> set[str]:
    """The queues that list something, `topic/number`."""
    return {name.rpartition("/")[0] for name in units_of(store)}


def failure_of(mirror: Mirror) -> str:
    try:
        mirror.wait(0.1)
    except MirrorError as error:
        return str(error)
    return ""
