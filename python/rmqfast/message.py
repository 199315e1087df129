"""Messages, queues and results of reads, as values that do no I/O.

Source: RocketMQ's `MessageExt`, `MessageDecoder`, `GetMessageStatus`, `GetMessageResult`, `Message`,
`MessageExtBrokerInner`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, Never

from rmqfast.arguments import Duration, Number, Time, integer, milliseconds_of, seconds, text, unknown_argument, whole
from rmqfast.errors import ArgumentError, ArgumentTypeError
from rmqfast.html import MOST_ROWS, facts, table

__all__ = ["BadBody", "Damage", "GetMessageResult", "GetMessageStatus", "Message", "MessageExt", "MessageQueue"]

_NO_PROPERTIES: Mapping[str, str] = MappingProxyType({})
_set = object.__setattr__
#: Fields by name, and further attributes of a subclass.
_State = tuple[dict[str, Any], dict[str, Any]]
#: Columns of messages in HTML tables.
_FEW_COLUMNS = ("queue_id", "queue_offset", "store_timestamp", "tags", "keys", "body")


class Damage(NamedTuple):
    """Damaged bytes of a store that a reader skipped.

    Attributes:
        offset: Physical offset in the commit log, or byte offset in the damaged consume queue or index.
        length: Bytes skipped; 0 if only a part of the message, such as its body, is missing.
        reason: What was expected and what was found.
        file: Path of the file.
        broker_name: Broker of the store, in a scan of several stores, or of one that was opened with this name.

    Example:
        >>> Damage(4096, 120, "expected a magic code, found 0x00000000").length
        120
    """

    offset: int
    length: int
    reason: str
    file: str = ""
    broker_name: str | None = None

    def _repr_html_(self) -> str:
        return facts("Damage", self._asdict())


class BadBody(NamedTuple):
    """A message whose body a scan could not decode. Its column `value` is null.

    Attributes:
        topic: Topic of the message.
        queue_id: Its queue.
        queue_offset: Its offset in the queue.
        physical_offset: Its offset in the commit log.
        reason: What was expected and what was found.
        broker_name: Broker of the store, in a scan of several stores, or of one that was opened with this name.

    Example:
        >>> BadBody("orders", 0, 7, 4096, "expected a JSON object at byte 0, got the end").queue_offset
        7
    """

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    reason: str
    broker_name: str | None = None

    def _repr_html_(self) -> str:
        return facts("BadBody", self._asdict())


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageExt:
    """A stored message, as an object. Each column of a scan's row is an attribute.

    Timestamps are milliseconds since 1970, hosts `ip:port` or `[ip6]:port`. The body is decompressed; None if that
    fails.

    Example:
        >>> import rmqfast
        >>> with rmqfast.open_store(getfixture("golden_store")("basic-4.9.4")) as store:
        ...     message = store.get("fx_q1", 0, 7).messages[0]
        >>> message.topic, message.queue_offset, len(message.body) > 0
        ('fx_q1', 7, True)
    """

    topic: str
    broker_name: str | None
    queue_id: int
    queue_offset: int
    physical_offset: int
    msg_id: str
    offset_msg_id: str
    tags: str | None
    keys: str | None
    body: bytes | None = field(repr=False)
    properties: Mapping[str, str] = field(repr=False)
    born_timestamp: int
    store_timestamp: int
    born_host: str
    store_host: str
    flag: int
    sys_flag: int
    reconsume_times: int
    prepared_transaction_offset: int
    store_size: int
    body_crc: int

    def __getstate__(self) -> _State:
        return _state(self)

    def __setstate__(self, state: _State) -> None:
        _restore(self, state)

    def _repr_html_(self) -> str:
        return facts("MessageExt", {name: getattr(self, name) for name in self.__slots__})


class GetMessageStatus(StrEnum):
    """The result of a pull. It explains `GetMessageResult.next_begin_offset`."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"


@dataclass(frozen=True, slots=True)
class GetMessageResult:
    """The answer to a pull.

    Attributes:
        status: The status at the broker. FOUND means that a tag hash matched, although the tag itself may not.
        next_begin_offset: Queue offset of the next pull, whatever the status.
        min_offset: Queue offset of the first message that still exists.
        max_offset: Queue offset after the last message.
        messages: Messages whose tag matches exactly.
        damage: Missing or damaged records of units.
        suggest_pulling_from_slave: Whether the last message lies so far behind the log's end that a broker suggests its
            slave for the next pull; only with `limits`.

    Example:
        >>> import rmqfast
        >>> with rmqfast.open_store(getfixture("golden_store")("basic-4.9.4")) as store:
        ...     result = store.get("fx_q1", 0, 1258)
        >>> result.status.value, len(result.messages), result.next_begin_offset
        ('FOUND', 1, 1259)
    """

    status: GetMessageStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    messages: list[MessageExt]
    damage: list[Damage]
    suggest_pulling_from_slave: bool = False

    def _repr_html_(self) -> str:
        plain = {name: getattr(self, name) for name in self.__slots__ if name != "messages"}
        rows = [[getattr(message, column) for column in _FEW_COLUMNS] for message in self.messages[:MOST_ROWS]]
        head = facts("GetMessageResult", plain | {"damage": len(self.damage)})
        return head + table(_FEW_COLUMNS, rows, caption="messages", count=len(self.messages))


@dataclass(frozen=True, slots=True, init=False)
class Message:
    """A message to store or send.

    Args:
        topic: 1 to 127 bytes of `%|a-zA-Z0-9_-`.
        body: Bytes, or a string, which is encoded as UTF-8; by default at most 4 MiB.
        tags: One tag, without `||`, which separates tags in expressions.
        keys: Index keys: one string, separated by spaces, or several strings.
        properties: Further properties, a mapping or pairs, without the characters 0x01 and 0x02. Integers become
            strings. Other arguments override properties.
        delay_level: Delay level of the broker, 1 to 18; 0 delivers at once.
        wait_store: Whether the broker waits for its disk and slaves, if it is configured to do so.
        queue_id: Queue of the topic; ignored by producers, which choose a queue.
        flag: 32 bits for the application.
        born_timestamp: Milliseconds since 1970, or a datetime. Default: the time of the append or send.
        delay: Seconds or a timedelta until delivery, with a resolution of milliseconds; 0 means no delay. It
            becomes the property `TIMER_DELAY_MS`, for brokers of 5.x with `timerWheelEnable=true`, their default, and
            up to `timerMaxDelaySec`, three days. Producers refuse it for older brokers; an append to a store
            delays nothing.
        deliver_at: Time of delivery instead of a delay: a datetime, milliseconds since 1970, or any other time that
            `MessageStore.scan` takes, in UTC without a zone. It becomes the property `TIMER_DELIVER_MS`; a past
            time delivers at once.

    Raises:
        ArgumentError: A delay is negative or not a number; more than one of `delay_level`, `delay`, `deliver_at`.
        ArgumentTypeError: A value has a wrong type, or an argument is unknown.

    Example:
        >>> Message("orders", b"paid", tags="paid", keys=["42", "eu"], delay_level=3).keys
        '42 eu'
        >>> dict(Message("orders", b"remind", delay=90.5).properties)
        {'TIMER_DELAY_MS': '90500'}
    """

    topic: str
    body: bytes
    tags: str | None
    keys: str | None
    properties: Mapping[str, str]
    delay_level: int
    wait_store: bool
    queue_id: int
    flag: int
    born_timestamp: int | None

    def __init__(  # noqa: PLR0917 - only what is in the contract is meant to be given by position
        self,
        topic: str,
        body: bytes | bytearray | memoryview | str,
        tags: str | None = None,
        keys: str | Iterable[str] | None = None,
        properties: Mapping[str, str] | Mapping[str, str | Number] | Iterable[tuple[str, str | Number]] | None = None,
        delay_level: Number = 0,
        wait_store: bool = True,  # noqa: FBT001, FBT002 - one field of many
        queue_id: Number = 0,
        flag: Number = 0,
        born_timestamp: Time | None = None,
        *,
        delay: Duration | None = None,
        deliver_at: Time | None = None,
        **unknown: Never,
    ) -> None:
        if unknown:
            raise unknown_argument(next(iter(unknown)), _ARGUMENTS, of="Message")
        # Setting a field of a frozen class costs a call; a draft class with the same slots avoids it.
        draft: Any = self if self.__class__ is Message else _Draft()
        _set(draft, "__class__", _Draft)
        draft.topic = topic if topic.__class__ is str else text("topic", topic)
        draft.body = body if body.__class__ is bytes else _bytes(body)
        draft.tags = tags if tags is None else _tag(tags)
        draft.keys = keys if keys is None or keys.__class__ is str else _join_keys(keys)
        draft.properties = _NO_PROPERTIES if properties is None else _texts(properties)
        if delay is not None or deliver_at is not None:
            draft.properties = {**draft.properties, **_timer(delay, deliver_at, delay_level)}
        draft.delay_level = delay_level if delay_level.__class__ is int else integer("delay_level", delay_level)
        draft.wait_store = wait_store
        draft.queue_id = queue_id if queue_id.__class__ is int else integer("queue_id", queue_id)
        draft.flag = flag if flag.__class__ is int else integer("flag", flag)
        # a number is not checked: it may be copied from a message whose producer had a wrong clock
        if born_timestamp is not None and born_timestamp.__class__ is not int:
            born_timestamp = milliseconds_of("born_timestamp", born_timestamp)
        draft.born_timestamp = born_timestamp
        if draft is self:
            draft.__class__ = Message
        else:
            for name in Message.__slots__:
                _set(self, name, getattr(draft, name))

    def __getstate__(self) -> _State:
        return _state(self)

    def __setstate__(self, state: _State) -> None:
        _restore(self, state)

    def _repr_html_(self) -> str:
        return facts("Message", {name: getattr(self, name) for name in Message.__slots__})


def _timer(delay: Duration | None, deliver_at: Time | None, delay_level: Any) -> dict[str, str]:
    """Returns the property that delays a message. Empty if it is not delayed."""
    if delay_level or (delay is not None and deliver_at is not None):
        got = f"{delay_level}, {delay!r} and {deliver_at!r}"
        raise ArgumentError(f"delay_level, delay, deliver_at: expected one of them, got {got}")
    if deliver_at is not None:
        return {"TIMER_DELIVER_MS": str(milliseconds_of("deliver_at", deliver_at))}
    wait = 0.0 if delay is None else seconds("delay", delay)
    return {"TIMER_DELAY_MS": str(max(1, round(wait * 1000)))} if wait else {}


def _bytes(body: object) -> bytes:
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, bytes):
        return body
    if isinstance(body, bytearray | memoryview):
        return bytes(body)
    write = "b'' for none" if body is None else "json.dumps(body)"
    raise ArgumentTypeError(f"body: expected bytes or a text, got a {type(body).__name__}: write {write}")


def _tag(tag: object) -> str:
    if tag.__class__ is not str:
        if isinstance(tag, Iterable) and not isinstance(tag, str):
            got = f"got {tag!r}: a message has one tag, a text; further words are keys=[...]"
            raise ArgumentTypeError(f"tags: expected one tag, {got}")
        tag = text("tags", tag)
    if "||" in tag:
        why = "no consumer could ask for it, as || separates tags there; a message has one tag"
        raise ArgumentError(f"tags: expected one tag, got {tag!r}: {why}")
    return tag


def _texts(properties: object) -> Mapping[str, str]:
    """Converts properties to a mapping from string to string."""
    if not isinstance(properties, Mapping):
        properties = _of_pairs(properties)
    for name, value in properties.items():
        if name.__class__ is not str or value.__class__ is not str:
            return {text("properties", n): _property(n, v) for n, v in properties.items()}
    return properties


def _of_pairs(properties: Any) -> Mapping[Any, Any]:
    try:
        if not isinstance(properties, str | bytes):
            return dict(properties)
    except (TypeError, ValueError):
        pass
    raise ArgumentTypeError(f"properties: expected a mapping of texts, got {properties!r}: write {{'name': 'value'}}")


def _property(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    number = whole(value)
    if number is None:
        got = f"got {value!r} ({type(value).__name__}) for {name!r}"
        write = "leave it out" if value is None else f"write the text that consumers shall read, as {str(value)!r}"
        raise ArgumentTypeError(f"properties: expected texts or integers, {got}: {write}")
    return str(number)


_ARGUMENTS = (*Message.__slots__, "delay", "deliver_at")


class _Draft:
    __slots__ = Message.__slots__


def _state(message: Message | MessageExt) -> _State:
    """Returns the state that `pickle` and `copy` need."""
    values = {field.name: getattr(message, field.name) for field in fields(message)}
    # a copy, because read-only mappings cannot be pickled
    values["properties"] = dict(message.properties)
    return values, getattr(message, "__dict__", {})


def _restore(message: Message | MessageExt, state: _State) -> None:
    values, further = state
    for name, value in (values | further).items():
        _set(message, name, value)


def _join_keys(keys: object) -> str | None:
    if isinstance(keys, str):
        return keys
    if isinstance(keys, bytes) or not isinstance(keys, Iterable):
        raise ArgumentTypeError(f"keys: expected a text or several, got {keys!r} ({type(keys).__name__})")
    return " ".join(text("keys", key) for key in keys) or None


@dataclass(frozen=True, slots=True, order=True)
class MessageQueue:
    """A queue of a topic at a broker. Queues sort in the order in which consumers divide them.

    Attributes:
        topic: The topic.
        broker_name: The broker that has the queue.
        queue_id: Number of the queue in the topic on that broker.

    Example:
        >>> sorted([MessageQueue("orders", "broker-a", 1), MessageQueue("orders", "broker-a", 0)])[0].queue_id
        0
    """

    topic: str
    broker_name: str
    queue_id: int
