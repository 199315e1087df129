"""Builds subscriptions, and compares the subscriptions of a group's consumers.

Source: RocketMQ's `FilterAPI`, `MessageSelector`, `ConsumerRunningInfo`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from rmqfast import _native
from rmqfast.client.instance.namespaces import RETRY_PREFIX
from rmqfast.errors import ExpressionError
from rmqfast.remoting.protocol.subscription_data import SUB_ALL, TAG, SubscriptionData, meaning_of
from rmqfast.store.request import warn_of_columns

SQL92 = "SQL92"
_INSTEAD = {"tags": "MessageSelector.by_tag"}
#: The expression of a member that does not subscribe to the topic.
NOTHING = "(none)"
#: The client id of a member that does not answer.
SOMEBODY = "(another member)"


@dataclass(frozen=True, slots=True)
class MessageSelector:
    """Selects messages of a topic by tags or by an SQL92 expression.

    Attributes:
        expression_type: `TAG` or `SQL92`.
        expression: Tags joined by `||`, or the SQL92 expression.

    Example:
        >>> MessageSelector.by_sql("price > 10").expression_type, MessageSelector.by_tag("A || B").expression
        ('SQL92', 'A || B')
    """

    expression_type: str
    expression: str | None

    @classmethod
    def by_tag(cls, tags: str | None = SUB_ALL) -> Self:
        """Selects messages with one of the given tags; `*` selects all."""
        return cls(TAG, tags)

    @classmethod
    def by_sql(cls, expression: str) -> Self:
        """Selects messages whose properties match an SQL92 expression. The broker parses the expression.

        Warns:
            ExpressionWarning: It names a column such as `queue_offset`; expressions only see properties.
        """
        with suppress(ExpressionError):
            warn_of_columns(expression, _INSTEAD)
        return cls(SQL92, expression)


def build_subscription_data(
    topic: str, expression: str | MessageSelector | None = SUB_ALL, *, now: int | None = None
) -> SubscriptionData:
    """Builds the subscription for heartbeats. As in RocketMQ, "" selects all messages, and blanks alone select none.

    Raises:
        ExpressionError: There is no tag between the `||`, or the SQL92 expression is blank.

    Example:
        >>> build_subscription_data("orders", "paid || sent", now=1).tags_set
        ('paid', 'sent')
    """
    # a broker keeps only the newest subscription of a group and topic
    version = int(time.time() * 1000) if now is None else now
    selector = expression if isinstance(expression, MessageSelector) else MessageSelector.by_tag(expression)
    if selector.expression_type != TAG:
        if not (selector.expression or "").strip():
            raise ExpressionError(f"Expression can't be null! {selector.expression_type}")
        return SubscriptionData(
            topic=topic,
            sub_string=selector.expression or "",
            sub_version=version,
            expression_type=selector.expression_type,
        )
    text = selector.expression or SUB_ALL
    # the broker filters by hashes, the consumer by tags: different tags may have the same hash
    tags, codes = _native.parse_tags(text)
    return SubscriptionData(
        topic=topic, sub_string=text, tags_set=tuple(tags), code_set=tuple(codes), sub_version=version
    )


@dataclass(frozen=True, slots=True)
class SubscriptionConflict:
    """A topic to which the consumers of a group subscribe differently.

    Attributes:
        group: The group.
        topic: The topic.
        expressions: The members' expressions by client id; `(none)` for a member that does not subscribe.
    """

    group: str
    topic: str
    expressions: Mapping[str, str]

    def __str__(self) -> str:
        wishes = ", ".join(f"{client_id} wants {expression}" for client_id, expression in self.expressions.items())
        return f"members of group {self.group} subscribe differently to {self.topic}: {wishes}"


def conflicts_of(group: str, members: Mapping[str, Mapping[str, SubscriptionData]]) -> list[SubscriptionConflict]:
    """Returns the topics to which the consumers of a group subscribe differently, sorted."""
    subscribed = {topic for subscriptions in members.values() for topic in subscriptions}
    topics = sorted(topic for topic in subscribed if not topic.startswith(RETRY_PREFIX))
    conflicts = []
    for topic in topics:
        by_client = {client_id: members[client_id].get(topic) for client_id in sorted(members)}
        if len({meaning_of(subscription) for subscription in by_client.values()}) > 1:
            expressions = {client_id: expression_of(subscription) for client_id, subscription in by_client.items()}
            conflicts.append(SubscriptionConflict(group, topic, expressions))
    return conflicts


def subscription_conflicts(
    group: str,
    client_id: str,
    mine: Iterable[SubscriptionData],
    group_table: Mapping[str, SubscriptionData],
    others: Mapping[str, Mapping[str, SubscriptionData] | None],
) -> list[SubscriptionConflict]:
    """Returns the conflicts among consumers that answered, and if some did not, also those that the broker shows."""
    own = {subscription.topic: subscription for subscription in mine}
    answers = {name: by_topic for name, by_topic in others.items() if by_topic is not None}
    conflicts = conflicts_of(group, {client_id: own, **answers})
    if len(answers) < len(others):
        named = {conflict.topic for conflict in conflicts}
        conflicts += [c for c in _find_unexplained(group, client_id, own, group_table) if c.topic not in named]
    return sorted(conflicts, key=lambda conflict: conflict.topic)


def expression_of(subscription: SubscriptionData | None) -> str:
    """Returns the expression of a subscription for logs."""
    if subscription is None:
        return NOTHING
    prefix = "" if subscription.is_tag_type else f"{subscription.expression_type} "
    return prefix + subscription.sub_string


def _find_unexplained(
    group: str, client_id: str, mine: Mapping[str, SubscriptionData], group_table: Mapping[str, SubscriptionData]
) -> list[SubscriptionConflict]:
    """Returns conflicts for topics whose subscription at the broker differs from this consumer's and is not older.

    A topic that the broker does not have proves nothing: the heartbeat may be in flight.
    """
    conflicts = []
    for topic, theirs in group_table.items():
        own = mine.get(topic)
        is_late = own is not None and own.sub_version > theirs.sub_version
        if not topic.startswith(RETRY_PREFIX) and not is_late and meaning_of(own) != meaning_of(theirs):
            expressions = {client_id: expression_of(own), SOMEBODY: expression_of(theirs)}
            conflicts.append(SubscriptionConflict(group, topic, expressions))
    return conflicts
