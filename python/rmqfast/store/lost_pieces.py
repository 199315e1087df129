"""Parts of a planned piece that a store's log no longer has."""

from __future__ import annotations

from pathlib import Path

from rmqfast.message import Damage
from rmqfast.store.reader import MessageStore
from rmqfast.store.request import ScanRequest
from rmqfast.store.scan_source import Piece


def log_bounds(store: MessageStore) -> tuple[int, int]:
    """Returns the begin and the end of a store's log."""
    # pieces as long as the log: only their ends are needed
    files, _, _ = store.plan(ScanRequest(), cut_bytes=1 << 62)
    return (files[0][1], files[-1][2]) if files else (0, 0)


def clip_to_log(
    piece: Piece, bounds: tuple[int, int], path: Path, broker_name: str | None
) -> tuple[Piece, list[Damage]]:
    """Returns the part of a piece that is in the log, and the rest as damage: brokers may have deleted files."""
    way, from_, to, verify_crc = piece
    first, end = bounds
    start = min(max(from_, first), to)
    stop = max(min(to, end), start)
    reason = f"the log held this when the read was planned, it now is {first} to {end}"
    lost = [
        Damage(at, length, reason, str(path), broker_name)
        for at, length in ((from_, start - from_), (stop, to - stop))
        if length > 0
    ]
    return (way, start, stop, verify_crc), lost
