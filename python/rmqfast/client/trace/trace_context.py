"""One step of messages' ways: they were sent, are about to be consumed, were consumed, or a transaction has ended.

Source: `TraceContext`, `TraceBean`, `TraceType`, `MessageType`, `ConsumeReturnType`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

#: Where traces go unless said otherwise: `TopicValidator.RMQ_SYS_TRACE_TOPIC`.
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"


class TraceType(StrEnum):
    """What a step is.

    Attributes:
        PUB: A message was sent.
        SUB_BEFORE: Messages are about to be consumed.
        SUB_AFTER: They were consumed, or are to come again.
        END_TRANSACTION: A transaction has ended.

    Source: `TraceType`.
    """

    PUB = "Pub"
    SUB_BEFORE = "SubBefore"
    SUB_AFTER = "SubAfter"
    END_TRANSACTION = "EndTransaction"


class MessageType(StrEnum):
    """What kind of message is sent; a trace has its place in this list.

    Source: `MessageType`.
    """

    NORMAL = "Normal_Msg"
    TRANSACTION_HALF = "Trans_Msg_Half"
    TRANSACTION_COMMIT = "Trans_msg_Commit"
    DELAY = "Delay_Msg"


class ConsumeReturnType(StrEnum):
    """How a call of a listener ended; a trace has its place in this list.

    Attributes:
        SUCCESS: It answered that the messages are done; in order, also COMMIT and ROLLBACK.
        TIME_OUT: It took longer than `consume_timeout`, whatever it answered.
        EXCEPTION: It raised.
        RETURNNULL: It answered nothing, or anything but a status.
        FAILED: It answered that the messages are to come again.

    Source: `ConsumeReturnType`.
    """

    SUCCESS = "SUCCESS"
    TIME_OUT = "TIME_OUT"
    EXCEPTION = "EXCEPTION"
    RETURNNULL = "RETURNNULL"
    FAILED = "FAILED"


@dataclass(slots=True, kw_only=True)
class TraceBean:
    """A message, as a step tells of it; each kind of step tells a part of this.

    Attributes:
        topic: The topic, without its namespace.
        msg_id: The id that the producer gave; of a batch all of them, separated by commas.
        offset_msg_id: The broker's id.
        tags: The tag; a trace has `null` where there is none.
        keys: The keys, separated by spaces; as above.
        store_host: The broker.
        retry_times: How often it was consumed in vain before.
        body_length: Bytes of the body.
        msg_type: What kind of message it is.
        transaction_id: The id of the transaction.
        transaction_state: How it ended, in Java's words.
        from_transaction_check: Whether a broker asked.
        client_host: The producer, which only traces of newer clients have.

    Source: `TraceBean`.
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
    """A step.

    Attributes:
        trace_type: What it is.
        beans: The messages.
        timestamp: When, in milliseconds since 1970; 0 where a trace does not say.
        region_id: The broker's region.
        group_name: The group, without its namespace.
        cost_time: How long it took, in milliseconds, per message.
        is_success: Whether it went well.
        request_id: What a SUB_BEFORE and its SUB_AFTER have in common.
        context_code: Of a SUB_AFTER: the place of the `ConsumeReturnType` in its list.

    Source: `TraceContext`.
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
