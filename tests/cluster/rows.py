"""Rows of scans, and the same messages from the brokers' stores."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import Any

import rmqfast
from tests.spark.live import topics

Row = dict[str, Any]
PLACE = ("topic", "broker_name", "queue_id", "queue_offset")


def rows_of(scan: rmqfast.Scan) -> list[Row]:
    """The rows of a scan by topic, broker, queue and offset."""
    return by_place(scan.to_arrow().to_pylist())


def by_place(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=itemgetter(*PLACE))


def stored_rows(directory: Path, topic: str | list[str] | None = "orders", **arguments: Any) -> list[Row]:
    """The rows of a cluster's stores below a directory."""
    rows: list[Row] = []
    for name, path in topics.stores(directory).items():
        with rmqfast.open_store(path, broker_name=name) as store:
            rows += store.scan(topic, **arguments).to_arrow().to_pylist()
    return by_place(rows)


def places(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in PLACE) for row in rows]
