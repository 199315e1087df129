"""Facts of messages, groups, members, queues and copies, as plain values.

What is asked of brokers is in `explain`, what follows from it in `delivery` and `outcome`.
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
#: Texts, comments and numbers are consumed, as there are no names in them.
_TOKEN = re.compile(r"'(?:[^']|'')*'|--[^\r\n]*|/\*.*?\*/|[0-9.][0-9A-Za-z.]*|([A-Za-z_$][A-Za-z0-9_$]*)", re.DOTALL)


class CopyKind(StrEnum):
    """Where the copy of a message is that was not consumed."""

    DELAYED = "DELAYED"
    RETRY = "RETRY"
    DEAD = "DEAD"


@dataclass(frozen=True, kw_only=True, slots=True)
class SqlAnswer:
    """Whether an expression of SQL92 lets a message pass, as the filter of its broker says.

    Attributes:
        is_passed: Whether it does; `None` where the broker does not filter by it.
        values: The properties that it names, as the message has them; `None` for one that is missing.
        problem: Why the broker does not filter by it.

    Source: `ExpressionMessageFilter`, `MessageEvaluationContext`.
    """

    is_passed: bool | None = None
    values: Mapping[str, str | None] = field(default_factory=dict)
    problem: str | None = None

    @property
    def values_text(self) -> str:
        """The properties, for people.

        Example:
            >>> SqlAnswer(is_passed=False, values={"a": "1", "b": None}).values_text
            "a is '1', b is missing"
        """
        texts = [f"{name} is {'missing' if value is None else repr(value)}" for name, value in self.values.items()]
        return ", ".join(texts) or "it names no property"


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageFacts:
    """A message.

    Attributes:
        msg_id: The producer's id.
        tags: Its tag.
        store_timestamp: When it was stored, in milliseconds since 1970.
        sql: What its broker's filter says of it, by expression of SQL92.
    """

    queue: MessageQueue
    queue_offset: int
    msg_id: str = ""
    tags: str | None = None
    store_timestamp: int = 0
    sql: Mapping[str, SqlAnswer] = field(default_factory=dict)

    @property
    def tags_code(self) -> int:
        """The Java hash of its tag, by which brokers filter; 0 without a tag.

        Source: `MessageExtBrokerInner.tagsString2tagsCode`.
        """
        return tag_hash(self.tags) if self.tags else 0


@dataclass(frozen=True, kw_only=True, slots=True)
class MemberFacts:
    """A member of a group that is online.

    Attributes:
        client_id: The member.
        subscription: What it wants of the topic itself; `None` where it does not subscribe to it, or does not tell.
        queues: The queues that it has of the topic; `None` where it does not tell.
        problem: Why it does not tell.
    """

    client_id: str
    subscription: SubscriptionData | None = None
    queues: Sequence[MessageQueue] | None = None
    problem: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SubscriptionFacts:
    """What is kept for a group of a topic, or what one of its members wants of it.

    Attributes:
        topic: The topic.
        client_id: The member; `None` for what the brokers keep for all of them.
        subscription: Topic, expression, type and version; `None` where it does not subscribe, or does not tell.
        queues: The queues that the member has of the topic; `None` where it does not tell.
        differs: Whether a member wants something else than what is kept, so that it misses messages or drops them;
            `None` where that is not known.
        problem: Why the member does not tell.
    """

    topic: str
    client_id: str | None = None
    subscription: SubscriptionData | None = None
    queues: Sequence[MessageQueue] | None = None
    differs: bool | None = None
    problem: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupFacts:
    """A group, as far as a topic goes, as the broker of a queue knows it.

    Attributes:
        group: The group.
        members: Those that are online.
        subscription: What the broker takes all of them to want of the topic.
        consume_type: `CONSUME_PASSIVELY` for push, `CONSUME_ACTIVELY` for pull and lite pull.
        message_model: `CLUSTERING` or `BROADCASTING`.
    """

    group: str
    members: Sequence[MemberFacts] = ()
    subscription: SubscriptionData | None = None
    consume_type: str = PASSIVELY
    message_model: str = "CLUSTERING"

    @property
    def is_online(self) -> bool:
        """Whether the broker knows a member."""
        return bool(self.members)

    @property
    def is_broadcasting(self) -> bool:
        """Whether each member gets all messages."""
        return self.message_model == BROADCASTING

    @property
    def pulls(self) -> bool:
        """Whether members tell with each pull what they want: then each has its own filter on the broker."""
        return self.consume_type == ACTIVELY

    def member(self, client_id: str | None) -> MemberFacts | None:
        """A member by its client id."""
        return next((member for member in self.members if member.client_id == client_id), None)

    def setter(self) -> MemberFacts | None:
        """The member whose subscription the broker took for all."""
        subscription = self.subscription
        if subscription is None:
            return None
        alike = [m for m in self.members if m.subscription and m.subscription.sub_string == subscription.sub_string]
        exact = [m for m in alike if m.subscription and m.subscription.sub_version == subscription.sub_version]
        if exact:
            return exact[0]
        return alike[0] if len(alike) == 1 else None


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueFacts:
    """A queue, and how far a group is in it.

    Attributes:
        min_offset: Of the first message that is still there.
        max_offset: Behind the last one.
        consumer_offset: Where the group goes on; `None` where it has no offset.
        owner: The member that has the queue; `None` for nobody, or where that is not known.
        owner_is_assumed: Whether that is only worked out, as `AllocateMessageQueueAveragely` would share out.
    """

    queue: MessageQueue
    min_offset: int
    max_offset: int
    consumer_offset: int | None = None
    owner: str | None = None
    owner_is_assumed: bool = False

    @property
    def behind(self) -> int:
        """Messages that the group has not passed."""
        return self.max_offset - max(self.min_offset, self.consumer_offset or 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class CopyFacts:
    """A copy of a message that a member sent back.

    Attributes:
        kind: Delayed, in the topic of retries, or a dead letter.
        reconsume_times: How often the message was consumed in vain.
        store_timestamp: When the copy was stored, in milliseconds since 1970.
        due_timestamp: When it goes on to the topic of retries, of a delayed one.
        consumer_offset: Where the group goes on in that queue, of one in the topic of retries.
    """

    kind: CopyKind
    queue: MessageQueue
    queue_offset: int
    reconsume_times: int
    store_timestamp: int = 0
    due_timestamp: int | None = None
    consumer_offset: int | None = None


def tag_hash(tag: str) -> int:
    """The hash that queues have of a tag.

    Example:
        >>> tag_hash("TagA"), tag_hash("returned")
        (2598919, -306987569)

    Source: `String.hashCode`.
    """
    value = java_hash(tag)
    return value - (1 << 32) if value >= 1 << 31 else value


def names_in(expression: str) -> list[str]:
    """The properties that an expression names, each once, in their order there.

    Example:
        >>> names_in("a > 1 AND (region IN ('a b', 'it''s') OR a IS NULL) -- of 10L")
        ['a', 'region']

    Source: `SelectorParser.jj`.
    """
    names = (match[1] for match in _TOKEN.finditer(expression))
    return list(dict.fromkeys(name for name in names if name is not None and name.upper() not in _KEYWORDS))
