"""A commit-log reader in plain Python, as one would write it for mapInPandas without a native library."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from data import SEGMENT, Dataset

COLUMNS = ["topic", "queue_id", "queue_offset", "physical_offset", "tags", "keys", "born", "body"]
TYPES = ["string", "int", "long", "long", "string", "string", "long", "binary"]
SCHEMA = ", ".join(map(" ".join, zip(COLUMNS, TYPES, strict=True)))
HEAD = struct.Struct(">iiIiiqqiq")  # up to the born timestamp
PIECE = 64 << 20
BATCH = 4000


def pieces(dataset: Dataset, store: Path) -> list[tuple[str, int, int]]:
    """The log cut at record boundaries: file, first byte, end."""
    rows, cut = dataset.segment_rows, max(PIECE // dataset.record, 1)
    found = []
    for first in range(0, dataset.rows, rows):
        name = str(store / "commitlog" / f"{first // rows * SEGMENT:020d}")
        end = min(rows, dataset.rows - first)
        spans = ((at, min(at + cut, end)) for at in range(0, end, cut))
        found += [(name, begin * dataset.record, stop * dataset.record) for begin, stop in spans]
    return found


def frames(name: str, begin: int, end: int) -> Iterator[pd.DataFrame]:
    """The messages between two record boundaries of a segment."""
    with Path(name).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
        rows = []
        while begin < end:
            rows.append(row(log, begin))
            begin += int.from_bytes(log[begin : begin + 4], "big")
            if len(rows) == BATCH or begin >= end:
                yield pd.DataFrame(rows, columns=COLUMNS)
                rows = []


def row(log: mmap.mmap, at: int) -> tuple[str, int, int, int, str | None, str | None, int, bytes]:
    """One message of version 1 with IPv4 hosts."""
    _, _, _, queue_id, _, queue_offset, physical_offset, _, born = HEAD.unpack_from(log, at)
    body_end = at + 88 + int.from_bytes(log[at + 84 : at + 88], "big")
    topic_end = body_end + 1 + log[body_end]
    size = int.from_bytes(log[topic_end : topic_end + 2], "big")
    text = log[topic_end + 2 : topic_end + 2 + size].decode()
    properties = dict(pair.split("\1", 1) for pair in text.split("\2") if pair)
    topic, body = log[body_end + 1 : topic_end].decode(), log[at + 88 : body_end]
    return topic, queue_id, queue_offset, physical_offset, properties.get("TAGS"), properties.get("KEYS"), born, body
