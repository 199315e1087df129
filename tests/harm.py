"""Damage that tests do to a store."""

from __future__ import annotations

from pathlib import Path


def damage_second_record(store: Path) -> Path:
    """Overwrites the magic code of the second record. Returns the file of the log."""
    log = store / "commitlog" / f"{0:020}"
    raw = bytearray(log.read_bytes())
    second = int.from_bytes(raw[:4], "big")
    raw[second + 4 : second + 8] = b"\xff" * 4
    log.write_bytes(raw)
    return log
