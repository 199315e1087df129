"""Topics as tables and lazy frames, and what a program asks of them. Nothing runs here: mypy and pyright read it."""

from __future__ import annotations

import pickle

import rmqfast
from rmqfast.store import Scan, ScanDataset


def report(path: str) -> dict[str, int]:
    """Counts of a topic and of its paid orders."""
    with rmqfast.open_store(path) as store:
        orders: ScanDataset = store.table(
            "orders", threads=2, tags="paid || refunded", columns=["tags", "queue_offset"]
        )
        scan: Scan = orders.scan
        later: Scan = pickle.loads(pickle.dumps(scan.limit(100)))  # noqa: S301 - it was written here
        paid = orders.filter(orders.field("tags") == "paid")
        counts = {"orders": scan.count(), "paid": paid.count_rows(), "later": later.count()}
        counts["damaged"] = len(orders.damage) + len(paid.damage)
        return counts


def first_keys(store: rmqfast.MessageStore) -> list[str]:
    """The keys of the first orders, by a lazy frame and by a dataset."""
    frame = store.scan("orders").lazy().select("keys").head(5).collect()
    names: list[str] = [str(name) for name in store.scan("orders", columns=["keys"]).schema.names]
    return [*frame["keys"].to_list(), *names]
