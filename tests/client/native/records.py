"""Records of golden stores, as a broker that holds the store would send them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.golden_stores import Line, expected_rows, unpack


@cache
def golden_rows(name: str) -> tuple[list[Line], list[bytes]]:
    """The rows of a golden store as RocketMQ's own classes read them, and the record of each."""
    with TemporaryDirectory() as directory:
        store = unpack(name, Path(directory))
        files = {int(path.name): path.read_bytes() for path in (store / "commitlog").iterdir()}
    rows = expected_rows(name)
    return rows, [_record(files, row["physical_offset"], row["store_size"]) for row in rows]


def _record(files: dict[int, bytes], offset: int, size: int) -> bytes:
    base = max(base for base in files if base <= offset)
    return files[base][offset - base : offset - base + size]
