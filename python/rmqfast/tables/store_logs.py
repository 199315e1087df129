"""The logs of one store, or of those of several brokers, as the source of an ingest."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rmqfast._native import SparkStream, read_store_piece
from rmqfast.cluster.topic_options import option_texts
from rmqfast.store import MessageStore, Scan, ScanRequest
from rmqfast.store.scan_source import Piece
from rmqfast.tables.offset_stream import OffsetStream
from rmqfast.tables.source import Step
from rmqfast.tables.store_log import StoreLog

if TYPE_CHECKING:
    import pyarrow as pa

    from rmqfast.message import Damage

#: Bytes of the log that a thread reads at once; it needs a few times as much memory.
PIECE_BYTES = 16 << 20
#: The name under which one store is kept, which needs none.
_ONE = ""


class StoreLogs:
    """The messages of stores, of one broker after the other. A position is a byte offset of each log.

    Args:
        options: What the stores are, as options of a stream of Spark.
        stores: The open stores by broker. One store has the name "".
        request: Messages and columns to select.
        open_store: Opens a store that appears later, by broker and path.
        pattern: A regular expression of topics to select; None for those of the request.
        step_bytes: Bytes of the logs in one step.
        fails: Whether lost and damaged messages are an error.
    """

    def __init__(
        self,
        options: Mapping[str, object],
        stores: Mapping[str, MessageStore],
        request: ScanRequest,
        *,
        open_store: Callable[[str, str], MessageStore],
        pattern: str | None,
        step_bytes: int,
        fails: bool,
    ) -> None:
        self._request, self._pattern, self._open_store = request, pattern, open_store
        self._logs = {name: self._log(name, store) for name, store in stores.items()}
        texts = option_texts(
            {
                **options,
                "startingOffsets": "earliest" if request.start_time is None else None,
                "startingTimestamp": request.start_time,
                "maxBytesPerTrigger": step_bytes,
                "partitionBytes": PIECE_BYTES,
                "failOnDataLoss": fails,
            }
        )
        self.offsets: OffsetStream = OffsetStream(lambda warn: SparkStream.of_store(texts, warn=warn))

    @property
    def schema(self) -> pa.Schema:
        return next(iter(self._logs.values())).schema

    def step_between(self, start: str, end: str) -> Step:
        by_broker: dict[str, list[Piece]] = {}
        for part in self.offsets.pieces(start, end):
            piece, broker = read_store_piece(part)
            name, path = (_ONE, "") if broker is None else broker
            if name not in self._logs:
                self._logs[name] = self._log(name, self._open_store(name, path))
            by_broker.setdefault(name, []).append(piece)
        pieces: list[tuple[str, Piece]] = []
        lost: list[Damage] = []
        for name, parts in by_broker.items():
            held, gone = self._logs[name].present_parts(parts)
            pieces += [(name, piece) for piece in held]
            lost += gone
        return Step(start, end, pieces, lost)

    def scan(self, piece: tuple[str, Piece]) -> Scan:
        name, part = piece
        return self._logs[name].scan(part)

    def damage_behind(self, end: str) -> list[Damage]:
        offsets = json.loads(end)
        of_broker = {_ONE: offsets} if _ONE in self._logs else offsets
        return [
            place
            for name, log in self._logs.items()
            for place in log.damage_behind(of_broker.get(name, {}).get("log", 0))
        ]

    def _log(self, name: str, store: MessageStore) -> StoreLog:
        own = replace(self._request, broker_name=name) if name else self._request
        return StoreLog(store, own, self._pattern)
