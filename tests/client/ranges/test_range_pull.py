"""Ranges pulled from brokers in this process: exact rows, whatever befalls the broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rmqfast import EmbeddedCluster, Message, MessageQueue, Producer
from rmqfast._native import TopicRead
from rmqfast.errors import ArgumentError, ClientError, CorruptError, DataLossError
from tests.client.pull.filled import fresh
from tests.client.ranges.clusters import PieceRead, QueueRange, RestartableCluster, offsets, pulled, range_of, request
from tests.remoting.held_port import held_port

COUNT = 3000
NO_KEYS: dict[str, Any] = {}


def filled(store: Path) -> Iterator[RestartableCluster]:
    with RestartableCluster(store, fileReservedTime="0") as started:
        started.create("orders")
        started.fill("orders", COUNT)
        yield started


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RestartableCluster]:
    """A broker with a queue of `orders`, of this test alone."""
    yield from filled(tmp_path / "store")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ranges") / "store"


@pytest.fixture(scope="module")
def shared(store: Path) -> Iterator[RestartableCluster]:
    """The same for all tests that let it and `orders` be."""
    yield from filled(store)


@pytest.fixture
def topic(shared: RestartableCluster) -> str:
    """A topic with one queue that no other test has."""
    name = fresh("own")
    shared.create(name)
    return name


def test_a_range_gives_its_offsets_and_no_other(shared: RestartableCluster) -> None:
    wanted = request(shared.name_server)
    for start, end in ((0, COUNT), (17, 18), (31, 33), (5, 5), (1000, 2999)):
        assert pulled(wanted, range_of(start, end)) == list(range(start, end))
    assert pulled(request(shared.name_server, tags="A"), range_of(11, 500)) == list(range(12, 500, 2))
    assert pulled(request(shared.name_server, pullBatchSize=1000, pullsInFlight=1), range_of(3, 2000)) == list(
        range(3, 2000)
    )


def test_several_queues_of_one_broker_are_pulled_at_once_and_two_ranges_of_one_are_refused(tmp_path: Path) -> None:
    with EmbeddedCluster() as cluster, Producer("tests", name_server=cluster.name_server) as producer:
        producer.create_topic("many", 4)
        for number in range(64):
            producer.send(Message("many", b"%d" % number), MessageQueue("many", "broker-a", number % 4))
        wanted = request(cluster.name_server)
        ranges = [range_of(0, 16, queue_id, "many") for queue_id in range(4)]
        rows = [row for batch in PieceRead(wanted, ranges).batches() for row in batch.to_pylist()]
        places = [(row["queue_id"], row["queue_offset"]) for row in rows]
        assert sorted(places) == [(queue_id, offset) for queue_id in range(4) for offset in range(16)]
    with pytest.raises(ArgumentError, match="expected one of each queue at most"):
        PieceRead(wanted, [ranges[0], ranges[0]._replace(end=3)])


def test_a_broker_that_is_restarted_is_waited_for(cluster: RestartableCluster) -> None:
    pull = PieceRead(request(cluster.name_server, pullsInFlight=1), [range_of(0, COUNT)], cluster.broker)
    batches = pull.batches()
    found = next(batches).column("queue_offset").to_pylist()
    cluster.stop()
    cluster.start()
    found += offsets(batches)
    assert found == list(range(COUNT))


def test_a_broker_that_comes_back_at_another_address_is_found_there(
    cluster: RestartableCluster, caplog: pytest.LogCaptureFixture
) -> None:
    pull = PieceRead(request(cluster.name_server, pullsInFlight=1), [range_of(0, COUNT)], cluster.broker)
    batches = pull.batches()
    found = next(batches).column("queue_offset").to_pylist()
    cluster.fill("orders", 10)
    cluster.move()
    assert found + offsets(batches) == list(range(COUNT))
    assert offsets(PieceRead(request(cluster.name_server), [range_of(0, 7)], "127.0.0.1:1").batches()) == [*range(7)]
    assert f"broker broker-a is read at {cluster.broker} from now on" in caplog.text


def test_a_broker_that_stays_away_is_an_error_after_the_patience() -> None:
    with held_port() as nowhere:
        pull = PieceRead(request(nowhere, retryTimeoutMs=100), [range_of(0, 10)], nowhere)
        with pytest.raises(ClientError, match=r"offsets 0 to 10: nothing came for 0.1 s .* at offset 0: .*\nsee"):
            offsets(pull.batches())


@pytest.mark.parametrize("tags", ["*", "A || B"])
def test_what_has_expired_is_an_error_or_is_told_and_passed_over(
    cluster: RestartableCluster, caplog: pytest.LogCaptureFixture, tags: str
) -> None:
    cluster.expire()
    wanted = request(cluster.name_server, tags=tags)
    with pytest.raises(DataLossError, match=r"lost: offsets 0 to \d+ have expired.*\n.*failOnDataLoss=false"):
        pulled(wanted, range_of(0, COUNT))
    found = pulled(request(cluster.name_server, tags=tags, failOnDataLoss="false"), range_of(0, COUNT))
    assert 0 < found[0] < COUNT
    assert found == list(range(found[0], COUNT))
    assert f"offsets 0 to {found[0]} have expired, the queue begins at {found[0]}" in caplog.text
    assert pulled(request(cluster.name_server, failOnDataLoss="false"), range_of(0, 5)) == []


def test_retention_that_overtakes_a_read_is_no_silent_gap(cluster: RestartableCluster) -> None:
    cluster.fill("orders", 14 * COUNT)  # more bytes than a puller holds
    batches = PieceRead(request(cluster.name_server), [range_of(0, 15 * COUNT)]).batches()
    next(batches)
    for _ in range(5):  # ten files at once
        cluster.expire()
    with pytest.raises(DataLossError, match="messages are lost: "):
        offsets(batches)


@pytest.mark.parametrize("start", [COUNT, COUNT + 1])
def test_a_queue_that_ends_before_the_range_is_a_loss_after_the_patience(
    shared: RestartableCluster, caplog: pytest.LogCaptureFixture, start: int
) -> None:
    ranged = range_of(start, COUNT + 5)
    # long enough that the broker has answered by then
    with pytest.raises(DataLossError, match=f"lost: offsets {start} to {COUNT + 5}: the queue ends at {COUNT}"):
        pulled(request(shared.name_server, retryTimeoutMs=1000), ranged)
    assert pulled(request(shared.name_server, retryTimeoutMs=1000, failOnDataLoss="false"), ranged) == []
    assert "its broker lost its last messages, or the topic was made anew" in caplog.text


def test_a_queue_that_grows_up_to_the_range_is_read(shared: RestartableCluster, topic: str) -> None:
    shared.fill(topic, 10)
    pull = PieceRead(request(shared.name_server), [range_of(9, 50, topic=topic)])
    batches = pull.batches()
    found = next(batches).column("queue_offset").to_pylist()
    shared.fill(topic, 40)
    assert found + offsets(batches) == list(range(9, 50))


def test_a_body_that_does_not_decompress_is_damage_if_somebody_asks_for_it(
    shared: RestartableCluster, topic: str
) -> None:
    bodies = (b"sound", b"x" * 9000, b"small")
    with Producer("tests", name_server=shared.name_server) as producer:
        for body in bodies:
            producer.send(Message(topic, body, keys=body[:5].decode()))
    ranged = range_of(0, 3, topic=topic)

    def wanted(**changes: Any) -> TopicRead:
        columns = ("body", "queue_offset")
        return request(shared.name_server, columns=columns, maxBodyBytes=1000, **changes)

    for keys in (NO_KEYS, {"keys": ["xxxxx"]}):
        with pytest.raises(CorruptError, match=r"1 bodies do not decompress.*broker broker-a, queue 0, offset 1;"):
            pulled(wanted(**keys), ranged)
    assert pulled(wanted(keys=["small"]), ranged) == [2]
    batches = PieceRead(wanted(failOnDataLoss="false"), [ranged]).batches()
    assert [body for batch in batches for body in batch.column("body").to_pylist()] == [b"sound", None, b"small"]


def test_keys_are_whole_words_or_the_ids_of_producers(shared: RestartableCluster, topic: str) -> None:
    with Producer("tests", name_server=shared.name_server) as producer:
        places = [producer.send(Message(topic, b"x" * 9000, keys=keys)) for keys in ("42 eu", "4", "eu", None)]
    ranged = range_of(0, len(places), topic=topic)
    for wanted, found in {
        ("42",): [0],
        ("eu",): [0, 2],
        ("2", "u", "42 eu"): [],
        (places[3].msg_id, "4"): [1, 3],
        (places[0].offset_msg_id,): [],
    }.items():
        assert pulled(request(shared.name_server, keys=wanted), ranged) == found
    assert pulled(request(shared.name_server, keys=["eu"], tags="A"), ranged) == []


@pytest.fixture
def changed(shared: RestartableCluster, store: Path, topic: str) -> QueueRange:
    """Three messages, of which the second has another body on the disk by now."""
    with Producer("tests", name_server=shared.name_server) as producer:
        for body in (b"as it was before", f"{topic} was stored".encode(), b"x" * 9000):
            producer.send(Message(topic, body, keys="one", tags="A"))
    change(store / "commitlog", f"{topic} was stored".encode(), f"{topic} was NOT st".encode())
    return range_of(0, 3, topic=topic)


def change(log: Path, old: bytes, new: bytes) -> None:
    """Writes over bytes of a log, below a broker that runs."""
    (path,) = [path for path in log.iterdir() if old in path.read_bytes()]
    with path.open("r+b") as file:
        file.seek(path.read_bytes().index(old))
        file.write(new)


def test_a_body_that_was_changed_is_handed_out_unless_its_crc_is_looked_at(
    shared: RestartableCluster, topic: str, changed: QueueRange
) -> None:
    wanted = request(shared.name_server, columns=("body",))
    bodies = [row for batch in PieceRead(wanted, [changed]).batches() for row in batch.column("body").to_pylist()]
    assert bodies == [b"as it was before", f"{topic} was NOT st".encode(), b"x" * 9000]
    text = rf"1 bodies do not match their CRC: topic {topic}, broker broker-a, queue 0, offset 1; on_damage="
    for keys in (NO_KEYS, {"keys": ["two"]}):  # all that is pulled is looked at
        with pytest.raises(CorruptError, match=text):
            pulled(request(shared.name_server, verifyCrc="true", **keys), changed)


def test_a_changed_body_is_left_out_and_told_of_where_that_is_allowed(
    shared: RestartableCluster, topic: str, changed: QueueRange, caplog: pytest.LogCaptureFixture
) -> None:
    for keys in (NO_KEYS, {"keys": ["one"]}):
        wanted = request(shared.name_server, verifyCrc="true", failOnDataLoss="false", **keys)
        assert pulled(wanted, changed) == [0, 2]
    assert f"bodies do not match their CRC: topic {topic}, broker broker-a, queue 0, offset 1" in caplog.text


def test_bodies_as_they_were_stored_pass_by_their_crc(shared: RestartableCluster) -> None:
    assert pulled(request(shared.name_server, verifyCrc="true"), range_of(0, COUNT)) == list(range(COUNT))


def test_a_queue_that_there_is_not_is_refused_at_once(shared: RestartableCluster) -> None:
    with pytest.raises(ClientError, match=r"refuses: CODE: 1 .*queueId\[7\] is illegal"):
        pulled(request(shared.name_server), range_of(0, 5, queue_id=7))
