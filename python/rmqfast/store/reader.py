"""A store directory, read: scans, look-ups, checks. Nothing in it is written, locked or created."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Literal, Self

from rmqfast import _native
from rmqfast.errors import ArgumentError
from rmqfast.message import Damage
from rmqfast.store.config import ConsumerOffsetTable, TopicConfig, TopicConfigTable
from rmqfast.store.config.lost_offsets import lost_offsets_note
from rmqfast.store.exports import Exports
from rmqfast.store.report import IndexFile, StoreInfo, VerifyReport
from rmqfast.store.request import BATCH_BYTES, BATCH_ROWS, MAX_BODY_BYTES, ScanRequest, Time, one_or_several, time_range
from rmqfast.store.scan import Scan
from rmqfast.store.tail import Tail, start_of

__all__ = ["MessageStore"]

Way = Literal["log", "queue"]


class MessageStore(Exports):
    """A store directory, opened by `open_store`: what it held then, also where a broker goes on writing."""

    def __init__(self, native: _native.Store, path: Path, broker_name: str | None) -> None:
        super().__init__(native, broker_name)
        self.path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"MessageStore({str(self.path)!r})"

    def close(self) -> None:
        """Ends the use of the store; scans that were started go on."""

    def scan(
        self,
        topic: str | Sequence[str] | None = None,
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
            topic: Only this topic, or these; without it every record of the commit log.
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
            213

        Source: `DefaultMessageStore.getMessage`, `ExpressionMessageFilter`.
        """
        one_topic, several = one_or_several(topic)
        first_time, last_time = time_range(start_time, end_time)
        request = ScanRequest(
            topic=one_topic,
            among=several,
            queue_ids=queue_ids,
            tags=tags,
            sql=sql,
            keys=keys,
            start_offset=start_offset,
            end_offset=end_offset,
            start_time=first_time,
            end_time=last_time,
            columns=columns,
            broker_name=self._broker_name,
            batch_rows=batch_rows,
            batch_bytes=batch_bytes,
            verify_crc=verify_crc,
            max_body_bytes=max_body_bytes,
        )
        return Scan(partial(self._native.scan, request, way=way, threads=threads))

    def plan(
        self, request: ScanRequest, *, cut_bytes: int, readers: int = 1, way: Way | None = None
    ) -> tuple[list[tuple[str, int, int, bool]], int, str]:
        """Plans a scan as pieces that can be read apart from each other, as by Spark's tasks.

        Args:
            request: The scan.
            cut_bytes: Bytes that a piece shall read, at most, about.
            readers: How many read at once: the pieces of a large scan are a multiple of it, and equal.
            way: As in `scan`.

        Returns:
            Pieces (way, first physical offset, end, whether bodies must be checked); messages that the queues list
            before filters; why the way was chosen.

        Raises:
            UnknownTopicError: The store has no such topic.

        Source: `docs/decisions`: pieces are ranges of the log, so they never overlap.
        """
        return self._native.plan(request, way=way, cut_bytes=cut_bytes, readers=readers)

    def partitions(
        self,
        request: ScanRequest,
        *,
        least: int | None = None,
        piece_bytes: int | None = None,
        readers: int = 1,
        worker_cores: int | None = None,
    ) -> list[tuple[str, int, int, bool]]:
        """Plans a scan as pieces of a size that suits Spark, a task each.

        Args:
            request: The scan.
            least: At least so many pieces, where the log can be cut so often.
            piece_bytes: Bytes of the log that a piece reads, about; 256 MiB unless given.
            readers: As in `plan`.
            worker_cores: Those of Python workers, which begin slowly: with more than four pieces for each core,
                larger ones of up to 1 GiB are made, unless `piece_bytes` is given.

        Returns:
            Pieces in the order of the log, as `plan` gives them; none where there is nothing to read.

        Raises:
            UnknownTopicError: The store has no such topic.

        Source: as `plan`.
        """
        return self._native.partitions(
            request, least=least, piece_bytes=piece_bytes, readers=readers, worker_cores=worker_cores
        )

    def scan_pieces(self, request: ScanRequest, pieces: Sequence[tuple[str, int, int, bool]]) -> Scan:
        """Scans pieces that `plan` made, here or in another process.

        Args:
            request: The scan that was planned.
            pieces: Some of its pieces.

        Raises:
            StoreError: The store cannot be read.

        Source: as `scan`.
        """
        return Scan(partial(self._native.scan_pieces, request, list(pieces)))

    def tail(
        self,
        topic: str | None = None,
        *,
        queue_ids: Sequence[int] | None = None,
        tags: str = "*",
        sql: str | None = None,
        keys: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        start: int | str | datetime = "end",
        last: int = 0,
        stop: Literal["end"] | int | None = None,
        poll_interval: float = 0.1,
        batch_rows: int = BATCH_ROWS,
        batch_bytes: int = BATCH_BYTES,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> Tail:
        """Follows the store: messages as record batches, as they are stored by a broker or by another process.

        Each message comes once, whole, its body checked, in the order of the log; files that are added later are found.
        A message that is only half written yet is waited for. Where `transientStorePoolEnable` is on, a broker keeps
        messages in memory of its own for up to 200 ms: they come as much later.

        Args:
            topic: Only this topic, or these; without it every record of the commit log.
            queue_ids: Only these queues.
            tags: Tag expression, as in `scan`.
            sql: SQL92 condition over the properties.
            keys: Only messages that have one of these keys, or one as UNIQ_KEY.
            columns: Columns of the row, in this order.
            start: "end": what is stored from now on. "begin": from the first message on. A number: the `position` of an
                earlier tail, or any physical offset where a record begins. A datetime or ISO 8601 text: what was stored
                at that time or later.
            last: With start "end": so many of the last messages first, of those that are asked for.
            stop: None: never ends by itself. A position: ends there. "end": ends at what is the log's end now.
            poll_interval: Seconds between two looks where nothing comes.
            batch_rows: Rows of a batch, at most; what is there is not held back until a batch is full.
            batch_bytes: Bytes of a batch, about.
            max_body_bytes: Bytes of a decompressed body; a larger one is null, and damage says so.

        Raises:
            UnknownTopicError: The store has no such topic.
            UnknownColumnError: The row has no such column.
            ExpressionError: `tags` or `sql` does not parse.
            ArgumentError: A value out of range.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> with store.tail("fx_q1", columns=["queue_offset"], last=3, stop="end") as tail:
            ...     [batch.to_pydict() for batch in tail]
            [{'queue_offset': [1256, 1257, 1258]}]

        Source: `ReputMessageService.doReput`, which follows the log within a broker.
        """
        request = ScanRequest(
            topic=topic,
            queue_ids=queue_ids,
            tags=tags,
            sql=sql,
            keys=keys,
            columns=columns,
            broker_name=self._broker_name,
            batch_rows=batch_rows,
            batch_bytes=batch_bytes,
            max_body_bytes=max_body_bytes,
        )
        if last < 0 or (last and start != "end"):
            raise ArgumentError(f"last: expected 0 or more, and start 'end', got {last} and {start!r}")
        if isinstance(stop, int) and stop < 0:
            raise ArgumentError(f"stop: expected a position from 0 on, 'end' or None, got {stop}")
        end = -1 if stop == "end" else stop
        where = start_of(start)
        return Tail(self._native.tail(request, start=where, last=last, stop=end, poll_interval=poll_interval))

    def topics(self) -> dict[str, dict[int, tuple[int, int]]]:
        """Queues of all topics: `{topic: {queue_id: (min_offset, max_offset)}}`.

        Those that exist in files, or in the end of the log that no queue lists yet; in a store without consume queues
        the whole log is read. The min offset is that of the first message still in the log, and equals the max offset
        where all are gone.

        Raises:
            StoreError: The store cannot be read.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> store.topics()["fx_q1"]
            {0: (0, 1259)}

        Source: `ConsumeQueue.getMinOffsetInQueue` (5.x), `ConsumeQueue.getMaxOffsetInQueue`.
        """
        return self._native.topics()

    def topic_configs(self) -> dict[str, TopicConfig]:
        """The topics that `config/topics.json` names, as the broker has them: queues, permissions.

        Raises:
            CorruptError: The file is there, and neither it nor its `.bak` can be read.
            UnsupportedStoreError: A broker of 5.x keeps its topics in RocksDB, and has no such file.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> store.topic_configs()["fx_q8"].write_queue_nums
            8

        Source: `TopicConfigManager.decode`.
        """
        return dict(TopicConfigTable.load(self.path))

    def consumer_offsets(self) -> dict[tuple[str, str], dict[int, int]]:
        """How far groups have consumed: `{(topic, group): {queue_id: next_offset}}`, as last saved by a broker.

        Raises:
            CorruptError: `config/consumerOffset.json` is there, and neither it nor its `.bak` can be read.
            UnsupportedStoreError: A broker of 5.x keeps its offsets in RocksDB, and has no such file.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("offsets-4.9.4"))
            >>> store.consumer_offsets()["fx_plain", "fx_orderly"]
            {3: 12}

        Source: `ConsumerOffsetManager.decode`.
        """
        return {key: dict(queues) for key, queues in ConsumerOffsetTable.load(self.path).items()}

    def verify(self, *, crc: bool = True, progress: Callable[[int, int], object] | None = None) -> VerifyReport:
        """Checks the whole store; writes nothing.

        Every record (lengths, position, CRCs), every consume-queue unit against its record and every record against its
        unit, every index entry against its record; the checkpoint against the log and the index, configuration files
        and what they say of topics and offsets against the queues. Memory does not grow with the log.

        Args:
            crc: Check the CRC of every body.
            progress: Called about every 64 MiB with bytes done and bytes in all; what it raises ends the check.

        Raises:
            StoreError: The store cannot be read.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> report = store.verify()
            >>> report.ok, report.messages, report.units
            (True, 2779, 2779)

        Source: `CommitLog.checkMessageAndReturnSize`, `ConsumeQueue.recover`, `IndexFile.putKey`.
        """
        report = self._native.verify(crc=crc, progress=progress)
        report["damage"] = [Damage(*entry) for entry in report["damage"]]
        return VerifyReport(**report | {"notes": self._with_lost_offsets(report["notes"])})

    def info(self) -> StoreInfo:
        """What this store is, at a glance.

        Raises:
            StoreError: The store cannot be read.

        Example:
            >>> import rmqfast
            >>> info = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4")).info()
            >>> info.version, info.commit_log_file_size, info.max_offset
            ('4.x', 1048576, 2515548)

        Source: `DefaultMessageStore.load`, `StoreCheckpoint`.
        """
        found = self._native.info()
        found["index_files"] = [IndexFile(*file) for file in found["index_files"]]
        return StoreInfo(path=str(self.path), **found | {"notes": self._with_lost_offsets(found["notes"])})

    def _with_lost_offsets(self, notes: list[str]) -> list[str]:
        lost = lost_offsets_note(self.path)
        return notes if lost is None else [*notes, lost]
