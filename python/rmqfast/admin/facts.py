"""Facts about messages, groups, consumers, queues and copies, as plain values.

`explain` collects the facts from brokers; `delivery` and `outcome` draw conclusions.

Source: `ExpressionMessageFilter`, `MessageEvaluationContext`, `MessageExtBrokerInner`, `SelectorParser.jj`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from rmqfast.message import MessageQueue
from rmqfast.remoting.hash_map import java_hash
from rmqfast.remoting.protocol.consumer_connection import ACTIVELY, BROADCASTING, PASSIVELY
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

_KEYWORDS = {"AND", "OR", "NOT", "BETWEEN", "IN", "IS", "NULL", "TRUE", "FALSE", "CONTAINS", "STARTSWITH", "ENDSWITH"}
#: Matches strings, comments and numbers without a group, so that words inside them do not count as names.
_TOKEN = re.compile(r"'(?:[^']|'')*'|--[^\r\n]*|/\*.*?\*/|[0-9.][0-9A-Za-z.]*|([A-Za-z_$][A-Za-z0-9_$]*)", re.DOTALL)


class CopyKind(StrEnum):
    """Kind of a copy that was sent back: waiting for its delay, in the retry topic, or a dead letter."""

    DELAYED = "DELAYED"
    RETRY = "RETRY"
    DEAD = "DEAD"


@dataclass(frozen=True, kw_only=True, slots=True)
class SqlAnswer:
    """The result of the broker's SQL92 filter for a message.

    Attributes:
        is_passed: Whether the message passes; `None` if the broker cannot evaluate the expression.
        values: Properties named in the expression, with the message's values; `None` for a missing property.
        problem: Reason why the broker cannot evaluate the expression.
    """

    is_passed: bool | None = None
    values: Mapping[str, str | None] = field(default_factory=dict)
    problem: str | None = None

    @property
    def values_text(self) -> str:
        """The properties with their values, in the form "a is '1', b is missing"."""
        texts = [f"{name} is {'missing' if value is None else repr(value)}" for name, value in self.values.items()]
        return ", ".join(texts) or "it names no property"


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageFacts:
    """Facts about a message; `store_timestamp` is in milliseconds since 1970.

    `msg_id` is the producer's id, `tags` the tag or `None`. `sql` has the verdicts of the broker's filter by SQL92
    expression.
    """

    queue: MessageQueue
    queue_offset: int
    msg_id: str = ""
    tags: str | None = None
    store_timestamp: int = 0
    sql: Mapping[str, SqlAnswer] = field(default_factory=dict)

    @property
    def tags_code(self) -> int:
        """The hash of the tag, by which brokers filter. 0 without a tag."""
        return tag_hash(self.tags) if self.tags else 0


@dataclass(frozen=True, kw_only=True, slots=True)
class MemberFacts:
    """Facts about an online consumer of a group. Missing facts are `None`, and `problem` has the reason.

    `subscription` is the member's own subscription to the topic, `queues` are its queues of the topic.
    """

    client_id: str
    subscription: SubscriptionData | None = None
    queues: Sequence[MessageQueue] | None = None
    last_pull: int | None = None
    problem: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SubscriptionFacts:
    """A subscription: the one stored for a group, or the one of a single consumer.

    Attributes:
        client_id: The member; `None` for the subscription that brokers store for the group.
        subscription: Expression, type and version; `None` if there is none or the member does not answer.
        queues: The member's queues of the topic; `None` if it does not answer.
        differs: Whether the member's subscription differs from the stored one, so that it misses or drops
            messages; `None` if unknown.
        problem: Reason why the member does not answer.
    """

    topic: str
    client_id: str | None = None
    subscription: SubscriptionData | None = None
    queues: Sequence[MessageQueue] | None = None
    differs: bool | None = None
    problem: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupFacts:
    """Facts about a group and a topic, from the broker of the topic's queue that is explained.

    Attributes:
        members: Online members of the group.
        subscription: The subscription that the broker stores for the topic.
        consume_type: `CONSUME_PASSIVELY` for push, `CONSUME_ACTIVELY` for pull and lite pull.
        message_model: `CLUSTERING` or `BROADCASTING`.
        clock_error: Milliseconds by which a member's clock may be behind the broker's.
        has_offsets: Whether the broker is known to keep offsets of the group: it keeps none of one that broadcasts.
    """

    group: str
    members: Sequence[MemberFacts] = ()
    subscription: SubscriptionData | None = None
    consume_type: str = PASSIVELY
    message_model: str = "CLUSTERING"
    clock_error: int = 0
    has_offsets: bool = False

    @property
    def is_online(self) -> bool:
        """Whether the broker knows at least one consumer of the group."""
        return bool(self.members)

    @property
    def is_broadcasting(self) -> bool:
        """Whether each consumer receives all messages."""
        return self.message_model == BROADCASTING

    @property
    def pulls(self) -> bool:
        """Whether consumers send a filter with each pull, so that the broker filters for each consumer separately."""
        return self.consume_type == ACTIVELY

    def member(self, client_id: str | None) -> MemberFacts | None:
        """Returns the consumer with a client id, or `None`."""
        return next((member for member in self.members if member.client_id == client_id), None)

    def setter(self) -> MemberFacts | None:
        """Returns the consumer whose subscription the broker stored. `None` if several consumers would match."""
        subscription = self.subscription
        if subscription is None:
            return None
        alike = [m for m in self.members if m.subscription and m.subscription.sub_string == subscription.sub_string]
        # Several members may have the same expression, but hardly the same version.
        exact = [m for m in alike if m.subscription and m.subscription.sub_version == subscription.sub_version]
        if exact:
            return exact[0]
        return alike[0] if len(alike) == 1 else None


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueFacts:
    """Facts about a queue, and how far the group has read it.

    Attributes:
        min_offset: Offset of the first message still stored.
        max_offset: End of the queue.
        consumer_offset: Next offset that the group consumes; `None` if the group has no offset.
        owner: Member that owns the queue; `None` if no member owns it or the owner is unknown.
        owner_is_assumed: Whether the owner was computed with `AllocateMessageQueueAveragely`, not reported.
    """

    queue: MessageQueue
    min_offset: int
    max_offset: int
    consumer_offset: int | None = None
    owner: str | None = None
    owner_is_assumed: bool = False

    @property
    def behind(self) -> int:
        """Backlog of the group: the number of messages that it has not read."""
        # Expired messages do not count as backlog.
        return self.max_offset - max(self.min_offset, self.consumer_offset or 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class CopyFacts:
    """A copy of a message that a consumer sent back.

    Attributes:
        reconsume_times: Number of failed attempts.
        store_timestamp: Store time of the copy, in milliseconds since 1970.
        due_timestamp: Time when a delayed copy moves to the retry topic, in milliseconds since 1970.
        consumer_offset: Next offset that the group consumes in the retry queue.
    """

    kind: CopyKind
    queue: MessageQueue
    queue_offset: int
    reconsume_times: int
    store_timestamp: int = 0
    due_timestamp: int | None = None
    consumer_offset: int | None = None


def tag_hash(tag: str) -> int:
    """Returns the hash of a tag in consume queues, a signed 32-bit `String.hashCode`."""
    value = java_hash(tag)
    return value - (1 << 32) if value >= 1 << 31 else value


def names_in(expression: str) -> list[str]:
    """Returns the property names in an SQL92 expression, in the order of their first use."""
    names = (match[1] for match in _TOKEN.finditer(expression))
    return list(dict.fromkeys(name for name in names if name is not None and name.upper() not in _KEYWORDS))
