"""A store of orders as JSON, bodies of 1 KiB: what a scan decodes, and Spark's `from_json` beside it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from data import CHUNK, QUEUES, TOPIC, require_disk, scratch_dir

BODY = 1024
LINES = 6
DDL = (
    "id bigint, state string, at string, total double, paid boolean, note string, "
    "customer struct<id: string, city: string, points: bigint>, "
    "lines array<struct<sku: string, n: int, price: double>>, tags array<string>, padding string"
)
#: What a query takes of a body, in SQL.
QUERIES = {
    "one": ("sum(value.id)",),
    "three": ("sum(value.id)", "sum(value.total)", "count(value.customer.city)"),
    "all": ("sum(value.id)", "max(xxhash64(value))"),
}


def document_store(package: Any, rows: int) -> Path:
    """The store directory of so many orders, written if it is not there yet."""
    path = scratch_dir() / f"documents-{rows}"
    done = path.with_suffix(".done")
    if not done.exists():
        shutil.rmtree(path, ignore_errors=True)
        require_disk(2 * rows * BODY)
        with package.open_store(path, mode="a", flush="async") as store:
            for start in range(0, rows, CHUNK):
                numbers = range(start, min(start + CHUNK, rows))
                store.append_many(package.Message(TOPIC, body(n), queue_id=n % QUEUES) for n in numbers)
        done.touch()
    return path


def body(n: int) -> bytes:
    """An order of ten fields with some lines, filled up to the size of a body."""
    order = {
        "id": n,
        "state": "PAID",
        "at": "2026-11-29T12:00:00Z",
        "total": n % 1000 + 0.25,
        "paid": True,
        "note": None,
        "customer": {"id": f"c-{n % 97}", "city": "Zürich", "points": n % 13},
        "lines": [{"sku": f"sku-{n * 7 % 99_991:05}", "n": m, "price": m * 3 + 0.5} for m in range(LINES)],
        "tags": ["new", "web"],
        "padding": "",
    }
    return as_json(order | {"padding": "x" * (BODY - len(as_json(order)))})


def as_json(order: dict[str, Any]) -> bytes:
    """JSON without spaces."""
    return json.dumps(order, ensure_ascii=False, separators=(",", ":")).encode()
