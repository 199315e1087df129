"""Very many messages of two real brokers, in Parquet by way of a cluster with two workers: what their stores list."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import rmqfast
from rmqfast.store import COLUMNS
from tests.effort import effort
from tests.interop.dump_store import TIME, messages
from tests.interop.rocketmq import RocketMQ
from tests.spark.cluster import Cluster
from tests.spark.engines import ENGINES

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.soak,
    pytest.mark.newest,
    pytest.mark.timeout(2400),
]

VERSION = "4.9.4"
MESSAGES = effort("RMQFAST_MESSAGES", 200_000, 1_000_000)
ROWS_OF_A_SEND = 10_000
QUEUES = 4
TAGS = (None, "TagA", "Aa", "BB", "标签", "ταγ", "🚀")  # "Aa" and "BB" have the same hash
# many files of the log and of the index, and DumpStore must know how large the latter are; a busy machine is no failure
FILES = ("mappedFileSizeCommitLog=67108864", "maxHashSlotNum=100000", "maxIndexNum=400000")
PROPERTIES = (*FILES, "brokerFastFailureEnable=false", "osPageCacheBusyTimeOutMills=60000")
FLAGS = ("--in-place", "--no-index", "--slots", 100_000, "--index-num", 400_000)
ROOT = Path(__file__).parents[3]
PACKAGE = Path(rmqfast.__file__).parents[1]


@contextmanager
def two_brokers(directory: Path) -> Iterator[tuple[RocketMQ, RocketMQ]]:
    """At one name server, with a topic on both; their stores stay."""
    heap = "-Xms256m -Xmx768m"
    with (
        RocketMQ(VERSION, directory / "broker-a", *PROPERTIES, heap=heap) as first,
        RocketMQ(VERSION, directory / "broker-b", *PROPERTIES, heap=heap, beside=first) as second,
    ):
        for broker in (first, second):
            broker.create_topic("orders", QUEUES)
        yield first, second


def send(name_server: str) -> None:
    with rmqfast.Producer("tests", name_server=name_server) as producer:
        for first in range(0, MESSAGES, ROWS_OF_A_SEND):
            numbers = range(first, min(first + ROWS_OF_A_SEND, MESSAGES))
            producer.send_many(rows(numbers), timeout=60, topic="orders")


def rows(numbers: range) -> pa.Table:
    """Messages with bodies around 128 bytes; some have no tag, some no key."""
    r = random.Random(numbers.start)
    noise = r.randbytes(400)
    properties = [[("number", str(n)), ("ключ", "значение 🚀")] if n % 5 == 0 else [("n", str(n))] for n in numbers]
    return pa.table(
        {
            "body": [noise[(at := r.randrange(200)) : at + r.randrange(60, 190)] + b"%d" % n for n in numbers],
            "tags": pa.array(r.choices(TAGS, k=len(numbers)), pa.string()),
            "keys": pa.array([f"k{n} k{n % 1000}" if n % 3 else None for n in numbers], pa.string()),
            "properties": pa.array(properties, pa.map_(pa.string(), pa.string())),
            "flag": pa.array(r.choices([0, 1, -7, 2**31 - 1], k=len(numbers)), pa.int32()),
        }
    )


def into_parquet(engine: str, name_server: str, directory: Path) -> Path:
    """Where two executors have written the topic."""
    (directory / "spark").mkdir(parents=True)
    out = directory / "out"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE), str(ROOT)])}
    with Cluster(directory / "spark") as cluster:
        command = [sys.executable, "-m", "tests.spark.live.parquet_driver"]
        command += [engine, cluster.master, name_server, "orders", str(out)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=1200, cwd=ROOT, env=environment
        )
    assert done.returncode == 0, done.stderr[-6000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {"executors": 2}
    return out


def dumped_rows(store: Path, name: str) -> pa.Table:
    """The rows of the topic that DumpStore lists; its broker has ended."""
    found = messages(VERSION, store, name, list(COLUMNS), *FLAGS)
    return found.filter(pc.equal(found["topic"], "orders"))


def written_rows(out: Path, name: str, queue_id: int) -> pa.Table:
    """The rows of a queue in Parquet."""
    return pq.read_table(out, filters=[("broker_name", "=", name), ("queue_id", "=", queue_id)])


def normal(table: pa.Table) -> dict[str, Any]:
    """Columns by name: rows by offset, times in milliseconds, properties by name."""
    table = table.sort_by("queue_offset").combine_chunks()
    found = {name: table[name].chunk(0) for name in COLUMNS}
    times = {name: found[name].cast(TIME) for name in ("born_timestamp", "store_timestamp")}
    return found | times | {"properties": by_name(found["properties"])}


def by_name(maps: pa.MapArray) -> pa.MapArray:
    """DumpStore lists properties in another order than messages have them."""
    row = np.repeat(np.arange(len(maps)), np.diff(maps.offsets))
    entries = pa.table({"row": row, "key": maps.keys, "value": maps.items})
    entries = entries.sort_by([("row", "ascending"), ("key", "ascending")])
    return pa.MapArray.from_arrays(maps.offsets, *(entries[name].combine_chunks() for name in ("key", "value")))


def differences(found: dict[str, Any], wanted: dict[str, Any]) -> Iterator[str]:
    """Where columns differ first; pytest would print a million values."""
    for name, column in wanted.items():
        if not found[name].equals(column):
            pairs = enumerate(zip(found[name].to_pylist(), column.to_pylist(), strict=False))
            first = next(
                (f"row {n}: {got!r}, expected {want!r}" for n, (got, want) in pairs if got != want), "no value"
            )
            yield f"{name}: {found[name].type}, {len(found[name])} of {len(column)} rows: {first}"


def test_each_message_of_two_brokers_is_one_row_as_their_stores_have_it(tmp_path: Path) -> None:
    """A million with RMQFAST_FULL=1, or as RMQFAST_MESSAGES says."""
    with two_brokers(tmp_path) as brokers:
        send(brokers[0].name_server)
        outs = [into_parquet(engine, brokers[0].name_server, tmp_path / engine) for engine in ENGINES]
    total = 0
    for broker in brokers:
        name = broker.directory.name
        stored = dumped_rows(broker.store, name)
        for queue_id in range(QUEUES):
            wanted = normal(stored.filter(pc.equal(stored["queue_id"], queue_id)))
            count = len(wanted["queue_offset"])
            assert count > MESSAGES // 20
            assert np.array_equal(wanted["queue_offset"], np.arange(count))
            for out in outs:
                assert list(differences(normal(written_rows(out, name, queue_id)), wanted)) == [], out
            total += count
    for out in outs:
        ids = pq.read_table(out, columns=["msg_id"])["msg_id"]
        assert (len(ids), pc.count_distinct(ids).as_py()) == (total, MESSAGES), out
