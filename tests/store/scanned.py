"""What a scan gave, in the shape of the reference's rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import rmqfast
from rmqfast.errors import DamageWarning
from rmqfast.message import Damage
from rmqfast.store import MessageStore, Scan
from tests.reference.row import Row

TIMES = ("born_timestamp", "store_timestamp")


def table_of(scan: Scan) -> pa.Table:
    """The table of a scan that may meet damage."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        return scan.to_arrow()


def rows_of(scan: Scan) -> list[Row]:
    return plain_rows(table_of(scan))


def plain_rows(table: pa.Table) -> list[Row]:
    """Timestamps as integers, properties as a dict, as the reference has them."""
    for name in set(TIMES) & set(table.column_names):
        at = table.column_names.index(name)
        table = table.set_column(at, name, table.column(at).cast(pa.int64()))
    rows: list[Row] = table.to_pylist()
    for row in rows:
        if "properties" in row:
            row["properties"] = dict(row["properties"])
    return rows


def scanned(path: Path, topic: str | None = None, dirs: Sequence[Path] = (), **options: Any) -> Scan:
    """A scan of the store at `path`."""
    return opened(path, dirs).scan(topic, **options)


def opened(path: Path, dirs: Sequence[Path] = (), **options: Any) -> MessageStore:
    return rmqfast.open_store(path, commit_log_dirs=dirs, **options)


def rows_and_damage(path: Path, topic: str | None = None, **options: Any) -> tuple[list[Row], list[Damage]]:
    """Rows, and what could not be read."""
    scan = scanned(path, topic, **options)
    rows = rows_of(scan)
    return rows, scan.damage


def pull_all(store: MessageStore, topic: str, queue_id: int = 0, offset: int = 0) -> tuple[list[int], list[Damage]]:
    """Queue offsets that pulls give from `offset` on, and the damage that they meet."""
    offsets: list[int] = []
    damage: list[Damage] = []
    while True:
        result = store.get(topic, queue_id, offset, max_messages=32)
        offsets += [message.queue_offset for message in result.messages]
        damage += result.damage
        if result.next_begin_offset >= result.max_offset:
            return offsets, damage
        assert result.next_begin_offset > offset
        offset = result.next_begin_offset
