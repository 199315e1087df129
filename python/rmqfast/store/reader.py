"""A store directory, read: scans and look-ups. Nothing in it is written, locked or created."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from rmqfast import _native
from rmqfast.errors import ArgumentError, DamageWarning
from rmqfast.message import Damage, GetMessageResult, GetMessageStatus, MessageExt
from rmqfast.store.report import IndexFile, StoreInfo, VerifyReport
from rmqfast.store.request import BATCH_BYTES, BATCH_ROWS, MAX_BODY_BYTES, ScanRequest, Time, milliseconds
from rmqfast.store.scan import Scan

__all__ = ["MessageStore"]

Way = Literal["log", "queue"]


class MessageStore:
    """A store directory, opened by `open_store`: what it held then, also where a broker goes on writing."""

    def __init__(self, native: _native.Store, path: Path, broker_name: str | None) -> None:
        self._native = native
        self._broker_name = broker_name
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
            Pieces (way, first physical offset, end, whether bodies must be checked); messages that the queues list
            before filters; why the way was chosen.

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

    def get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        *,
        max_messages: int = 32,
        tags: str = "*",
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> GetMessageResult:
        """Messages of a queue from an offset on, as a broker gives them to a pull.

        To read on, pass `next_begin_offset` as `offset`, whatever the status, until that is OFFSET_OVERFLOW_ONE. One
        call looks at 800 messages (at `max_messages`, if that is more) and does not go on into the queue's next file.

        Args:
            topic: The topic.
            queue_id: The queue; one that does not exist is an empty one.
            offset: Queue offset.
            max_messages: At most so many, and at most 256 KiB of them for every 32 asked for; the first one always
                fits. Up to 32 that is what a broker gives; it never gives more.
            tags: Tag expression, as "A || B". The broker's part compares hashes and decides status and next offset; the
                client's part compares the tags themselves and decides `messages`.
            max_body_bytes: Bytes of a decompressed body; a larger one is None, and damage says so.

        Raises:
            UnknownTopicError: The store has no such topic.
            ExpressionError: `tags` does not parse.
            ArgumentError: `max_messages` is less than 1.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> result = store.get("fx_q1", 0, 1250)
            >>> result.status, len(result.messages), result.next_begin_offset
            (<GetMessageStatus.FOUND: 'FOUND'>, 9, 1259)

        Source: `DefaultMessageStore.getMessage`, `PullAPIWrapper.processPullResult`.
        """
        _check_count(max_messages)
        options = (self._broker_name, max_body_bytes)
        status, next_offset, low, high, rows, damage = self._native.get(
            (topic, queue_id), offset, max_messages=max_messages, tags=tags, options=options
        )
        messages = [MessageExt(**row) for row in rows]
        return GetMessageResult(
            GetMessageStatus(status), next_offset, low, high, messages, [Damage(*entry) for entry in damage]
        )

    def offset_for_time(self, topic: str, queue_id: int, when: Time, *, rule: Literal["5.x", "4.9.4"] = "5.x") -> int:
        """The queue offset for a point in time.

        Args:
            topic: The topic.
            queue_id: The queue.
            when: Store time: milliseconds, ISO 8601, datetime.
            rule: "5.x": the first message not before `when`, the max offset where there is none, so that reading on
                from there gives all messages from `when` on and no other. "4.9.4": the message nearest to `when`, in
                the file that modification times point at, the last one for any later time; a copied store answers
                differently.

        Raises:
            UnknownTopicError: The store has no such topic.
            ArgumentError: A text that is no time, a rule that does not exist.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> store.offset_for_time("fx_q1", 0, "1970-01-01"), store.offset_for_time("fx_q1", 0, "2100-01-01")
            (0, 1259)

        Source: `ConsumeQueueStore.getOffsetInQueueByTime` (5.x), `ConsumeQueue.getOffsetInQueueByTime` (4.9.4).
        """
        return self._native.offset_for_time(topic, queue_id, milliseconds(when) or 0, rule=rule)

    def message_at(self, physical_offset: int, *, max_body_bytes: int = MAX_BODY_BYTES) -> MessageExt:
        """The message whose record starts at a physical offset.

        Args:
            physical_offset: Byte offset in the commit log.
            max_body_bytes: Bytes of a decompressed body; a larger one is None.

        Raises:
            CorruptError: No sound record stands there.
            ArgumentError: No file of the commit log holds the offset.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> store.message_at(334).topic
            'fx_q1'

        Source: `DefaultMessageStore.lookMessageByOffset`.
        """
        if physical_offset < 0:
            raise ArgumentError(f"physical offset: expected at least 0, got {physical_offset}")
        return self._messages(self._native.message_at(physical_offset, options=(self._broker_name, max_body_bytes)))[0]

    def query(
        self,
        topic: str,
        key: str,
        *,
        max_messages: int = 64,
        begin: Time | None = None,
        end: Time | None = None,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> list[MessageExt]:
        """Messages of a topic that have a key, in the order of the log.

        The index files lead there; the stretches of the log that none covers, as after a crash, are read. Unlike a
        broker's answer, each message really has the key: others of the same hash are left out.

        Args:
            topic: The topic.
            key: One of the words in KEYS, or the UNIQ_KEY.
            max_messages: At most so many, the newest.
            begin: Store time from here on: milliseconds, ISO 8601, datetime.
            end: Store time up to and with this.
            max_body_bytes: Bytes of a decompressed body; a larger one is None.

        Raises:
            UnknownTopicError: The store has no such topic.
            ArgumentError: A text that is no time, `max_messages` less than 1.

        Warns:
            DamageWarning: Bytes on the way could not be used.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> [message.physical_offset for message in store.query("fx_plain", "Aa1")]
            [2469786, 2505518]

        Source: `DefaultMessageStore.queryMessage`, `IndexService.queryOffset`, `MQAdminImpl.queryMessage`.
        """
        _check_count(max_messages)
        last = milliseconds(end)
        between = (milliseconds(begin) or 0, (1 << 63) - 1 if last is None else last)
        options = (self._broker_name, max_body_bytes)
        return self._messages(
            self._native.query(topic, key, max_messages=max_messages, between=between, options=options)
        )

    def message_by_id(
        self, message_id: str, *, topic: str | None = None, max_body_bytes: int = MAX_BODY_BYTES
    ) -> MessageExt:
        """The message with an id.

        Args:
            message_id: The broker's (`offset_msg_id`: the store host in it must be the record's) or the producer's
                (`msg_id`).
            topic: Only of this topic. It spares the search of all topics for a producer's id.
            max_body_bytes: Bytes of a decompressed body; a larger one is None.

        Raises:
            UnknownMessageError: The store has no such message.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> store.message_by_id("7F00000100005212000000000000014E").physical_offset
            334

        Source: `MessageDecoder.decodeMessageId`, `MQAdminImpl.viewMessage`, `queryMessageByUniqKey`.
        """
        options = (self._broker_name, max_body_bytes)
        return self._messages(self._native.message_by_id(message_id, topic=topic, options=options))[0]

    def verify(self, *, crc: bool = True, progress: Callable[[int, int], object] | None = None) -> VerifyReport:
        """Checks the whole store; writes nothing.

        Every record (lengths, position, CRCs), every consume-queue unit against its record and every record against its
        unit, every index entry against its record, configuration files, the checkpoint. Memory does not grow with the
        log.

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
        return VerifyReport(**report)

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
        return StoreInfo(path=str(self.path), **found)

    def _messages(self, found: tuple[list[dict[str, Any]], list[tuple[int, int, str, str]]]) -> list[MessageExt]:
        rows, damage = found
        if damage:
            first = Damage(*damage[0])
            text = f"{len(damage)} damaged places, the first in {first.file} at offset {first.offset}: {first.reason}"
            warnings.warn(f"{text}; MessageStore.verify lists all", DamageWarning, stacklevel=3)
        return [MessageExt(**row) for row in rows]


def _check_count(max_messages: int) -> None:
    if not 1 <= max_messages <= 1 << 20:
        raise ArgumentError(f"max_messages: expected 1 to {1 << 20}, got {max_messages}")
