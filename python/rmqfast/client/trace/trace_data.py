"""Encodes and decodes traces, which are the bodies of messages in the trace topic.

A body is contexts one after the other, each ended by 0x02; the fields of a context are separated by 0x01:

    Pub             time region group topic msgId tags keys storeHost bodyLength cost msgType offsetMsgId success
    SubBefore       time region group requestId msgId retryTimes keys
    SubAfter        requestId msgId cost success keys contextCode time group
    EndTransaction  time region group topic msgId tags keys storeHost msgType transactionId state fromCheck

SubBefore and SubAfter are written once per message. Missing values are `null`. Older clients write fewer fields at the
end, newer clients more.

Source: RocketMQ's `TraceContext`, `TraceBean`, `TraceType`, `TraceDataEncoder`, `MessageType`, `ConsumeReturnType`,
`TraceTransferBean`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from rmqfast.logs import logger_of

_log = logger_of(__name__)

#: The default trace topic: `TopicValidator.RMQ_SYS_TRACE_TOPIC`.
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"


class TraceType(StrEnum):
    """The kind of a step of a message: sent, about to be consumed, consumed, or end of a transaction.

    Attributes:
        PUB: A message was sent.
        SUB_BEFORE: Messages are about to be consumed.
        SUB_AFTER: Messages were consumed, or will be redelivered.
        END_TRANSACTION: A transaction has ended.
    """

    PUB = "Pub"
    SUB_BEFORE = "SubBefore"
    SUB_AFTER = "SubAfter"
    END_TRANSACTION = "EndTransaction"


class MessageType(StrEnum):
    """The kind of a sent message. A trace has the kind's position in this list."""

    NORMAL = "Normal_Msg"
    TRANSACTION_HALF = "Trans_Msg_Half"
    # spelled as in RocketMQ
    TRANSACTION_COMMIT = "Trans_msg_Commit"
    DELAY = "Delay_Msg"


class ConsumeReturnType(StrEnum):
    """The result of a call to the listener. A trace has the result's position in this list.

    Attributes:
        SUCCESS: It returned success; for orderly consumption also COMMIT and ROLLBACK.
        TIME_OUT: It took longer than `consume_timeout`, whatever it returned.
        EXCEPTION: It raised.
        RETURNNULL: It returned anything but a status.
        FAILED: It requested redelivery.
    """

    SUCCESS = "SUCCESS"
    TIME_OUT = "TIME_OUT"
    EXCEPTION = "EXCEPTION"
    RETURNNULL = "RETURNNULL"
    FAILED = "FAILED"


@dataclass(slots=True, kw_only=True)
class TraceBean:
    """One message of a `TraceContext`. Each kind of step uses some of these fields.

    Attributes:
        topic: The topic, without its namespace.
        msg_id: The producer's message id; for a batch all ids, separated by commas.
        offset_msg_id: The broker's id.
        tags: The tag; `null` in a trace without a tag.
        keys: The keys, separated by spaces; `null` in a trace without keys.
        store_host: Address of the broker.
        retry_times: Number of earlier consumptions.
        body_length: Bytes of the body.
        msg_type: The kind of the message.
        transaction_id: The id of the transaction.
        transaction_state: Java's name of the transaction state.
        from_transaction_check: Whether a broker checked the transaction.
        client_host: Address of the producer, only in traces of newer clients.
    """

    topic: str | None = ""
    msg_id: str | None = ""
    offset_msg_id: str | None = ""
    tags: str | None = ""
    keys: str | None = ""
    store_host: str | None = ""
    retry_times: int = 0
    body_length: int = 0
    msg_type: MessageType | None = None
    transaction_id: str | None = None
    transaction_state: str = ""
    from_transaction_check: bool = False
    client_host: str = ""


@dataclass(slots=True, kw_only=True)
class TraceContext:
    """A step of one or more messages: a send, the start or end of a consumption, or the end of a transaction.

    Attributes:
        trace_type: The kind of the step.
        beans: The messages.
        timestamp: Time in milliseconds since 1970; 0 if the trace has none.
        region_id: The broker's region.
        group_name: The group, without its namespace.
        cost_time: Duration in milliseconds per message.
        is_success: Whether the step succeeded.
        request_id: Id that a SUB_BEFORE and its SUB_AFTER share.
        context_code: For SUB_AFTER: index of the `ConsumeReturnType`.
    """

    trace_type: TraceType
    beans: list[TraceBean] = field(default_factory=list)
    timestamp: int = 0
    region_id: str | None = ""
    group_name: str | None = ""
    cost_time: int = 0
    is_success: bool = True
    request_id: str = ""
    context_code: int = 0


CONTENT_SEPARATOR, FIELD_SEPARATOR = "\x01", "\x02"
_MESSAGE_TYPES = tuple(MessageType)
_PLACES = {kind: str(place) for place, kind in enumerate(_MESSAGE_TYPES)}
_BOOLS = {False: "false", True: "true"}


class TraceData(NamedTuple):
    """The encoded form of a `TraceContext`.

    Attributes:
        text: Part of the trace message's body.
        keys: Keys of the trace message: ids and keys of the traced messages.
    """

    text: str
    keys: frozenset[str]


def encode_trace(context: TraceContext) -> TraceData:
    r"""Encodes a `TraceContext`.

    Raises:
        ValueError: The context has no message, or a send or transaction has no message type.

    Example:
        >>> bean = TraceBean(msg_id="7F00", keys="a b")
        >>> encode_trace(TraceContext(trace_type=TraceType.SUB_BEFORE, beans=[bean], timestamp=1, request_id="r")).text
        'SubBefore\x011\x01\x01\x01r\x017F00\x010\x01a b\x02'
    """
    if not context.beans:
        raise ValueError(f"expected messages in a trace of kind {context.trace_type}, got none")
    lines = _ENCODERS[context.trace_type](context)
    text = "".join([CONTENT_SEPARATOR.join([_text(field) for field in line]) + FIELD_SEPARATOR for line in lines])
    return TraceData(text, frozenset(key for bean in context.beans for key in _keys(bean)))


def decode_trace(text: str) -> list[TraceContext]:
    """Decodes the body of a trace message as contexts with one message each. Skips steps of an unknown kind.

    A context that lacks fields is skipped and logged; Java's decoder fails for the whole body.
    """
    contexts = []
    for line in text.split(FIELD_SEPARATOR):
        kind, *fields = line.split(CONTENT_SEPARATOR)
        decode = _DECODERS.get(kind)
        # a kind of newer clients
        if decode is None:
            continue
        try:
            contexts.append(decode(fields))
        except (ValueError, IndexError):
            _log.warning("a trace that cannot be read is left out: %r", line[:200])
    return contexts


_Line = Sequence[object]


def _text(value: object) -> str:
    if value is None:
        return "null"
    return _BOOLS[value] if isinstance(value, bool) else str(value)


def _keys(bean: TraceBean) -> Iterable[str]:
    ids = bean.msg_id or ""
    yield ids
    if "," in ids:
        # Java's key is the joined ids of a batch, by which no single message is found
        yield from ids.split(",")
    yield from (bean.keys or "").split()


def _pub(context: TraceContext) -> Iterable[_Line]:
    bean = context.beans[0]
    begin = (context.trace_type, context.timestamp, context.region_id, context.group_name)
    message = (bean.topic, bean.msg_id, bean.tags, bean.keys, bean.store_host, bean.body_length)
    yield (*begin, *message, context.cost_time, _place(bean), bean.offset_msg_id, context.is_success)


def _sub_before(context: TraceContext) -> Iterable[_Line]:
    begin = (context.trace_type, context.timestamp, context.region_id, context.group_name, context.request_id)
    for bean in context.beans:
        yield (*begin, bean.msg_id, bean.retry_times, bean.keys)


def _sub_after(context: TraceContext) -> Iterable[_Line]:
    end = (context.context_code, context.timestamp, context.group_name)
    for bean in context.beans:
        begin = (context.trace_type, context.request_id, bean.msg_id, context.cost_time, context.is_success)
        yield (*begin, bean.keys, *end)


def _end_transaction(context: TraceContext) -> Iterable[_Line]:
    bean = context.beans[0]
    begin = (context.trace_type, context.timestamp, context.region_id, context.group_name)
    message = (bean.topic, bean.msg_id, bean.tags, bean.keys, bean.store_host, _place(bean))
    yield (*begin, *message, bean.transaction_id, bean.transaction_state, bean.from_transaction_check)


def _place(bean: TraceBean) -> str:
    if bean.msg_type is None:
        raise ValueError(f"expected the kind of the message {bean.msg_id}, got none")
    return _PLACES[bean.msg_type]


def _decoded_pub(fields: list[str]) -> TraceContext:
    bean = TraceBean(
        topic=fields[3],
        msg_id=fields[4],
        tags=fields[5],
        keys=fields[6],
        store_host=fields[7],
        body_length=int(fields[8]),
        msg_type=_message_type(fields[10]),
    )
    context = _decode(TraceType.PUB, fields, bean)
    context.cost_time = int(fields[9])
    # traces of older clients have fewer fields
    if len(fields) == 12:
        context.is_success = _truth(fields[11])
    elif len(fields) > 12:
        bean.offset_msg_id, context.is_success = fields[11], _truth(fields[12])
        bean.client_host = fields[13] if len(fields) > 13 else ""
    return context


def _decoded_sub_before(fields: list[str]) -> TraceContext:
    bean = TraceBean(msg_id=fields[4], retry_times=int(fields[5]), keys=fields[6])
    context = _decode(TraceType.SUB_BEFORE, fields, bean)
    context.request_id = fields[3]
    return context


def _decoded_sub_after(fields: list[str]) -> TraceContext:
    # the last three fields are newer: consumers of 4.9.2 send no time, those of 4.9.3 no group
    bean = TraceBean(msg_id=fields[1], keys=fields[4])
    return TraceContext(
        trace_type=TraceType.SUB_AFTER,
        beans=[bean],
        request_id=fields[0],
        cost_time=int(fields[2]),
        is_success=_truth(fields[3]),
        context_code=int(fields[5]) if len(fields) > 5 else 0,
        timestamp=int(fields[6]) if len(fields) > 6 else 0,
        group_name=fields[7] if len(fields) > 7 else "",
    )


def _decoded_end_transaction(fields: list[str]) -> TraceContext:
    bean = TraceBean(
        topic=fields[3],
        msg_id=fields[4],
        tags=fields[5],
        keys=fields[6],
        store_host=fields[7],
        msg_type=_message_type(fields[8]),
        transaction_id=fields[9],
        transaction_state=fields[10],
        from_transaction_check=_truth(fields[11]),
    )
    return _decode(TraceType.END_TRANSACTION, fields, bean)


def _decode(kind: TraceType, fields: list[str], bean: TraceBean) -> TraceContext:
    return TraceContext(
        trace_type=kind, beans=[bean], timestamp=int(fields[0]), region_id=fields[1], group_name=fields[2]
    )


def _truth(field: str) -> bool:
    return field.lower() == "true"


def _message_type(field: str) -> MessageType:
    place = int(field)
    # a negative index would count from the end
    if place < 0:
        raise ValueError(f"expected the place of a kind of message, got {place}")
    return _MESSAGE_TYPES[place]


_ENCODERS: dict[TraceType, Callable[[TraceContext], Iterable[_Line]]] = {
    TraceType.PUB: _pub,
    TraceType.SUB_BEFORE: _sub_before,
    TraceType.SUB_AFTER: _sub_after,
    TraceType.END_TRANSACTION: _end_transaction,
}
_DECODERS: dict[str, Callable[[list[str]], TraceContext]] = {
    "Pub": _decoded_pub,
    "SubBefore": _decoded_sub_before,
    "SubAfter": _decoded_sub_after,
    "EndTransaction": _decoded_end_transaction,
}
