"""The log of a store as the source of an ingest. Its position is a byte offset of the log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rmqfast._native import SparkStream, read_store_piece, topics_like
from rmqfast.cluster.topic_options import option_texts
from rmqfast.store import MessageStore, Scan, ScanRequest
from rmqfast.store.lost_pieces import clip_to_log, log_bounds
from rmqfast.store.scan_source import Piece
from rmqfast.tables.offset_stream import OffsetStream
from rmqfast.tables.position import Position
from rmqfast.tables.source import Step
from rmqfast.threads import sleep

if TYPE_CHECKING:
    import pyarrow as pa

    from rmqfast.message import Damage

#: Seconds after which bytes at the log's end count as damaged.
_PATIENCE = 1.0
#: Bytes of the log that a thread reads at once; it needs a few times as much memory.
PIECE_BYTES = 16 << 20


class StoreLog:
    """The messages of a store, in the order of its log.

    Args:
        store: The store.
        request: Messages and columns to select.
        pattern: A regular expression of topics to select; None for those of the request.
        step_bytes: Bytes of the log in one step.
        fails: Whether lost and damaged messages are an error.
    """

    def __init__(
        self, store: MessageStore, request: ScanRequest, *, pattern: str | None, step_bytes: int, fails: bool
    ) -> None:
        self._store, self._request, self._pattern = store, request, pattern
        options = {
            "storePath": str(store.path),
            "commitLogDirs": [str(each) for each in store.commit_log_dirs],
            "startingOffsets": "earliest" if request.start_time is None else None,
            "startingTimestamp": request.start_time,
            "maxBytesPerTrigger": step_bytes,
            "partitionBytes": PIECE_BYTES,
            "failOnDataLoss": fails,
        }
        # raises an error for a topic that the store does not have, and for an invalid pattern
        store.plan(request, cut_bytes=1 << 62)
        topics_like(pattern or "", [])
        texts = option_texts(options)
        self.offsets: OffsetStream = OffsetStream(lambda warn: SparkStream.of_store(texts, warn=warn))

    @property
    def schema(self) -> pa.Schema:
        return self._store.scan_pieces(self._request, []).schema

    def step_between(self, start: str, end: str) -> Step:
        pieces = self.offsets.pieces(start, end)
        self._store.refresh()
        bounds = log_bounds(self._store)
        parts = [read_store_piece(piece)[0] for piece in pieces]
        clipped = [clip_to_log(part, bounds, self._store.path, self._store.broker_name) for part in parts]
        held, lost = [piece for piece, _ in clipped], [place for _, places in clipped for place in places]
        if self._pattern is not None:
            topics = self._matching_topics(_offset(start), _offset(end))
            self._request = replace(self._request, among=topics or None)
            held = held if topics else []
        return Step(start, end, held, lost)

    def scan(self, piece: Piece) -> Scan:
        return self._store.scan_pieces(self._request, [piece])

    def damage_behind(self, end: str) -> list[Damage]:
        found = self._damage_behind(end)
        if not found:
            return []
        # a record that a broker is just writing looks damaged, too, but not for long
        sleep(_PATIENCE)
        return [place for place in self._damage_behind(end) if place in found]

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

    def _damage_behind(self, end: str) -> list[Damage]:
        self._store.refresh()
        start, request = _offset(end), ScanRequest(columns=["queue_offset"])
        pieces, _, _ = self._store.plan(request, cut_bytes=1 << 62)
        if not pieces or pieces[-1][2] <= start:
            return []
        scan = self._store.scan_pieces(request, [("log", start, pieces[-1][2], True)])
        for _ in scan.batches():
            pass
        return scan.damage


def _offset(offsets: str) -> int:
    (offset,) = Position(offsets=offsets, selection=None).numbers().values()
    return offset
