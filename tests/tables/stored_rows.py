"""Messages that tests store, and the rows that tables have of them. Needs no library of a table's format."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa

import rmqfast
from rmqfast import AppendOptions, Message

SMALL = AppendOptions(file_size=1 << 16, index_slots=100, index_entries=400)
PLACE = ("topic", "broker_name", "queue_id", "queue_offset", "physical_offset")
Row = dict[str, Any]


def scanned(path: Path, topics: list[str] | None = None, **arguments: Any) -> list[Row]:
    """The rows of a scan, as tables have them."""
    with rmqfast.open_store(path) as store:
        read = store.scan(topics, **arguments).to_arrow()
    for name in ("born_timestamp", "store_timestamp"):
        number = read.schema.get_field_index(name)
        read = read.set_column(number, name, read.column(name).cast(pa.timestamp("us", "UTC")))
    return by_place(read.to_pylist())


def append(path: Path, count: int, topics: int = 3, start: int = 0) -> None:
    """Appends messages to a store."""
    with rmqfast.open_store(path, mode="a", options=SMALL) as store:
        for number in range(start, start + count):
            store.append(
                Message(f"topic-{number % topics}", b"%d" % number * 20, tags="ab"[number % 2], queue_id=number % 2)
            )


def by_place(rows: list[Row]) -> list[Row]:
    """Rows in one order, and with properties in one form."""
    for row in rows:
        row["properties"] = sorted(row["properties"]) if row["properties"] is not None else None
    return sorted(rows, key=lambda row: [str(value) for value in itemgetter(*PLACE)(row)])
