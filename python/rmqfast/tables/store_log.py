"""The log of a store, of which an ingest reads parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rmqfast._native import topics_like
from rmqfast.store import MessageStore, Scan, ScanRequest
from rmqfast.store.lost_pieces import clip_to_log, log_bounds
from rmqfast.store.scan_source import Piece
from rmqfast.threads import sleep

if TYPE_CHECKING:
    import pyarrow as pa

    from rmqfast.message import Damage

#: Seconds after which bytes at the log's end count as damaged.
_PATIENCE = 1.0


class StoreLog:
    """The messages of a store, in the order of its log.

    Args:
        store: The store.
        request: Messages and columns to select.
        pattern: A regular expression of topics to select; None for those of the request.
    """

    def __init__(self, store: MessageStore, request: ScanRequest, pattern: str | None) -> None:
        self._store, self._request, self._pattern = store, request, pattern

    @property
    def schema(self) -> pa.Schema:
        return self._store.scan_pieces(self._request, []).schema

    def present_parts(self, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Damage]]:
        """Returns the parts of pieces of the log that it still has, and the rest as damage."""
        self._store.refresh()
        bounds = log_bounds(self._store)
        clipped = [clip_to_log(piece, bounds, self._store.path, self._store.broker_name) for piece in pieces]
        held, lost = [piece for piece, _ in clipped], [place for _, places in clipped for place in places]
        if self._pattern is not None and pieces:
            topics = self._matching_topics(pieces[0][1], pieces[-1][2])
            self._request = replace(self._request, among=topics or None)
            held = held if topics else []
        return held, lost

    def scan(self, piece: Piece) -> Scan:
        return self._store.scan_pieces(self._request, [piece])

    def damage_behind(self, start: int) -> list[Damage]:
        """Returns damaged bytes from an offset on, behind the last message."""
        found = self._damage_behind(start)
        if not found:
            return []
        # a record that a broker is just writing looks damaged, too, but not for long
        sleep(_PATIENCE)
        return [place for place in self._damage_behind(start) if place in found]

    def _matching_topics(self, start: int, end: int) -> tuple[str, ...]:
        """Returns the topics of the pattern that may have messages in a part of the log."""
        names = set(self._store.topics())
        request = ScanRequest(columns=["topic"])
        # records that no queue lists yet may be the first ones of their topic
        pieces, _, _ = self._store.plan(request, cut_bytes=1 << 62)
        parts = [(max(first, start), min(last, end)) for _, first, last, is_unlisted in pieces if is_unlisted]
        scan = self._store.scan_pieces(request, [("log", first, last, True) for first, last in parts if first < last])
        for batch in scan.batches():
            names.update(batch.column("topic").unique().to_pylist())
        return tuple(topics_like(self._pattern or "", sorted(names)))

    def _damage_behind(self, start: int) -> list[Damage]:
        self._store.refresh()
        request = ScanRequest(columns=["queue_offset"], broker_name=self._store.broker_name)
        pieces, _, _ = self._store.plan(request, cut_bytes=1 << 62)
        if not pieces or pieces[-1][2] <= start:
            return []
        # a store that was never read may begin later
        scan = self._store.scan_pieces(request, [("log", max(start, pieces[0][1]), pieces[-1][2], True)])
        for _ in scan.batches():
            pass
        return scan.damage
