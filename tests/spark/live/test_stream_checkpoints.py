"""A stream goes on from a checkpoint that was harmed and tells so, or ends with an error that names the queue."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import rmqfast
from rmqfast._native import SparkStream, TopicRead, read_piece
from rmqfast.errors import DataLossError
from rmqfast.message import Message, MessageQueue
from rmqfast.store import COLUMNS
from tests.client.ranges.clusters import RestartableCluster

COUNT = 30
JOINED = "queue 1: the checkpoint has no offset of it: it is read from its first one on, 0"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RestartableCluster]:
    """A broker with two queues of `orders`."""
    with RestartableCluster(tmp_path / "store") as started:
        started.create("orders", queues=2)
        send(started, COUNT)
        yield started


@pytest.fixture
def strict(cluster: RestartableCluster) -> Iterator[SparkStream]:
    yield from opened(cluster, failOnDataLoss="true")


@pytest.fixture
def lax(cluster: RestartableCluster) -> Iterator[SparkStream]:
    yield from opened(cluster, failOnDataLoss="false")


def opened(cluster: RestartableCluster, **options: str) -> Iterator[SparkStream]:
    given = {"nameServer": cluster.name_server, "topic": "orders", "startingOffsets": "earliest"} | options
    stream = SparkStream.of_topic(TopicRead("topic stream", given, COLUMNS))
    yield stream
    stream.close()


def send(cluster: RestartableCluster, count: int) -> None:
    """So many to each queue."""
    with rmqfast.Producer("tests", name_server=cluster.name_server) as producer:
        for _ in range(count):
            for queue_id in range(2):
                producer.send(Message("orders", b"x"), queue=MessageQueue("orders", "broker-a", queue_id))


def position(*offsets: int | None, stored: int | None = None) -> str:
    """The checkpoint with the offsets of queues 0 and 1, None for one that is not there, and the time of queue 0."""
    queues = {str(queue_id): offset for queue_id, offset in enumerate(offsets) if offset is not None}
    times: dict[str, dict[str, int]] = {} if stored is None else {f"broker-a stored 0:{stored}": {}}
    return json.dumps({"orders": {"broker-a": queues} | times})


def offsets(text: str) -> dict[str, int]:
    of: dict[str, int] = json.loads(text)["orders"]["broker-a"]
    return of


def ranges(pieces: list[bytes]) -> list[tuple[int, int, int]]:
    """Queue, first offset and the one behind the last, of what tasks read."""
    return sorted((queue_id, start, end) for piece in pieces for _, _, queue_id, start, end in read_piece(piece)[1])


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelno > logging.INFO]


def test_a_queue_that_a_checkpoint_has_lost_is_read_again_and_told(
    strict: SparkStream, caplog: pytest.LogCaptureFixture
) -> None:
    joined = strict.latest(position(20), is_limited=True)
    assert offsets(joined) == {"0": COUNT, "1": 0}
    assert warnings(caplog) == [f"topic orders, broker broker-a, {JOINED}"]
    assert offsets(strict.latest(joined, is_limited=True)) == {"0": COUNT, "1": COUNT}
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize("text", [position(20, 20), position(20, 20, stored=5)])
def test_a_batch_that_is_planned_again_goes_on_where_its_queues_do(strict: SparkStream, text: str) -> None:
    """Spark asks a new run for the tasks of the last batch of the one before it."""
    end = position(25, 25)
    if "stored" not in text:
        assert ranges(strict.pieces(text, end)) == [(0, 20, 25), (1, 20, 25)]
        return
    with pytest.raises(DataLossError, match=r"queue 0: messages are lost: the checkpoint is at offset 20, .* another"):
        strict.pieces(text, end)


def test_a_batch_of_a_topic_that_was_made_anew_meanwhile_is_told(
    cluster: RestartableCluster, strict: SparkStream, lax: SparkStream, caplog: pytest.LogCaptureFixture
) -> None:
    start, end = position(20, 20), position(25, 25)
    with rmqfast.Admin(name_server=cluster.name_server) as admin:
        admin.topics.delete("orders")
        admin.create_topic("orders", queues=1)
    with pytest.raises(
        DataLossError, match="queue 0: messages are lost: the checkpoint is at offset 20, and the queue"
    ):
        strict.pieces(start, end)
    assert ranges(lax.pieces(start, end)) == []
    text = (
        "queue 1: messages are lost: the checkpoint has a batch of its offsets 20 to 25, which cannot be read any more"
    )
    assert text in caplog.text
    assert "queue 0: messages are lost: the checkpoint is at offset 20, and the queue ends at 0" in caplog.text


def test_a_batch_that_ends_beyond_its_queue_is_told(
    strict: SparkStream, lax: SparkStream, caplog: pytest.LogCaptureFixture
) -> None:
    start, end = position(20, 20), position((1 << 63) - 1, 25)
    text = (
        "queue 0: messages are lost: the checkpoint has a batch that ends at offset 9223372036854775807, and the queue"
    )
    with pytest.raises(DataLossError, match=text):
        strict.pieces(start, end)
    assert ranges(lax.pieces(start, end)) == [(0, 20, COUNT), (1, 20, 25)]
    assert f"{text} ends at {COUNT}" in caplog.text


def test_a_batch_that_ends_before_it_begins_is_told(strict: SparkStream, caplog: pytest.LogCaptureFixture) -> None:
    assert ranges(strict.pieces(position(20, 20), position(15, 25))) == [(1, 20, 25)]
    text = "queue 0: the checkpoint has a batch that begins at offset 20 and ends at 15: it reads nothing of it"
    assert warnings(caplog) == [f"topic orders, broker broker-a, {text}"]


@pytest.mark.parametrize("stored", [0, -(1 << 63), (1 << 63) - 1])
def test_a_time_that_is_none_of_the_queue_skips_nothing_and_stops_nobody(
    strict: SparkStream, lax: SparkStream, stored: int
) -> None:
    start = position(20, COUNT, stored=stored)
    with pytest.raises(DataLossError, match=r"stored at .* and not at "):
        strict.latest(start, is_limited=True)
    again = lax.latest(start, is_limited=True)
    assert offsets(again)["0"] <= 20
    end = lax.latest(again, is_limited=True)
    assert offsets(end) == {"0": COUNT, "1": COUNT}
    assert ranges(lax.pieces(again, end)) == [(0, offsets(again)["0"], COUNT)]
