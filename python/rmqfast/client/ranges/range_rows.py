"""What pulls brought as Arrow batches, without an object for each message."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rmqfast._native import Fetched, fetched_to_arrow
from rmqfast.client.ranges.range_request import RangeRequest
from rmqfast.client.ranges.row_filter import RowFilter
from rmqfast.errors import CorruptError, MissingExtraError
from rmqfast.store import COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)

_PLACE = ("broker_name", "queue_id", "queue_offset", "body")


class RangeRows:
    """Makes batches of what pulls brought.

    Args:
        request: Which columns, of which messages.

    Source: none; Java's client makes an object of each message.
    """

    def __init__(self, request: RangeRequest) -> None:
        self._request, self._columns = request, list(request.columns or COLUMNS)
        self._filter = RowFilter(request)

    def batches(self, fetched: Sequence[Fetched]) -> Iterator[pa.RecordBatch]:
        """Yields batches of the columns asked for, of the messages that are wanted.

        Raises:
            CorruptError: A body that does not decompress, or does not match its CRC where that is looked at, unless
                `on_damage` is "warn".
            MissingExtraError: pyarrow is not installed.
        """
        changed = self._changed(fetched) if self._request.verify_crc else ()
        if self._request.keys is not None and not self._has_any(fetched):
            return  # keys are rare: no body is decompressed for nothing
        for batch in self._made(fetched, self._columns, changed):
            if "body" in self._columns and batch.column("body").null_count:
                self._tell_of_bodies(fetched, changed)
            if batch.num_rows:
                yield batch

    def _has_any(self, fetched: Sequence[Fetched]) -> bool:
        return any(batch.num_rows for batch in self._made(fetched, list(self._filter.columns)))

    def _made(
        self, fetched: Sequence[Fetched], columns: list[str], changed: Sequence[int] = ()
    ) -> Iterator[pa.RecordBatch]:
        read = [*columns, *(name for name in self._filter.columns if name not in columns)]
        most = self._request.max_body_bytes
        made = fetched_to_arrow(fetched, read, microseconds=self._request.microseconds, max_body_bytes=most)
        for batch in map(_pyarrow().record_batch, made):
            kept = self._filter.kept(batch, changed)
            yield kept if len(read) == len(columns) else kept.select(columns)

    def _changed(self, fetched: Sequence[Fetched]) -> list[int]:
        """Physical offsets of the messages whose bodies are not those that were stored."""
        found = [view for answer in fetched for view in answer.changed()]
        if found:
            places = [_place(view.broker_name, view.queue_id, view.queue_offset) for view in found]
            self._tell(f"{len(places)} bodies do not match their CRC", places, "leaves them out")
        return [view.physical_offset for view in found]

    def _tell_of_bodies(self, fetched: Sequence[Fetched], changed: Sequence[int]) -> None:
        """Which bodies are of no use: they are looked for once more, as they are rare."""
        rows = [row for batch in self._made(fetched, list(_PLACE), changed) for row in batch.to_pylist()]
        places = [
            _place(row["broker_name"], row["queue_id"], row["queue_offset"]) for row in rows if row["body"] is None
        ]
        limit = self._request.max_body_bytes
        self._tell(f"{len(places)} bodies do not decompress to {limit} bytes at most", places, "gives them as null")

    def _tell(self, what: str, places: Sequence[str], otherwise: str) -> None:
        text = f"topic {self._request.topic}: {what}: {'; '.join(places)}"
        if self._request.on_damage == "fail":
            raise CorruptError(f'{text}; on_damage="warn" (failOnDataLoss=false) {otherwise}')
        _log.warning("%s", text)


def _place(broker_name: str | None, queue_id: int, queue_offset: int) -> str:
    return f"broker {broker_name}, queue {queue_id}, offset {queue_offset}"


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtraError("pyarrow is needed for this: pip install 'rmqfast[arrow]'") from error
    return pa
