"""Reads a store with RocketMQ's own classes: line by line, or the messages as Arrow."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa

from tests import golden_stores
from tests.golden_stores import Line
from tests.interop.rocketmq import NICE, SCRIPT

CHUNK = 10_000
TIME = pa.timestamp("ms", "UTC")
_TYPES = {
    "queue_id": pa.int32(),
    "queue_offset": pa.int64(),
    "physical_offset": pa.int64(),
    "body": pa.binary(),
    "properties": pa.map_(pa.string(), pa.string()),
    "born_timestamp": TIME,
    "store_timestamp": TIME,
    "flag": pa.int32(),
    "sys_flag": pa.int32(),
    "reconsume_times": pa.int32(),
    "prepared_transaction_offset": pa.int64(),
    "store_size": pa.int32(),
    "body_crc": pa.int32(),
}


def dumped(version: str, store: Path, *flags: object) -> Iterator[Line]:
    """The lines of DumpStore, which must find the store sound."""
    command = [*NICE, str(SCRIPT), "java", version, "DumpStore", str(store), *map(str, flags)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield from map(json.loads, process.stdout)
    assert process.returncode == 0


def messages(version: str, store: Path, broker_name: str, columns: list[str], *flags: object) -> pa.Table:
    """The messages of a store in physical order, with columns of the row; bodies of 2 KiB at most."""
    schema = pa.schema([(name, _TYPES.get(name, pa.string())) for name in columns])
    lines = (line for line in dumped(version, store, *flags) if line["kind"] == "msg")
    batches = []
    while rows := golden_stores.rows_of(list(islice(lines, CHUNK)), version):
        named = [row | {"broker_name": broker_name, "properties": list(row["properties"].items())} for row in rows]
        batches.append(pa.RecordBatch.from_pylist(named, schema))
    return pa.Table.from_batches(batches, schema)
