"""The bench messages as Arrow tables: what append_many takes, and what ready batches and Parquet files are made of."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from data import (
    BORN_FROM,
    QUEUES,
    TAGS,
    TOPIC,
    Dataset,
    Lines,
    bodies,
    keys,
    require_disk,
    scratch_dir,
    tags,
    unique_keys,
)

TIMESTAMP = pa.timestamp("us", tz="UTC")  # what Spark takes
COLUMNS = {
    "topic": pa.string(),
    "broker_name": pa.string(),
    "queue_id": pa.int32(),
    "queue_offset": pa.int64(),
    "physical_offset": pa.int64(),
    "msg_id": pa.string(),
    "offset_msg_id": pa.string(),
    "tags": pa.string(),
    "keys": pa.string(),
    "body": pa.binary(),
    "properties": pa.map_(pa.string(), pa.string()),
    "born_timestamp": TIMESTAMP,
    "store_timestamp": TIMESTAMP,
    "born_host": pa.string(),
    "store_host": pa.string(),
    "flag": pa.int32(),
    "sys_flag": pa.int32(),
    "reconsume_times": pa.int32(),
    "prepared_transaction_offset": pa.int64(),
    "store_size": pa.int32(),
    "body_crc": pa.int32(),
}
# what Kafka's source gives, too: value, key, headers, topic, partition, offset, timestamp
EIGHT = ["topic", "queue_id", "queue_offset", "tags", "keys", "body", "born_timestamp", "store_timestamp"]


def fixed_width(lines: Lines, kind: pa.DataType) -> pa.Array:
    """Lines of bytes of one width as a string or binary array, without a copy per value."""
    rows, width = lines.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(width)
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(lines))])


def properties(start: int, stop: int) -> pa.Array:
    """The property map of each row: KEYS, UNIQ_KEY, WAIT and TAGS."""
    rows = stop - start
    tag = np.array(TAGS, "S5")[tags(start, stop)].view(np.uint8).reshape(-1, 5)
    wait = np.tile(np.frombuffer(b"true", np.uint8), (rows, 1))
    names = np.tile(np.frombuffer(b"KEYSUNIQ_KEYWAITTAGS", np.uint8), (rows, 1))
    values = np.hstack([keys(start, stop), unique_keys(start, stop), wait, tag])
    entries = (cut(names, [4, 8, 4, 4]), cut(values, [17, 32, 4, 5]))
    return pa.MapArray.from_arrays(np.arange(rows + 1, dtype=np.int32) * np.int32(4), *entries)


def cut(lines: Lines, widths: list[int]) -> pa.Array:
    """Each line cut into strings of the given widths, one after the other."""
    ends = np.arange(len(lines))[:, None] * sum(widths) + np.cumsum(widths)
    offsets = np.concatenate([[0], ends.ravel()]).astype(np.int32)
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(lines)])


def to_append(dataset: Dataset, start: int, stop: int) -> pa.RecordBatch:
    """A span of messages with the columns that a sender gives; one body array may not pass 2 GiB."""
    rows = np.arange(start, stop)
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array([TOPIC] * len(rows)),
            "queue_id": pa.array((rows % QUEUES).astype(np.int32)),
            "tags": pa.array(np.array(TAGS)[tags(start, stop)].tolist()),
            "keys": fixed_width(keys(start, stop), pa.string()),
            "body": fixed_width(bodies(dataset, start, stop), pa.binary()),
            "properties": properties(start, stop),
            "born_timestamp": pa.array(BORN_FROM + rows // 100).cast(pa.timestamp("ms", tz="UTC")),
        }
    )


def stored(dataset: Dataset, start: int, stop: int) -> pa.RecordBatch:
    """A span of messages with all columns of a stored row, as Spark takes them."""
    sent, rows = to_append(dataset, start, stop), np.arange(start, stop)
    count, when = len(rows), pa.array((BORN_FROM + rows // 100) * 1000).cast(TIMESTAMP)
    known = {
        "broker_name": pa.nulls(count, pa.string()),
        "queue_offset": pa.array(rows // QUEUES),
        "physical_offset": pa.array(dataset.physical_offsets(rows)),
        "msg_id": fixed_width(unique_keys(start, stop), pa.string()),
        "offset_msg_id": pa.array([f"7F00000100002A9F{at:016X}" for at in dataset.physical_offsets(rows)]),
        "born_timestamp": when,
        "store_timestamp": when,
        "born_host": pa.array(["127.0.0.1:45678"] * count),
        "store_host": pa.array(["127.0.0.1:10911"] * count),
        "store_size": pa.array([dataset.record] * count, pa.int32()),
    }
    given = {name: sent.column(name) for name in sent.schema.names}
    rest = [name for name in COLUMNS if name not in known and name not in given]
    zero = {name: pa.array(np.zeros(count, np.int64)).cast(COLUMNS[name]) for name in rest}
    return pa.RecordBatch.from_arrays(
        [{**zero, **given, **known}[name] for name in COLUMNS], schema=pa.schema(list(COLUMNS.items()))
    )


def parquet_files(dataset: Dataset, files: int) -> Path:
    """The dataset as that many uncompressed Parquet files, written if they are not there yet."""
    path = scratch_dir() / f"parquet-{dataset.label}-{dataset.rows}"
    mark = path.with_name(f"{path.name}.json")
    if mark.exists():
        return path
    shutil.rmtree(path, ignore_errors=True)
    require_disk(dataset.log_bytes)
    path.mkdir()
    spans = list(dataset.spans())
    per_file = -(-len(spans) // files)
    for first in range(0, len(spans), per_file):
        batches = (stored(dataset, *span) for span in spans[first : first + per_file])
        schema = pa.schema(list(COLUMNS.items()))
        with pa.parquet.ParquetWriter(path / f"{first:06d}.parquet", schema, compression="none") as writer:
            for batch in batches:
                writer.write_batch(batch)
    mark.write_text(json.dumps({"rows": dataset.rows}))
    return path
