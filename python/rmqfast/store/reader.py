"""Reads a store directory: scans, queries, exports and checks. Never writes to the store or locks it.

Source: RocketMQ's `DefaultMessageStore`, `ExpressionMessageFilter`, `ReputMessageService`,
`PullAPIWrapper`, `ConsumeQueueStore`, `ConsumeQueue`, `IndexService`, `MQAdminImpl`, `MessageDecoder`, `CommitLog`,
`TopicConfigManager`, `ConsumerOffsetManager`, `IndexFile`, `StoreCheckpoint`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, Self, TextIO, Unpack, cast

from rmqfast import _native
from rmqfast.arguments import Duration, Number, Time, integer, seconds, suggests_names, text
from rmqfast.errors import ArgumentError, UnknownMessageError
from rmqfast.message import Damage, GetMessageResult, GetMessageStatus, MessageExt
from rmqfast.pickling import not_picklable
from rmqfast.store.append_options import AppendOptions
from rmqfast.store.config import ConsumerOffsetTable, TopicConfig, TopicConfigTable
from rmqfast.store.config.offsets import warning_of_lost_offsets
from rmqfast.store.damage_warning import check_count, messages_of
from rmqfast.store.exports import ExportFormat, Progress, export
from rmqfast.store.notebook import store_html
from rmqfast.store.report import ExportReport, IndexFile, StoreInfo, VerifyReport
from rmqfast.store.request import (
    BATCH_BYTES,
    BATCH_ROWS,
    MAX_BODY_BYTES,
    GetLimits,
    MessageArguments,
    ScanArguments,
    ScanRequest,
    between,
    check_names,
    milliseconds,
    tag_expression,
    time_range,
)
from rmqfast.store.scan import Scan
from rmqfast.store.scan_source import OnDamage, StoreFiles, StoreSource, Way, fails_on_damage
from rmqfast.store.tail import Tail, start_of

if TYPE_CHECKING:
    from rmqfast.store.dataset import ScanDataset

#: Attributes that only a store opened for appending has.
_APPENDING = frozenset({"append", "append_batch", "append_many", "clean", "flush", "recovery", "live", "last_clean"})


class _ReadOnlyError(ArgumentError, AttributeError):
    """Raised for attributes that only writable stores have. As an `AttributeError`, it makes `hasattr` return False."""


@not_picklable("open the store where it is used, by rmqfast.open_store(path)")
class MessageStore:
    """A snapshot of a store directory, opened by `open_store`. A broker may continue to write to the store.

    `scan`, `get`, `query`, `topics` and the other reads see the same moment until `refresh` moves it, but messages that
    retention or an administrator removes are gone. A `tail` follows new messages. `verify`, `topic_configs` and
    `consumer_offsets` read the current files.

    Example:
        >>> import rmqfast
        >>> with rmqfast.open_store(getfixture("golden_store")("basic-4.9.4")) as store:
        ...     store.topics()["fx_q1"], store.scan("fx_q1", tags="TagA", columns=["tags"]).to_arrow().num_rows
        ({0: (0, 1259)}, 105)
    """

    def __init__(self, native: _native.Store, files: StoreFiles, broker_name: str | None) -> None:
        self._native = native
        self._files = files
        self._broker_name = broker_name
        self.path: Path = Path(files.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def _repr_html_(self) -> str:
        return store_html(type(self).__name__, self.path, self.info, self.topics)

    @property
    def broker_name(self) -> str | None:
        """The value of the column `broker_name` that `open_store` was given."""
        return self._broker_name

    @property
    def commit_log_dirs(self) -> tuple[Path, ...]:
        """The directories of the commit log that `open_store` was given."""
        return tuple(Path(each) for each in self._files.commit_log_dirs)

    # type checkers report a missing method by themselves
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            if name in _APPENDING:
                raise _ReadOnlyError(f"mode: expected 'a' for {name}, got 'r': write open_store(path, mode='a')")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def close(self) -> None:
        """Closes the store with its scans and tails, whose methods then raise. A second call does nothing."""
        self._native.close()

    def refresh(self) -> None:
        """Moves the snapshot to the current content of the store. Scans that exist keep their snapshot.

        Raises:
            StoreError: The store is closed or cannot be read.
        """
        self._native = self._native.refreshed()

    def scan(
        self,
        topic: str | Sequence[str] | None = None,
        *,
        threads: Number = 1,
        way: Way | None = None,
        on_damage: OnDamage = "warn",
        **arguments: Unpack[ScanArguments],
    ) -> Scan:
        """Streams messages as Arrow record batches.

        Args:
            topic: One topic or several; of a topic that was deleted and created again, only messages since. Of a light
                queue (`%LMQ%...`) what it lists, as a consumer gets it: rows have the topics, queue ids and offsets of
                the messages' own queues. Default: every record of the commit log.
            threads: Number of reading threads. With more than one, batches arrive in no order.
            way: "log" reads the log sequentially, "queue" by the consume queues. Default: the faster one.
            on_damage: "warn" skips damaged bytes and warns at the end with a `DamageWarning`. "fail" raises
                `CorruptError` at the first damage; a library that reads the Arrow C stream raises an error of its own.
            arguments: Filters, columns and batch sizes: see `rmqfast.store.ScanArguments`.

        Raises:
            UnknownTopicError: The store does not have the topic.
            UnknownColumnError: A column does not exist.
            ExpressionError: `tags` or `sql` is invalid.
            ArgumentError: A value is out of range.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> store.scan("fx_q1", tags="Aa || BB", columns=["tags"]).to_arrow().num_rows
            213
        """
        request = ScanRequest.of(topic, arguments, broker_name=self._broker_name)
        return Scan(self._scan_source(threads, way, on_damage, arguments.get("as_of")), request)

    def table(
        self,
        topic: str | Sequence[str] | None = None,
        *,
        threads: Number = 1,
        way: Way | None = None,
        on_damage: OnDamage = "warn",
        **arguments: Unpack[ScanArguments],
    ) -> ScanDataset:
        """Returns messages as a table for SQL and data frames: `scan` as a dataset, see `Scan.dataset`.

        Args:
            topic: See `scan`.
            threads: See `scan`.
            way: See `scan`.
            on_damage: See `scan`.
            arguments: Filters, columns and batch sizes: see `rmqfast.store.ScanArguments`.

        Raises:
            UnknownTopicError: The store does not have the topic.
            MissingExtraError: pyarrow is not installed.

        Example:
            >>> import duckdb, rmqfast
            >>> orders = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4")).table("fx_q1")
            >>> duckdb.sql("select tags, count(*) as n from orders group by tags order by n desc limit 1").fetchall()
            [('TagB', 114)]
        """
        return self.scan(topic, threads=threads, way=way, on_damage=on_damage, **arguments).dataset()

    def diff(
        self, a: Time, b: Time, topic: str | Sequence[str] | None = None, **arguments: Unpack[ScanArguments]
    ) -> Scan:
        """Scans the messages that were stored after one time, up to another: those of `as_of=b` without `as_of=a`.

        Args:
            a: A store time, which does not belong to the range.
            b: A later store time, which does.
            topic: See `scan`.
            arguments: Filters, columns and batch sizes: see `rmqfast.store.ScanArguments`.

        Raises:
            ArgumentError: `b` is before `a`, or a value is out of range.
            UnknownTopicError: The store does not have the topic.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> first, last = store.info().first_store_timestamp, store.info().last_store_timestamp
            >>> store.diff(first, last).count() + store.scan(as_of=first).count() == store.scan().count()
            True
        """
        start, end = between(a, b, arguments)
        own: ScanArguments = {**arguments, "start_time": start, "as_of": end}
        return self.scan(topic, **own)

    def _scan_source(self, threads: Number, way: Way | None, on_damage: OnDamage, as_of: Time | None) -> StoreSource:
        """Returns the messages of the store, as the source of a scan. See `scan` for the arguments."""
        self._check_as_of(as_of)
        fails_on_damage(on_damage)
        return replace(self._source(), way=way, threads=integer("threads", threads), on_damage=on_damage)

    def has_topic(self, topic: str) -> bool:
        """Whether the store has the topic: a queue, a configuration, or a message that no queue lists yet.

        Raises:
            StoreError: The store is closed or cannot be read.
        """
        return self._native.has_topic(topic)

    def _check_as_of(self, as_of: Time | None) -> None:
        if as_of is None:
            return
        pieces, _, _ = self._native.plan(ScanRequest(), way=None, cut_bytes=1 << 62, readers=1)
        earliest = self._native.earliest_time(None, None)
        # a log that begins at 0 has lost nothing
        if pieces and pieces[0][1] > 0 and earliest is not None and milliseconds(as_of, name="as_of") < earliest:
            text = f"as_of: expected {earliest} or later, the time of the first message that the log still has"
            raise ArgumentError(f"{text}, got {as_of}: older messages were removed")

    @suggests_names
    def plan(
        self, request: ScanRequest, *, cut_bytes: int, readers: int = 1, way: Way | None = None
    ) -> tuple[list[tuple[str, int, int, bool]], int, str]:
        """Plans a scan as pieces that can be read independently of each other, for example by Spark's tasks.

        Args:
            request: The scan to divide.
            cut_bytes: Approximate maximum of bytes that a piece reads.
            readers: Number of concurrent readers. A large scan has a multiple of as many pieces, of equal size.
            way: See `scan`.

        Returns:
            The pieces (way, first physical offset, end, whether to check body CRCs); the number of messages in the
            queues before filters; the reason for the way.

        Raises:
            UnknownTopicError: The store does not have the topic.
        """
        return self._native.plan(request, way=way, cut_bytes=cut_bytes, readers=readers)

    @suggests_names
    def partitions(
        self,
        request: ScanRequest,
        *,
        least: int | None = None,
        piece_bytes: int | None = None,
        readers: int = 1,
        worker_cores: int | None = None,
    ) -> list[tuple[str, int, int, bool]]:
        """Plans a scan as pieces of a size that suits Spark's tasks.

        Args:
            request: The scan to divide.
            least: Minimum number of pieces, if the log can be divided so often.
            piece_bytes: Approximate bytes of the log per piece. Default: 256 MiB.
            readers: See `plan`.
            worker_cores: Cores of Python workers, which start slowly. For more than four pieces per core, pieces grow
                up to 1 GiB unless `piece_bytes` is given.

        Returns:
            Pieces of `plan` in the order of the log; empty if there is nothing to read.

        Raises:
            UnknownTopicError: The store does not have the topic.
        """
        return self._native.partitions(
            request, least=least, piece_bytes=piece_bytes, readers=readers, worker_cores=worker_cores
        )

    def scan_pieces(self, request: ScanRequest, pieces: Sequence[tuple[str, int, int, bool]]) -> Scan:
        """Scans pieces of `plan`, in this or another process.

        Raises:
            StoreError: The store cannot be read.
        """
        return Scan(replace(self._source(), pieces=tuple(pieces)), request)

    def _source(self) -> StoreSource:
        return StoreSource(self._native, self._files)

    def tail(
        self,
        topic: str | None = None,
        *,
        start: Time = "end",
        last: Number = 0,
        stop: Literal["end"] | Number | None = None,
        poll_interval: Duration = 0.1,
        batch_rows: int = BATCH_ROWS,
        batch_bytes: int = BATCH_BYTES,
        on_damage: OnDamage = "warn",
        **arguments: Unpack[MessageArguments],
    ) -> Tail:
        """Follows the store. Yields new messages as record batches.

        Messages come once, in the order of the log, with checked bodies. A half-written message is waited for. A broker
        with `transientStorePoolEnable` holds messages in its memory for up to 200 ms before a reader can see them.

        Args:
            topic: One topic or several. Default: every record of the commit log.
            start: "end" starts after the last message, "begin" at the first one. A number is the `position` of an
                earlier tail or the physical offset of a record. A datetime or ISO 8601 string starts at the first
                message stored at that time or later.
            last: With start "end": number of last matching messages to yield first.
            stop: A position at which the tail ends, or "end" for the current end of the log. None: it does not end.
            poll_interval: Seconds between polls while there are no new messages.
            batch_rows: Maximum rows of a batch; batches are yielded without waiting until they are full.
            batch_bytes: Approximate bytes of a batch.
            on_damage: "warn" skips damaged bytes and issues one `DamageWarning`. "fail" raises `CorruptError`, again at
                each later poll; its `position` stays after the last batch.
            arguments: Filters and columns: see `rmqfast.store.MessageArguments`.

        Raises:
            UnknownTopicError: The store does not have the topic.
            UnknownColumnError: A column does not exist.
            ExpressionError: `tags` or `sql` is invalid.
            ArgumentError: A value is out of range.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> with store.tail("fx_q1", columns=["queue_offset"], last=3, stop="end") as tail:
            ...     [batch.to_pydict() for batch in tail]
            [{'queue_offset': [1256, 1257, 1258]}]
        """
        check_names(arguments, MessageArguments)
        wanted = cast("ScanArguments", {**arguments, "batch_rows": batch_rows, "batch_bytes": batch_bytes})
        request = ScanRequest.of(topic, wanted, broker_name=self._broker_name)
        count = integer("last", last)
        if count < 0 or (count and not (isinstance(start, str) and start == "end")):
            raise ArgumentError(f"last: expected 0 or more, and start 'end', got {last} and {start!r}")
        # -1 tells the native tail to use the current end
        end = None if stop is None else -1 if stop == "end" else _position("stop", stop)
        native = self._native.tail(
            request,
            start=start_of(start),
            last=count,
            stop=end,
            poll_interval=seconds("poll_interval", poll_interval),
            fails_on_damage=fails_on_damage(on_damage),
        )
        return Tail(native, warns=on_damage == "warn")

    @suggests_names
    def get(
        self,
        topic: str,
        queue_id: Number,
        offset: Number,
        *,
        max_messages: Number = 32,
        tags: str | Sequence[str] = "*",
        max_body_bytes: int = MAX_BODY_BYTES,
        limits: GetLimits | None = None,
    ) -> GetMessageResult:
        """Returns messages of a queue, beginning at an offset, as a broker answers a pull.

        To continue, pass `next_begin_offset` as `offset`, whatever the status, until the status is OFFSET_OVERFLOW_ONE.
        One call examines up to 800 messages (or `max_messages` if higher), within one file of the queue.

        Args:
            topic: The topic.
            queue_id: The queue; a missing queue counts as empty.
            offset: Queue offset.
            max_messages: Maximum number of messages. Their bytes are limited to 256 KiB per 32 messages; the first
                message always fits. A broker never returns more than 32.
            tags: Tag expression, such as "A || B". Hashes of tags decide status and next offset, as at a broker; the
                tags themselves decide `messages`, as in a client.
            max_body_bytes: Maximum bytes of a decompressed body. A larger body is None and listed as damage.
            limits: Limits of a broker instead: 32 messages and 256 KiB, or 8 messages and 64 KiB of those far behind
                the log's end.

        Raises:
            UnknownTopicError: The store does not have the topic.
            ExpressionError: `tags` is invalid.
            ArgumentError: `max_messages` is less than 1.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> result = store.get("fx_q1", 0, 1250)
            >>> result.status, len(result.messages), result.next_begin_offset
            (<GetMessageStatus.FOUND: 'FOUND'>, 9, 1259)
        """
        options = (self._broker_name, max_body_bytes)
        caps = None if limits is None else limits.with_system_values()
        status, (next_offset, low, high), from_slave, rows, damage = self._native.get(
            _queue(topic, queue_id),
            integer("offset", offset),
            max_messages=check_count(max_messages),
            tags=tag_expression(tags),
            options=options,
            limits=caps,
        )
        # the native part returns plain dicts and tuples
        messages = [MessageExt(**row) for row in rows]
        places = [Damage(*entry) for entry in damage]
        return GetMessageResult(GetMessageStatus(status), next_offset, low, high, messages, places, from_slave)

    def check_in_disk(self, topic: str, queue_id: Number, offset: Number, *, limits: GetLimits | None = None) -> bool:
        """Whether a broker would assume that a message is no longer in memory, because it is far before the log's end.

        Args:
            topic: The topic.
            queue_id: The queue.
            offset: Queue offset; False is returned if it has no message.
            limits: Defines how much of the log is in memory. Default: 40 % of this machine's memory.

        Raises:
            UnknownTopicError: The store does not have the topic.
        """
        return self._native.check_in_disk(
            _queue(topic, queue_id), integer("offset", offset), limits=(limits or GetLimits()).with_system_values()
        )

    @suggests_names
    def earliest_time(self, topic: str | None = None, queue_id: Number | None = None) -> int | None:
        """Returns the store time of the first readable message in milliseconds since 1970. None without messages.

        Unlike this method, a 4.9.4 broker answers -1 for the whole store until its first file has 8 MiB of messages.

        Args:
            topic: The topic. Default: the whole commit log.
            queue_id: The queue. Default: all queues of the topic.

        Raises:
            UnknownTopicError: The store does not have the topic.
            ArgumentError: A queue is given without a topic.
        """
        if topic is None and queue_id is not None:
            raise ArgumentError(f"queue_id: expected none without a topic, got {queue_id}")
        return self._native.earliest_time(topic, None if queue_id is None else integer("queue_id", queue_id))

    @suggests_names
    def offset_for_time(
        self, topic: str, queue_id: Number, when: Time, *, rule: Literal["5.x", "4.9.4"] = "5.x"
    ) -> int:
        """Returns the queue offset for a point in time.

        Args:
            topic: The topic.
            queue_id: The queue.
            when: Store time: milliseconds since 1970, ISO 8601, datetime.
            rule: "5.x": the first message stored at `when` or later, or the max offset. "4.9.4": the message stored
                nearest to `when` in the file that modification times select, or the last message; a copied store may
                answer differently.

        Raises:
            UnknownTopicError: The store does not have the topic.
            ArgumentError: An invalid time or an unknown rule.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> store.offset_for_time("fx_q1", 0, "1970-01-01"), store.offset_for_time("fx_q1", 0, "2100-01-01")
            (0, 1259)
        """
        return self._native.offset_for_time(*_queue(topic, queue_id), milliseconds(when, name="when"), rule=rule)

    @suggests_names
    def message_at(self, physical_offset: Number, *, max_body_bytes: int = MAX_BODY_BYTES) -> MessageExt:
        """Returns the message whose record starts at a physical offset.

        Args:
            physical_offset: Byte offset in the commit log.
            max_body_bytes: Maximum bytes of a decompressed body; a larger body is None.

        Raises:
            CorruptError: No intact record starts there.
            ArgumentError: No file of the commit log contains the offset.
        """
        position = integer("physical_offset", physical_offset, 0)
        return messages_of(self._native.message_at(position, options=(self._broker_name, max_body_bytes)))[0]

    @suggests_names
    def query(
        self,
        topic: str,
        key: str,
        *,
        max_messages: Number = 64,
        begin: Time | None = None,
        end: Time | None = None,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> list[MessageExt]:
        """Returns the messages of a topic that have a key, in log order.

        It uses the index files, and reads the parts of the log that are not indexed, such as after a crash. Unlike a
        broker, it returns no messages of other keys with the same hash.

        Args:
            topic: The topic.
            key: One of the keys of the message, or its UNIQ_KEY.
            max_messages: Maximum number of messages; the newest are returned.
            begin: Earliest store time: milliseconds since 1970, ISO 8601, datetime.
            end: Latest store time, inclusive.
            max_body_bytes: Maximum bytes of a decompressed body; a larger body is None.

        Raises:
            UnknownTopicError: The store does not have the topic.
            ArgumentError: An invalid time, or `max_messages` is less than 1.

        Warns:
            DamageWarning: Some bytes were damaged.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> [message.physical_offset for message in store.query("fx_plain", "Aa1")]
            [2469786, 2505518]
        """
        count = check_count(max_messages)
        first, last = time_range(begin, end, names=("begin", "end"))
        # without an end: Java's largest long
        between = (first or 0, (1 << 63) - 1 if last is None else last)
        options = (self._broker_name, max_body_bytes)
        return messages_of(self._native.query(topic, key, max_messages=count, between=between, options=options))

    @suggests_names
    def message_by_id(
        self, message_id: str, *, topic: str | None = None, max_body_bytes: int = MAX_BODY_BYTES
    ) -> MessageExt:
        """Returns the message with an id.

        Args:
            message_id: The broker's id (`offset_msg_id`, whose store host must match the record) or the producer's id
                (`msg_id`).
            topic: The topic, which speeds up the search for a producer's id. Default: all topics.
            max_body_bytes: Maximum bytes of a decompressed body; a larger body is None.

        Raises:
            UnknownMessageError: The store does not have the message.

        Warns:
            DamageWarning: Some bytes were damaged, perhaps those of the message.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> store.message_by_id("7F00000100005212000000000000014E").physical_offset
            334
        """
        options = (self._broker_name, max_body_bytes)
        messages = messages_of(self._native.message_by_id(message_id, topic=topic, options=options))
        if not messages:
            raise UnknownMessageError(f"unknown message {message_id!r}")
        return messages[0]

    @suggests_names
    def export(
        self,
        out: str | os.PathLike[str] | TextIO,
        topic: str | Sequence[str] | None = None,
        *,
        queue_ids: Number | Sequence[Number] | None = None,
        tags: str | Sequence[str] = "*",
        sql: str | None = None,
        keys: Sequence[str] | None = None,
        start_offset: Number | Mapping[int, Number] | None = None,
        end_offset: Number | Mapping[int, Number] | None = None,
        start_time: Time | None = None,
        end_time: Time | None = None,
        format: ExportFormat | None = None,  # noqa: A002  (what it is called elsewhere, too)
        options: AppendOptions | None = None,
        progress: Progress | None = None,
    ) -> ExportReport:
        """Writes the messages of a scan to a new store, or to a file of JSON lines.

        A new store has the same records with the same queue offsets, but new physical offsets and message ids. It has
        consume queues, index, checkpoint and `config/topics.json`, and opens for appending or in RocketMQ without
        recovery. Units that refer to no record take the places of omitted messages, and consumers skip them. Without
        `topic` every record is copied, including prepared and rolled-back messages. Consumer offsets and groups are not
        copied.

        It is written to `out` + ".partial" and moved to `out` at the end.

        Args:
            out: A path that does not exist yet. For JSON lines also an open text file.
            topic: One topic or several. Default: all.
            queue_ids: Only these queues.
            tags: Tag expression, such as "A || B".
            sql: SQL92 expression over the properties.
            keys: Only messages with one of these as key or UNIQ_KEY.
            start_offset: First queue offset: one number, or a number per queue.
            end_offset: Queue offset before which to stop.
            start_time: Earliest store time: a datetime, a date, ISO 8601, milliseconds since 1970, or a NumPy or pandas
                time.
            end_time: Store time before which to stop.
            format: "store" or "jsonl" (rows as `rmqfast store scan -o jsonl` prints them). Default: "jsonl" for an open
                file or a name ending in .jsonl or .ndjson.
            options: File sizes of the new store. Default: those of this store.
            progress: Called now and then with bytes of the log read and total bytes. An exception that it raises ends
                the export.

        Raises:
            UnknownTopicError: The store does not have the topic.
            ExpressionError: `tags` or `sql` is invalid.
            ArgumentError: `out` exists, a value is out of range, or a record does not fit into a file.
            StoreIOError: The operating system refused, such as for a full disk; nothing is left at `out`.
            MissingExtraError: JSON lines need pyarrow, which is not installed.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> report = store.export(getfixture("tmp_path") / "slice", "fx_q1", tags="Aa || BB")
            >>> report.rows, report.ok
            (213, True)
            >>> rmqfast.open_store(report.path).topics()
            {'fx_q1': {0: (5, 1255)}}
        """
        wanted: ScanArguments = {
            "queue_ids": queue_ids,
            "tags": tags,
            "sql": sql,
            "keys": keys,
            "start_offset": start_offset,
            "end_offset": end_offset,
            "start_time": start_time,
            "end_time": end_time,
            # an export must not copy damaged bodies silently
            "verify_crc": True,
        }
        request = ScanRequest.of(topic, wanted, broker_name=self._broker_name)
        return export(self._source(), request, out, form=format, options=options, progress=progress)

    def topics(self) -> dict[str, dict[int, tuple[int, int]]]:
        """Returns the queues of all topics: `{topic: {queue_id: (min_offset, max_offset)}}`.

        A store without consume queues is read as a whole. The min offset belongs to the first message that is still in
        the log; it equals the max offset if there is none.

        Raises:
            StoreError: The store cannot be read.
        """
        return self._native.topics()

    def topic_configs(self) -> dict[str, TopicConfig]:
        """Returns the topics of `config/topics.json` with their queues and permissions.

        Raises:
            CorruptError: The file exists, but neither it nor its `.bak` can be read.
            UnsupportedStoreError: A broker of 5.x keeps its topics in RocksDB instead.
        """
        return dict(TopicConfigTable.load(self.path))

    def consumer_offsets(self) -> dict[tuple[str, str], dict[int, int]]:
        """Returns the groups' offsets as a broker last saved them: `{(topic, group): {queue_id: next_offset}}`.

        Raises:
            CorruptError: `config/consumerOffset.json` exists, but neither it nor its `.bak` can be read.
            UnsupportedStoreError: A broker of 5.x keeps its offsets in RocksDB instead.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("offsets-4.9.4"))
            >>> store.consumer_offsets()["fx_plain", "fx_orderly"]
            {3: 12}
        """
        return {key: dict(queues) for key, queues in ConsumerOffsetTable.load(self.path).items()}

    @suggests_names
    def verify(self, *, crc: bool = True, progress: Callable[[int, int], object] | None = None) -> VerifyReport:
        """Checks the whole store and returns the result. Writes nothing.

        It compares records, consume queues and index with each other, the checkpoint and the configuration files with
        them, and checks CRCs of bodies and checksums of `config/metadata.db`. Memory does not grow with the log.

        Args:
            crc: Whether to check the CRC of every body.
            progress: Called about every 64 MiB with bytes done and total bytes. An exception that it raises ends the
                check.

        Raises:
            StoreError: The store cannot be read.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> report = store.verify()
            >>> report.ok, report.messages, report.units
            (True, 2779, 2779)
        """
        # imported here, because only `verify` needs SQLite
        from rmqfast.store.metadata import check_metadata

        report = self._native.verify(crc=crc, progress=progress)
        damage, notes = check_metadata(self.path)
        report["damage"] = [*(Damage(*entry) for entry in report["damage"]), *damage]
        return VerifyReport(**report | {"notes": self._with_lost_offsets(report["notes"] + notes)})

    def info(self) -> StoreInfo:
        """Returns a summary of the store.

        Raises:
            StoreError: The store cannot be read.
        """
        info = self._native.info()
        info["index_files"] = [IndexFile(*file) for file in info["index_files"]]
        return StoreInfo(path=str(self.path), **info | {"notes": self._with_lost_offsets(info["notes"])})

    def _with_lost_offsets(self, notes: list[str]) -> list[str]:
        note = warning_of_lost_offsets(self.path)
        return notes if note is None else [*notes, note]


def _queue(topic: str, queue_id: Number) -> tuple[str, int]:
    # checked here, because the errors name the arguments
    return text("topic", topic), integer("queue_id", queue_id)


def _position(name: str, given: Number | str) -> int:
    if isinstance(given, str):
        raise ArgumentError(f"{name}: expected a position from 0 on, 'end' or None, got {given!r}")
    return integer(name, given, 0)
