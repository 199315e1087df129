"""The log of a store as the source of an ingest. Its position is a byte offset of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqfast._native import SparkStream, read_store_piece
from rmqfast.cluster.topic_options import option_texts
from rmqfast.store import MessageStore, Scan, ScanRequest
from rmqfast.store.lost_pieces import clip_to_log
from rmqfast.tables.position import Position
from rmqfast.tables.source import Step, errors_name_tables, text_about_table
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
        step_bytes: Bytes of the log in one step.
        fails: Whether lost and damaged messages are an error.
    """

    def __init__(self, store: MessageStore, request: ScanRequest, *, step_bytes: int, fails: bool) -> None:
        self._store, self._request = store, request
        options = {
            "storePath": str(store.path),
            "commitLogDirs": [str(each) for each in store.commit_log_dirs],
            "startingOffsets": "earliest" if request.start_time is None else None,
            "startingTimestamp": request.start_time,
            "maxBytesPerTrigger": step_bytes,
            "partitionBytes": PIECE_BYTES,
            "failOnDataLoss": fails,
        }
        # raises an error for a topic that the store does not have
        store.plan(request, cut_bytes=1 << 62)
        self.losses: list[str] = []
        self._stream = SparkStream.of_store(
            option_texts(options), warn=lambda text: self.losses.append(text_about_table(text))
        )

    @property
    def schema(self) -> pa.Schema:
        return self._store.scan_pieces(self._request, []).schema

    def initial(self) -> str:
        return self._stream.initial()

    def fix_end(self) -> str:
        self._stream.aim()
        return self._stream.latest(None, is_limited=False)

    def next_step(self, start: str) -> Step | None:
        with errors_name_tables():
            end = self._stream.latest(start, is_limited=True)
        step = self.step_between(start, end)
        return step if step.pieces else None

    def step_between(self, start: str, end: str) -> Step:
        with errors_name_tables():
            pieces = self._stream.pieces(start, end)
        self._store.refresh()
        lost: list[Damage] = []
        for piece in pieces:
            lost += clip_to_log(self._store, read_store_piece(piece))[1]
        return Step(start, end, pieces, lost)

    def scan(self, piece: bytes) -> Scan:
        held, _ = clip_to_log(self._store, read_store_piece(piece))
        return self._store.scan_pieces(self._request, [held])

    def damage_behind(self, end: str) -> list[Damage]:
        found = self._damage_behind(end)
        if not found:
            return []
        # a record that a broker is just writing looks damaged, too, but not for long
        sleep(_PATIENCE)
        return [place for place in self._damage_behind(end) if place in found]

    def close(self) -> None:
        self._stream.close()

    def _damage_behind(self, end: str) -> list[Damage]:
        self._store.refresh()
        (start,) = Position(offsets=end, selection=None).numbers().values()
        request = ScanRequest(columns=["queue_offset"])
        pieces, _, _ = self._store.plan(request, cut_bytes=1 << 62)
        if not pieces or pieces[-1][2] <= start:
            return []
        scan = self._store.scan_pieces(request, [("log", start, pieces[-1][2], True)])
        for _ in scan.batches():
            pass
        return scan.damage
