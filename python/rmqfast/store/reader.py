"""A store directory, read: scans and look-ups. Nothing in it is written, locked or created."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from rmqfast import _native
from rmqfast.store.request import BATCH_BYTES, BATCH_ROWS, MAX_BODY_BYTES, ScanRequest, Time, milliseconds
from rmqfast.store.scan import Scan

__all__ = ["MessageStore"]

Way = Literal["log", "queue"]


class MessageStore:
    """A store directory, opened by `open_store`."""

    def __init__(self, native: _native.Store, path: Path, broker_name: str | None) -> None:
        self._native = native
        self._broker_name = broker_name
        self.path = path

    def __enter__(self) -> MessageStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"MessageStore({str(self.path)!r})"

    def close(self) -> None:
        """Ends the use of the store; scans that were started go on."""

    def scan(
        self,
        topic: str | None = None,
        *,
        queue_ids: Sequence[int] | None = None,
        tags: str = "*",
        sql: str | None = None,
        keys: Sequence[str] | None = None,
        start_offset: int | Mapping[int, int] | None = None,
        end_offset: int | Mapping[int, int] | None = None,
        start_time: Time | None = None,
        end_time: Time | None = None,
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
        batch_bytes: int = BATCH_BYTES,
        verify_crc: bool = False,
        max_body_bytes: int = MAX_BODY_BYTES,
        threads: int = 1,
        way: Way | None = None,
    ) -> Scan:
        """Streams messages as Arrow record batches.

        Args:
            topic: Only this topic; without it every record of the commit log.
            queue_ids: Only these queues.
            tags: Tag expression, as "A || B"; "*" is all. Compared by hash first, then exactly.
            sql: SQL92 condition over the properties, as "a > 3 AND region IN ('eu')".
            keys: Only messages that have one of these keys, or one as UNIQ_KEY.
            start_offset: Queue offsets from here on: one number, or one by queue.
            end_offset: Queue offsets before this.
            start_time: Store timestamps from here on: milliseconds, ISO 8601, datetime.
            end_time: Store timestamps before this.
            columns: Columns of the row, in this order; fewer cost less.
            batch_rows: Rows of a batch, at most.
            batch_bytes: Bytes of a batch, about.
            verify_crc: Check every body. Records that no consume queue lists yet are always checked.
            max_body_bytes: Bytes of a decompressed body; a larger one is null, and damage says so.
            threads: More than one: batches come in no order.
            way: "log" or "queue" overrules the plan's choice between reading the log straight and by consume queue.

        Raises:
            UnknownTopicError: The store has no such topic.
            UnknownColumnError: The row has no such column.
            ExpressionError: `tags` or `sql` does not parse.
            ArgumentError: A value out of range.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> store.scan("fx_q1", tags="Aa || BB", columns=["tags"]).to_arrow().num_rows
            185

        Source: `DefaultMessageStore.getMessage`, `ExpressionMessageFilter`.
        """
        request = ScanRequest(
            topic=topic,
            queue_ids=queue_ids,
            tags=tags,
            sql=sql,
            keys=keys,
            start_offset=start_offset,
            end_offset=end_offset,
            start_time=milliseconds(start_time),
            end_time=milliseconds(end_time),
            columns=columns,
            broker_name=self._broker_name,
            batch_rows=batch_rows,
            batch_bytes=batch_bytes,
            verify_crc=verify_crc,
            max_body_bytes=max_body_bytes,
        )
        return Scan(self._native.scan(request, way=way, threads=threads))

    def plan(
        self, request: ScanRequest, *, cut_bytes: int, way: Way | None = None
    ) -> tuple[list[tuple[str, int, int, bool]], int, str]:
        """Plans a scan as pieces that can be read apart from each other, as by Spark's tasks.

        Args:
            request: The scan.
            cut_bytes: Bytes that a piece shall read, about.
            way: As in `scan`.

        Returns:
            Pieces (way, first physical offset, end, whether bodies must be checked); messages that the queues list before
            filters; why the way was chosen.

        Raises:
            UnknownTopicError: The store has no such topic.

        Source: `docs/decisions`: pieces are ranges of the log, so they never overlap.
        """
        return self._native.plan(request, way=way, cut_bytes=cut_bytes)

    def scan_pieces(self, request: ScanRequest, pieces: Sequence[tuple[str, int, int, bool]]) -> Scan:
        """Scans pieces that `plan` made, here or in another process.

        Args:
            request: The scan that was planned.
            pieces: Some of its pieces.

        Raises:
            StoreError: The store cannot be read.

        Source: as `scan`.
        """
        return Scan(self._native.scan_pieces(request, list(pieces)))
