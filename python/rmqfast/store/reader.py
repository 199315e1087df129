"""A store directory, read: scans, look-ups, exports, checks. Nothing in it is written, locked or created.

Source: RocketMQ's `DefaultMessageStore`, `ExpressionMessageFilter`, `ReputMessageService`,
`PullAPIWrapper`, `ConsumeQueueStore`, `ConsumeQueue`, `IndexService`, `MQAdminImpl`, `MessageDecoder`, `CommitLog`,
`TopicConfigManager`, `ConsumerOffsetManager`, `IndexFile`, `StoreCheckpoint`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, Self, TextIO, Unpack, cast

from rmqfast import _native
from rmqfast.arguments import Duration, Number, Time, integer, seconds, suggests_names, text
from rmqfast.errors import ArgumentError, UnknownMessageError
from rmqfast.message import Damage, GetMessageResult, GetMessageStatus, MessageExt
from rmqfast.pickling import not_picklable
from rmqfast.store.append_options import AppendOptions
from rmqfast.store.config import ConsumerOffsetTable, TopicConfig, TopicConfigTable
from rmqfast.store.config.lost_offsets import warning_of_lost_offsets
from rmqfast.store.damage_warning import check_count, messages_of
from rmqfast.store.exports import ExportFormat, Progress, export
from rmqfast.store.get_limits import GetLimits
from rmqfast.store.notebook import store_html
from rmqfast.store.report import ExportReport, IndexFile, StoreInfo, VerifyReport
from rmqfast.store.request import (
    BATCH_BYTES,
    BATCH_ROWS,
    MAX_BODY_BYTES,
    MessageArguments,
    ScanArguments,
    ScanRequest,
    check_names,
    milliseconds,
    tag_expression,
    time_range,
)
from rmqfast.store.scan import Scan
from rmqfast.store.tail import Tail, start_of

__all__ = ["MessageStore"]

Way = Literal["log", "queue"]
OnDamage = Literal["warn", "fail"]


#: What a store has that is opened for appending.
_APPENDING = frozenset({"append", "append_batch", "append_many", "clean", "flush", "recovery", "live", "last_clean"})


class _ReadOnlyError(ArgumentError, AttributeError):
    """An attribute of stores that are opened for appending; `hasattr` says no."""


@not_picklable("open the store where it is used, by rmqfast.open_store(path)")
class MessageStore:
    """A store directory, opened by `open_store`: a snapshot of its messages at that time, even if a broker writes on.

    `scan`, `get`, `query`, `topics` and all others tell of the same moment, until `refresh` moves it. What retention or
    an administrator removes meanwhile is gone all the same. A `tail` follows the store from any moment on; `verify`,
    `topic_configs` and `consumer_offsets` read files as they are when they are called.

    Example:
        >>> import rmqfast
        >>> with rmqfast.open_store(getfixture("golden_store")("basic-4.9.4")) as store:
        ...     store.topics()["fx_q1"], store.scan("fx_q1", tags="TagA", columns=["tags"]).to_arrow().num_rows
        ({0: (0, 1259)}, 105)
    """

    def __init__(self, native: _native.Store, path: Path, broker_name: str | None) -> None:
        self._native = native
        self._broker_name = broker_name
        self.path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def _repr_html_(self) -> str:
        return store_html(type(self).__name__, self.path, self.info, self.topics)

    if not TYPE_CHECKING:  # a checker says of itself that a store for reading has no such method

        def __getattr__(self, name: str) -> NoReturn:
            if name in _APPENDING:
                raise _ReadOnlyError(f"mode: expected 'a' for {name}, got 'r': write open_store(path, mode='a')")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def close(self) -> None:
        """Closes the store, its scans and its tails, which raise from then on.

        A second call does nothing.
        """
        self._native.close()

    def refresh(self) -> None:
        """Moves to the present content of the store. Scans made before keep their snapshot.

        Raises:
            StoreError: The store cannot be read, or is closed.

        Example:
            >>> import rmqfast
            >>> small = rmqfast.AppendOptions(file_size=1 << 20, index_slots=1000, index_entries=4000)
            >>> path = getfixture("tmp_path") / "store"
            >>> with rmqfast.open_store(path, mode="a", options=small) as writer:
            ...     first = writer.append(rmqfast.Message("orders", b"paid"))
            ...     store = rmqfast.open_store(path)
            ...     second = writer.append(rmqfast.Message("orders", b"sent"))
            >>> store.topics()
            {'orders': {0: (0, 1)}}
            >>> store.refresh()
            >>> store.topics()
            {'orders': {0: (0, 2)}}
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
            topic: Only this topic, or these, as they are now: of one that was deleted and made anew, what came since.
                Without it every record of the commit log.
            threads: More than one: batches come in no order.
            way: "log" or "queue" overrules the plan's choice between reading the log straight and by consume queue.
            on_damage: What becomes of a reading that meets bytes which it cannot use: "warn" leaves them out and ends
                with a `DamageWarning`, "fail" ends it with a `CorruptError`, through the Arrow C stream with an error
                of the library that reads.
            arguments: Which messages and columns, in what batches: see `rmqfast.store.ScanArguments`.

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
        """
        request = ScanRequest.of(topic, arguments, broker_name=self._broker_name)
        fails, count = _fails(on_damage), integer("threads", threads)
        return Scan(partial(self._native.scan, request, way=way, threads=count, fails_on_damage=fails), request)

    @suggests_names
    def plan(
        self, request: ScanRequest, *, cut_bytes: int, readers: int = 1, way: Way | None = None
    ) -> tuple[list[tuple[str, int, int, bool]], int, str]:
        """Plans a scan as pieces that can be read independently, as by Spark's tasks.

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
        """
        return self._native.partitions(
            request, least=least, piece_bytes=piece_bytes, readers=readers, worker_cores=worker_cores
        )

    def scan_pieces(self, request: ScanRequest, pieces: Sequence[tuple[str, int, int, bool]]) -> Scan:
        """Scans pieces of `plan`, in this or another process.

        Raises:
            StoreError: The store cannot be read.
        """
        return Scan(partial(self._native.scan_pieces, request, list(pieces)), request)

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
        """Follows the store: yields new messages as record batches.

        Each message comes once, whole, its body checked, in the order of the log; files that are added later are found.
        A message that is only half written yet is waited for. Where `transientStorePoolEnable` is on, a broker keeps
        messages in memory of its own for up to 200 ms: they come as much later.

        Args:
            topic: Only this topic, or these; without it every record of the commit log.
            start: "end": what is stored from now on. "begin": from the first message on. A number: the `position` of an
                earlier tail, or any physical offset where a record begins. A datetime or ISO 8601 text: what was stored
                at that time or later.
            last: With start "end": so many of the last messages first, of those that are asked for.
            stop: None: never ends by itself. A position: ends there. "end": ends at what is the log's end now.
            poll_interval: Seconds between two looks where nothing comes.
            batch_rows: Rows of a batch, at most; what is there is not held back until a batch is full.
            batch_bytes: Bytes of a batch, about.
            on_damage: What becomes of a tail that meets bytes which it cannot use: "warn" leaves them out with a
                `DamageWarning`, once, "fail" ends it with a `CorruptError`, which each later look raises again. Its
                `position` stays behind the last batch then.
            arguments: Which messages, and what of them: see `rmqfast.store.MessageArguments`.

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
        """
        check_names(arguments, MessageArguments)
        wanted = cast("ScanArguments", {**arguments, "batch_rows": batch_rows, "batch_bytes": batch_bytes})
        request = ScanRequest.of(topic, wanted, broker_name=self._broker_name)
        count = integer("last", last)
        if count < 0 or (count and not (isinstance(start, str) and start == "end")):
            raise ArgumentError(f"last: expected 0 or more, and start 'end', got {last} and {start!r}")
        end = None if stop is None else -1 if stop == "end" else _position("stop", stop)
        native = self._native.tail(
            request,
            start=start_of(start),
            last=count,
            stop=end,
            poll_interval=seconds("poll_interval", poll_interval),
            fails_on_damage=_fails(on_damage),
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
        """Returns messages of a queue from an offset on, as a broker answers a pull.

        To read on, pass `next_begin_offset` as `offset`, whatever the status, until that is OFFSET_OVERFLOW_ONE. One
        call looks at 800 messages (at `max_messages`, if that is more) and does not go on into the queue's next file.

        Args:
            topic: The topic.
            queue_id: The queue; one that does not exist is an empty one.
            offset: Queue offset.
            max_messages: At most so many, and at most 256 KiB of them for every 32 asked for; the first one always
                fits. Up to 32 that is what a broker gives of what it has in memory; it never gives more.
            tags: Tag expression, as "A || B". The broker's part compares hashes and decides status and next offset; the
                client's part compares the tags themselves and decides `messages`.
            max_body_bytes: Bytes of a decompressed body; a larger one is None, and damage says so.
            limits: A broker's, in place of those that grow with `max_messages`: 32 messages and 256 KiB at most, and 8
                messages and 64 KiB of what lies far behind the log's end.

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
        messages = [MessageExt(**row) for row in rows]
        places = [Damage(*entry) for entry in damage]
        return GetMessageResult(GetMessageStatus(status), next_offset, low, high, messages, places, from_slave)

    def check_in_disk(self, topic: str, queue_id: Number, offset: Number, *, limits: GetLimits | None = None) -> bool:
        """Whether a broker would take a message to be on disk only, as it lies far behind the log's end.

        Args:
            topic: The topic.
            queue_id: The queue.
            offset: Queue offset; where there is no message the answer is no.
            limits: What is taken to be in memory; 40 % of this machine's memory unless given.

        Raises:
            UnknownTopicError: The store has no such topic.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> store.check_in_disk("fx_q1", 0, 0, limits=rmqfast.GetLimits(physical_memory=1 << 20))
            True
        """
        return self._native.check_in_disk(
            _queue(topic, queue_id), integer("offset", offset), limits=(limits or GetLimits()).with_system_values()
        )

    @suggests_names
    def earliest_time(self, topic: str | None = None, queue_id: Number | None = None) -> int | None:
        """The store time of the first message in milliseconds; None without one.

        A 4.9.4 broker says -1 for the whole store unless 8 MiB of messages stand in its first file; this does not.
        Where the first message cannot be read, the first one that can be is taken.

        Args:
            topic: Only of this topic; of the whole commit log without it.
            queue_id: Only of this queue of the topic.

        Raises:
            UnknownTopicError: The store has no such topic.
            ArgumentError: A queue without a topic.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> store.earliest_time(), store.earliest_time("fx_q1", 0)
            (1795231240903, 1795231240975)
        """
        if topic is None and queue_id is not None:
            raise ArgumentError(f"queue_id: expected none without a topic, got {queue_id}")
        return self._native.earliest_time(topic, None if queue_id is None else integer("queue_id", queue_id))

    @suggests_names
    def offset_for_time(
        self, topic: str, queue_id: Number, when: Time, *, rule: Literal["5.x", "4.9.4"] = "5.x"
    ) -> int:
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
        """
        return self._native.offset_for_time(*_queue(topic, queue_id), milliseconds(when, name="when"), rule=rule)

    @suggests_names
    def message_at(self, physical_offset: Number, *, max_body_bytes: int = MAX_BODY_BYTES) -> MessageExt:
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
        """
        count = check_count(max_messages)
        first, last = time_range(begin, end, names=("begin", "end"))
        between = (first or 0, (1 << 63) - 1 if last is None else last)
        options = (self._broker_name, max_body_bytes)
        return messages_of(self._native.query(topic, key, max_messages=count, between=between, options=options))

    @suggests_names
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

        Warns:
            DamageWarning: Bytes on the way could not be used: the message may have been among them.

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

        A new store has the same records, compressed bodies as they are, with the same queue offsets: only their
        physical offsets, and the ids made of those, are new. Consume queues, index, checkpoint and
        `config/topics.json` are made; it opens with `open_store(mode="a")` and in RocketMQ without recovery. Where
        messages of a queue are left out, units that lead nowhere keep the others' places; a consumer is led past them.
        Without `topic` every record goes along, prepared and rolled-back ones, too; consumer offsets and groups do not.

        Nothing is at `out` before all of it is on the disk: it is made beside it, as `out` + ".partial".

        Args:
            out: Where to: a path where nothing is yet. For JSON lines also an open text file.
            topic: Only this topic, or these; all without it.
            queue_ids: Only these queues.
            tags: Tag expression, as "A || B".
            sql: SQL92 condition over the properties.
            keys: Only messages that have one of these keys, or one as UNIQ_KEY.
            start_offset: Queue offsets from here on: one number, or one by queue.
            end_offset: Queue offsets before this.
            start_time: Store timestamps from here on: a datetime, a date, ISO 8601, milliseconds since 1970, or NumPy's
                or pandas' of these.
            end_time: Store timestamps before this.
            format: "store" or "jsonl" (rows as `rmqfast store scan -o jsonl` prints them); unless given, "jsonl" for an
                open file and for names that end in .jsonl or .ndjson.
            options: Sizes of the new store's files; those of this store unless given.
            progress: Called now and then with bytes of the log that were read, and bytes in all; what it raises ends
                the export.

        Raises:
            UnknownTopicError: The store has no such topic.
            ExpressionError: `tags` or `sql` does not parse.
            ArgumentError: Something is at `out`; a value out of range; a file size that a record does not fit.
            StoreIOError: The operating system refused, as for a full disk; nothing is left at `out`.
            MissingExtraError: JSON lines need pyarrow.

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
            "verify_crc": True,
        }
        request = ScanRequest.of(topic, wanted, broker_name=self._broker_name)
        return export(self._native, request, out, form=format, options=options, progress=progress)

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
        """
        return self._native.topics()

    def topic_configs(self) -> dict[str, TopicConfig]:
        """The topics of `config/topics.json`: their queues and permissions.

        Raises:
            CorruptError: The file is there, and neither it nor its `.bak` can be read.
            UnsupportedStoreError: A broker of 5.x keeps its topics in RocksDB, and has no such file.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
            >>> store.topic_configs()["fx_q8"].write_queue_nums
            8
        """
        return dict(TopicConfigTable.load(self.path))

    def consumer_offsets(self) -> dict[tuple[str, str], dict[int, int]]:
        """The offsets of groups: `{(topic, group): {queue_id: next_offset}}`, as last saved by a broker.

        Raises:
            CorruptError: `config/consumerOffset.json` is there, and neither it nor its `.bak` can be read.
            UnsupportedStoreError: A broker of 5.x keeps its offsets in RocksDB, and has no such file.

        Example:
            >>> import rmqfast
            >>> store = rmqfast.open_store(getfixture("golden_store")("offsets-4.9.4"))
            >>> store.consumer_offsets()["fx_plain", "fx_orderly"]
            {3: 12}
        """
        return {key: dict(queues) for key, queues in ConsumerOffsetTable.load(self.path).items()}

    @suggests_names
    def verify(self, *, crc: bool = True, progress: Callable[[int, int], object] | None = None) -> VerifyReport:
        """Checks the whole store; writes nothing.

        Every record (lengths, position, CRCs), every consume-queue unit against its record and every record against its
        unit, every index entry against its record; the checkpoint against the log and the index, configuration files
        and what they say of topics and offsets against the queues, checksums of `config/metadata.db`. Memory does not
        grow with the log.

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
        """
        # not at the top: few who read a store need SQLite
        from rmqfast.store.metadata import check_metadata

        report = self._native.verify(crc=crc, progress=progress)
        damage, notes = check_metadata(self.path)
        report["damage"] = [*(Damage(*entry) for entry in report["damage"]), *damage]
        return VerifyReport(**report | {"notes": self._with_lost_offsets(report["notes"] + notes)})

    def info(self) -> StoreInfo:
        """Returns a summary of the store.

        Raises:
            StoreError: The store cannot be read.

        Example:
            >>> import rmqfast
            >>> info = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4")).info()
            >>> info.version, info.commit_log_file_size, info.max_offset
            ('4.x', 1048576, 2515548)
        """
        info = self._native.info()
        info["index_files"] = [IndexFile(*file) for file in info["index_files"]]
        return StoreInfo(path=str(self.path), **info | {"notes": self._with_lost_offsets(info["notes"])})

    def _with_lost_offsets(self, notes: list[str]) -> list[str]:
        note = warning_of_lost_offsets(self.path)
        return notes if note is None else [*notes, note]


def _queue(topic: str, queue_id: Number) -> tuple[str, int]:
    return text("topic", topic), integer("queue_id", queue_id)


def _fails(on_damage: str) -> bool:
    if on_damage not in ("warn", "fail"):
        raise ArgumentError(f"on_damage: expected 'warn' or 'fail', got {on_damage!r}")
    return on_damage == "fail"


def _position(name: str, given: Number | str) -> int:
    if isinstance(given, str):
        raise ArgumentError(f"{name}: expected a position from 0 on, 'end' or None, got {given!r}")
    return integer(name, given, 0)
