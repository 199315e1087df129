"""A store as RocketMQ's own classes read it."""

from __future__ import annotations

from pathlib import Path

from tests import golden_stores
from tests.interop.rocketmq import java
from tests.store.scanned import opened, rows_of

Lines = dict[str, list[golden_stores.Line]]


def check_dump(path: Path) -> Lines:
    """What the real 4.9.4 says of a store with the index geometry of the golden ones, by kind.

    It must find the store sound, and read what a scan reads; each unit leads to a message.
    """
    flags = ["--slots", golden_stores.GEOMETRY.slots, "--index-num", golden_stores.GEOMETRY.entries]
    lines = golden_stores.by_kind(java("4.9.4", "DumpStore", path, *flags).splitlines())
    assert lines["store"][0]["loaded"] is True
    wanted = golden_stores.rows_of(lines["msg"], "4.9.4")
    assert list(golden_stores.differences(rows_of(opened(path).scan(verify_crc=True)), wanted)) == []
    assert all(line["leadsToMessage"] for line in lines["cq"])
    return lines


def check_keys(path: Path) -> None:
    """As `check_dump`; each key of a message leads somewhere, too."""
    indexed = {(line["topic"], line["key"]) for line in check_dump(path)["index"]}
    rows = rows_of(opened(path).scan(columns=["topic", "keys"]))
    assert {(row["topic"], key) for row in rows for key in (row["keys"] or "").split()} <= indexed
