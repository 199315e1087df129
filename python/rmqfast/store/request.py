"""The request of a scan. Its arguments are checked once. It can be pickled for Spark's workers.

Source: RocketMQ's `MessageStoreConfig`, `DefaultMessageStore`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict, cast, overload

from rmqfast import _native
from rmqfast._native import COLUMNS
from rmqfast.arguments import (
    Number,
    Time,
    check_fields,
    integer,
    milliseconds_of,
    suggests_names,
    unknown_argument,
    whole,
)
from rmqfast.errors import ArgumentError, ArgumentTypeError, ExpressionWarning, UnknownColumnError
from rmqfast.store.damage_warning import CallerLine
from rmqfast.store.decode import Decode, Framing, OnError, Schema, check_decode, is_decoded
from rmqfast.system import physical_memory


@suggests_names
@dataclass(frozen=True, kw_only=True)
class GetLimits:
    """The limits that a broker puts on one pull.

    A message counts as being on disk if it lies further behind the log's end than `access_ratio` percent of the memory.

    Args:
        count_in_memory: Maximum number of messages (`maxTransferCountOnMessageInMemory`).
        bytes_in_memory: Maximum bytes of records (`maxTransferBytesOnMessageInMemory`); the first record always fits.
        count_in_disk: Maximum number of messages on disk (`maxTransferCountOnMessageInDisk`).
        bytes_in_disk: Maximum bytes of records on disk (`maxTransferBytesOnMessageInDisk`).
        access_ratio: Percentage of the memory that is assumed to cache the log's end (`accessMessageInMemoryMaxRatio`).
        physical_memory: Bytes of memory of the broker's machine. Default: this machine's.

    Raises:
        ArgumentError: A value out of range.
    """

    count_in_memory: int = 32
    bytes_in_memory: int = 256 << 10
    count_in_disk: int = 8
    bytes_in_disk: int = 64 << 10
    access_ratio: int = 40
    physical_memory: int | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("count_in_memory", "bytes_in_memory", "count_in_disk", "bytes_in_disk", "access_ratio"):
            value = getattr(self, name)
            # Java's int
            if not 0 <= value <= (1 << 31) - 1:
                raise ArgumentError(f"{name}: expected 0 to {(1 << 31) - 1}, got {value}")
        if self.physical_memory is not None and not 0 <= self.physical_memory < 1 << 63:
            raise ArgumentError(f"physical_memory: expected 0 to {(1 << 63) - 1}, got {self.physical_memory}")

    def with_system_values(self) -> GetLimits:
        """Returns a copy in which fields that are None have this system's values."""
        if self.physical_memory is not None:
            return self
        return replace(self, physical_memory=physical_memory())


# the defaults of `ScanArguments` and `MessageArguments`
BATCH_ROWS = 16_384
BATCH_BYTES = 2 << 20
MAX_BODY_BYTES = 64 << 20
_INSTEAD = {
    "topic": "topic=",
    "queue_id": "queue_ids=",
    "queue_offset": "start_offset= and end_offset=",
    "tags": "tags=",
    "keys": "keys=",
    "store_timestamp": "start_time= and end_time=",
}
_LIMITS = {"batch_rows": 1 << 22, "batch_bytes": 256 << 20, "max_body_bytes": 1 << 30}


class MessageArguments(TypedDict, total=False):
    """Filters and columns, which are keyword arguments of everything that reads messages.

    Attributes:
        queue_ids: One queue id or several. Default: all.
        tags: Tag expression, such as "A || B", or a list of tags; "*" is all.
        sql: SQL92 expression over the properties, such as "a > 3 AND region IN ('eu')". An expression that names a
            column causes an `ExpressionWarning`, because it only sees properties.
        keys: Only messages with one of these as key or UNIQ_KEY.
        columns: Columns to return, in this order; fewer columns are faster.
        property_names: Properties to return in the column `properties`; None is all.
        max_body_bytes: Maximum bytes of a decompressed body; a larger body is null and listed as damage. Default: 64
            MiB.
    """

    queue_ids: Number | Sequence[Number] | None
    tags: str | Sequence[str]
    sql: str | None
    keys: Sequence[str] | None
    columns: Sequence[str] | None
    property_names: Sequence[str] | None
    max_body_bytes: int


class ReadArguments(MessageArguments, total=False):
    """Keyword arguments of reads that have an end, as opposed to a tail.

    Attributes:
        start_time: Earliest store time: a datetime, a date, ISO 8601, milliseconds since 1970, or a NumPy or pandas
            time.
        end_time: Store time before which to stop.
        as_of: Store time up to which to read: the messages as they stood at that time.
        verify_crc: Whether to check each body's CRC. Records that are not in a consume queue yet are always checked.
    """

    start_time: Time | None
    end_time: Time | None
    as_of: Time | None
    verify_crc: bool


class StoreArguments(ReadArguments, total=False):
    """Keyword arguments of reads of a store.

    Attributes:
        keys_prefix: Only messages with a key or UNIQ_KEY that begins with this.
        start_offset: First queue offset: one number, or a number per queue.
        end_offset: Queue offset before which to stop.
    """

    keys_prefix: str | None
    start_offset: Number | Mapping[int, Number] | None
    end_offset: Number | Mapping[int, Number] | None


class BodyArguments(TypedDict, total=False):
    """Keyword arguments that decode bodies into a column, without their schema.

    Attributes:
        decode: "json" or "avro": decodes bodies into the struct column `value`, the last column. A name such as
            `value.amount` or `value.customer.id` in `columns` chooses a field, and only those are decoded. Without any
            such name in `columns`, bodies are not decoded.
        framing: The prefix of bodies: "none", "confluent" (a zero byte and a schema id), or "single-object" (Avro's).
        on_error: "null" gives null for a body that cannot be decoded, and warns at the end with a `DecodeWarning`.
            "list" does so, too, and `Scan.decode_errors` has all of them, and not 100 of a piece. "fail" raises
            `DecodeError` at the first. Options of Spark have "null" and "fail".
        schema_id: The schema id that all bodies must have, with `framing="confluent"`; Avro needs it.
    """

    decode: Decode | None
    framing: Framing
    on_error: OnError
    schema_id: int | None


class DecodeArguments(BodyArguments, total=False):
    """Keyword arguments that decode bodies into a column, see also `BodyArguments`.

    Attributes:
        schema: Schema of the bodies. For JSON an Arrow schema, or DDL such as "id bigint, at timestamp"; for Avro an
            .avsc, as text or path. `rmqfast.infer` proposes DDL.
    """

    schema: Schema | None


class ScanArguments(StoreArguments, DecodeArguments, total=False):
    """Keyword arguments of `MessageStore.scan`, with those of `DecodeArguments`.

    Attributes:
        batch_rows: Maximum rows of a batch.
        batch_bytes: Approximate bytes of a batch, and of the memory that decoding it takes.

    Example:
        >>> import rmqfast
        >>> from rmqfast.store import ScanArguments
        >>> wanted: ScanArguments = {"tags": "TagA", "columns": ["queue_offset"], "batch_rows": 50}
        >>> with rmqfast.open_store(getfixture("golden_store")("basic-4.9.4")) as store:
        ...     [batch.num_rows for batch in store.scan("fx_q1", **wanted).batches()]
        [50, 50, 5]
    """

    batch_rows: int
    batch_bytes: int


@suggests_names
@dataclass(frozen=True, kw_only=True)
class ScanRequest:
    """The request of a scan after its arguments were checked. `ScanArguments` explains the fields.

    `among` holds several topics if `topic` is None.

    Raises:
        ArgumentError: A value is out of range.
        UnknownColumnError: A column does not exist.
    """

    topic: str | None = None
    among: Sequence[str] | None = None
    queue_ids: Sequence[int] | None = None
    tags: str = "*"
    sql: str | None = None
    keys: Sequence[str] | None = None
    keys_prefix: str | None = None
    start_offset: int | Mapping[int, int] | None = None
    end_offset: int | Mapping[int, int] | None = None
    start_time: int | None = None
    end_time: int | None = None
    columns: Sequence[str] | None = None
    property_names: Sequence[str] | None = None
    microseconds: bool = False
    broker_name: str | None = None
    batch_rows: int = BATCH_ROWS
    batch_bytes: int = BATCH_BYTES
    verify_crc: bool = False
    max_body_bytes: int = MAX_BODY_BYTES
    decode: Decode | None = None
    schema: Schema | None = None
    framing: Framing = "none"
    on_error: OnError = "null"
    schema_id: int | None = None

    @classmethod
    def of(
        cls,
        topic: str | Sequence[str] | None,
        arguments: ScanArguments,
        *,
        broker_name: str | None,
        microseconds: bool = False,
    ) -> ScanRequest:
        """Returns the request that keyword arguments describe.

        Raises:
            ArgumentError: A value is out of range.
            ArgumentTypeError: An argument is unknown; the error suggests a similar name.
        """
        check_names(arguments, ScanArguments)
        values = cast("dict[str, Any]", dict(arguments))
        one_topic, several = one_or_several(topic)
        values["start_time"], values["end_time"] = time_range(values.get("start_time"), values.get("end_time"))
        as_of = milliseconds(values.pop("as_of", None), name="as_of")
        if as_of is not None:
            # the millisecond itself belongs to it
            ends = (as_of + 1, values["end_time"])
            time_range(values["start_time"], as_of + 1, names=("start_time", "as_of"))
            values["end_time"] = min(end for end in ends if end is not None)
        return cls(topic=one_topic, among=several, broker_name=broker_name, microseconds=microseconds, **values)

    def with_selection(self, selection: _native.Selection) -> ScanRequest:
        """Returns the request, narrowed by the filters that a selection of it has taken."""
        changes: dict[str, Any] = {"start_time": selection.times[0], "end_time": selection.times[1]}
        changes["queue_ids"] = selection.queue_ids
        # Otherwise None would replace offsets by queue.
        if not selection.has_offsets_by_queue:
            changes |= {"start_offset": selection.offsets[0], "end_offset": selection.offsets[1]}
        if selection.tags is not None:
            # Tags with a `|` are never taken, so that joining them is safe.
            changes["tags"] = " || ".join(selection.tags)
        return replace(self, **changes)

    def __post_init__(self) -> None:
        for name, most in _LIMITS.items():
            object.__setattr__(self, name, integer(name, getattr(self, name), 1, most))
        for name in ("start_time", "end_time"):
            object.__setattr__(self, name, milliseconds(getattr(self, name), name=name))
        for name in ("start_offset", "end_offset"):
            object.__setattr__(self, name, _offsets(name, getattr(self, name)))
        object.__setattr__(self, "queue_ids", queue_ids_of(self.queue_ids))
        object.__setattr__(self, "tags", tag_expression(self.tags))
        # several topics belong into `among`
        if not isinstance(self.topic, str | None):
            raise ArgumentError(f"topic: expected the name of one topic, got {self.topic!r}")
        check_fields(self)
        self._check_sequences()
        schema, schema_id = check_decode(
            self.decode,
            schema=self.schema,
            framing=self.framing,
            on_error=self.on_error,
            schema_id=self.schema_id,
        )
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "schema_id", schema_id)
        self._check_columns()
        warn_of_columns(self.sql)

    def _check_sequences(self) -> None:
        # a string is a sequence, too: its characters would become the values
        for name in ("among", "keys", "columns", "property_names"):
            value = getattr(self, name)
            if isinstance(value, str | bytes):
                raise ArgumentError(
                    f"{name}: expected a sequence, got the one value {value!r}: write {name}=[{value!r}]"
                )
            if not isinstance(value, Iterable | None):
                raise ArgumentTypeError(f"{name}: expected a sequence, got {value!r} ({type(value).__name__})")
            if value is not None:
                # a tuple is hashable, and the caller cannot change it later
                object.__setattr__(self, name, tuple(value))
        if self.property_names == ():
            raise ArgumentError("property_names: expected at least one name, got none")

    def _check_columns(self) -> None:
        if self.columns is None:
            return
        # a repeated column is probably a mistake
        twice = {c for c in self.columns if list(self.columns).count(c) > 1}
        if twice:
            raise ArgumentError(f"columns: expected each once, got {sorted(twice)} more often")
        decoded = self.decode is not None
        unknown = [c for c in self.columns if c not in COLUMNS and not (decoded and is_decoded(c))]
        if unknown:
            hint = "; its fields need decode=" if is_decoded(unknown[0]) else ""
            raise UnknownColumnError(f"unknown column {unknown[0]!r}{hint}; the columns are {', '.join(COLUMNS)}")


def tag_expression(tags: str | Sequence[str], name: str = "tags") -> str:
    """Returns a tag expression unchanged. Joins a list of tags to an expression."""
    if isinstance(tags, str):
        return tags
    given: Any = tags
    words = list(given) if isinstance(given, Iterable) else None
    if words is None or not all(isinstance(tag, str) for tag in words):
        raise ArgumentTypeError(f"{name}: expected an expression as 'A || B', or a list of tags, got {tags!r}")
    if not words:
        raise ArgumentError(f"{name}: expected a tag at least, got none: write '*' for all")
    return " || ".join(words)


def queue_ids_of(given: Number | Sequence[Number] | None) -> tuple[int, ...] | None:
    if given is None:
        return None
    if whole(given) is not None:
        # one number means one queue
        return (integer("queue_ids", cast("Number", given), 0),)
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        got = f"got {given!r} ({type(given).__name__})"
        raise ArgumentTypeError(f"queue_ids: expected numbers of queues, {got}: write queue_ids=[0]")
    return tuple(integer("queue_ids", each) for each in given)


def warn_of_columns(sql: str | None, instead: Mapping[str, str] = _INSTEAD) -> None:
    """Warns if an expression names a column, since expressions only see properties."""
    columns = [] if sql is None else [name for name in _native.sql_properties(sql) if name in COLUMNS]
    if columns:
        hint = instead.get(columns[0], "a filter on what was read")
        text = f"sql: {columns[0]} is a column, and SQL sees properties alone: it asks for a property of that name"
        CallerLine().warn(f"{text}; for the column write {hint}", ExpressionWarning)


def _offsets(name: str, given: Number | Mapping[int, Number] | None) -> int | dict[int, int] | None:
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {integer(name, queue): integer(name, offset) for queue, offset in given.items()}
    if whole(given) is None:
        raise ArgumentTypeError(f"{name}: expected a queue offset, or one by queue as {{0: 100}}, got {given!r}")
    return integer(name, given)


def check_names(arguments: Mapping[str, object], bundle: Any) -> None:
    """Raises `ArgumentTypeError` for a name that the typed dictionary `bundle` does not contain."""
    for name in arguments.keys() - bundle.__optional_keys__:
        raise unknown_argument(name, bundle.__annotations__)


def one_or_several(topic: str | Sequence[str] | None) -> tuple[str | None, Sequence[str] | None]:
    """Returns the fields `topic` and `among` of `ScanRequest` for a topic argument, which is one topic or several."""
    return (topic, None) if topic is None or isinstance(topic, str) else (None, topic)


@overload
def milliseconds(when: Time, *, name: str = ...) -> int: ...


@overload
def milliseconds(when: None, *, name: str = ...) -> None: ...


def milliseconds(when: Time | None, *, name: str = "time") -> int | None:
    """Converts a time to milliseconds since 1970. A time without a zone is UTC. None stays None.

    Raises:
        ArgumentError: An invalid or missing time, such as NaT, or a number in another unit.

    Example:
        >>> milliseconds("1970-01-01T00:00:01")
        1000
    """
    return None if when is None else milliseconds_of(name, when)


def time_range(
    start: Time | None, end: Time | None, *, names: tuple[str, str] = ("start_time", "end_time")
) -> tuple[int | None, int | None]:
    """Converts both ends of a time range to milliseconds since 1970. A missing end stays None.

    Raises:
        ArgumentError: An invalid time, or the end is before the start.
    """
    first = None if start is None else milliseconds_of(names[0], start)
    last = None if end is None else milliseconds_of(names[1], end)
    if first is not None and last is not None and last < first:
        raise ArgumentError(f"{names[1]}: expected {names[0]}, {start}, or later, got {end}")
    return first, last


def between(a: Time, b: Time, arguments: Mapping[str, object]) -> tuple[int, int]:
    """Returns `start_time` and `as_of` of the messages that were stored after `a`, up to `b`.

    Raises:
        ArgumentError: An invalid time, `b` is before `a`, or `arguments` have times of their own.
    """
    for name in ("start_time", "end_time", "as_of"):
        if arguments.get(name) is not None:
            raise ArgumentError(f"{name}: expected none beside the two times of a difference, got {arguments[name]!r}")
    first, last = time_range(a, b, names=("a", "b"))
    return cast("int", first) + 1, cast("int", last)
