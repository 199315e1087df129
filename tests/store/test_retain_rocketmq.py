"""Retention beside the real 4.9.4: it removes the same files, and a broker serves what retention left."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import rmqfast
from rmqfast import AppendOptions, Message
from tests.interop.rocketmq import RocketMQ, java

from .test_handover import GEOMETRY
from .test_retain import KEEP, age, fill, opened

SIZES = AppendOptions(file_size=1 << 14, queue_file_size=2000, index_slots=100, index_entries=300, zone_offset_ms=0)
FLAGS = ("--slots", SIZES.index_slots, "--index-num", SIZES.index_entries)
Queues = dict[tuple[str, int], tuple[int, int]]


def files(path: Path) -> set[str]:
    parts = ("commitlog", "consumequeue", "index")
    return {str(file.relative_to(path)) for part in parts for file in (path / part).rglob("*") if file.is_file()}


def cleaned_by_rocketmq(path: Path) -> tuple[int, Queues]:
    """Where the log begins, and the bounds of each queue as RocketMQ has them."""
    first, *queues = map(json.loads, java("4.9.4", "Clean", path, *FLAGS).splitlines())
    return first["minPhyOffset"], {(q["topic"], q["queueId"]): (q["min"], q["max"]) for q in queues if q["max"]}


def bounds(store: rmqfast.MessageStore) -> Queues:
    return {(topic, n): both for topic, queues in store.topics().items() for n, both in queues.items()}


# hours since each of the oldest files was written; the others are young
AGES = [(73,) * 12, (73, 73, 73, 71, 73, 73), (71, 100, 100), (100,) * 100, (72.1, 71.9), ()]


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("ages", AGES)
def test_the_real_rocketmq_removes_the_same_files(ages: tuple[float, ...], tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    with opened(ours, options=SIZES) as store:
        fill(store, range(3000))
    for count in range(len(ages), 0, -1):
        age(ours, count, ages[count - 1])
    shutil.copytree(ours, theirs)
    before = files(ours)
    min_offset, served = cleaned_by_rocketmq(theirs)
    with opened(ours, KEEP, SIZES) as store:
        while store.clean(manual=True).log_files:
            pass
        found = bounds(store)
        assert store.info().min_offset == min_offset
    assert files(ours) == files(theirs)
    assert (before == files(ours)) == (not ages or ages[0] < 72)
    assert {queue: high for queue, (_, high) in found.items()} == {queue: high for queue, (_, high) in served.items()}
    for queue, (low, high) in found.items():
        # 4.9.4 leaves the minimum of a queue as it was where no message of it is left
        assert served[queue][0] == (low if low < high else 0), queue


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_real_broker_serves_what_retention_left(tmp_path: Path) -> None:
    large = AppendOptions(file_size=1 << 20, queue_file_size=20_000, index_slots=1000, index_entries=4000)
    path = tmp_path / "mq" / "store"
    with opened(path, options=large) as store:
        store.append_many([Message("T", b"%05d" % n * 200, keys=f"k{n}", queue_id=n % 3) for n in range(8000)])
        age(path, 5)
        assert store.clean(manual=True).log_files == 5
        wanted = {queue_id: both for (_, queue_id), both in bounds(store).items()}
    with RocketMQ("4.9.4", tmp_path / "mq", *GEOMETRY) as broker:
        to = ("-n", broker.name_server, "-t", "T")
        broker.create_topic("T", 3)
        status = java("4.9.4", "Admin", "topicStatus", *to)
        rows = [line.split() for line in status.splitlines() if line.startswith("broker-a")]
        assert {int(row[1]): (int(row[2]), int(row[3])) for row in rows} == wanted
        pull = ("--mode", "pull", "--namesrv", broker.name_server, "--topic", "T", "--group", "g", "--idle-ms", 3000)
        pulled = [json.loads(line) for line in java("4.9.4", "Consume", *pull).splitlines()]
        for queue_id, (low, high) in wanted.items():
            offsets = [line["queueOffset"] for line in pulled if line.get("queueId") == queue_id]
            assert offsets == list(range(low, high)), queue_id
    with opened(path, options=large) as store:
        assert store.append(Message("T", b"later", queue_id=1)).queue_offset == wanted[1][1]
