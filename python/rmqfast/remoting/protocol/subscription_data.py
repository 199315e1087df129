"""A subscription: the topic and the filter of a consumer.

Source: `SubscriptionData`, `ExpressionType.isTagType`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rmqfast.remoting.protocol.json_object import JsonObject

MAX_TAGS = 10_000
_RETRY_PREFIX = "%RETRY%"
SUB_ALL = "*"
TAG = "TAG"


@dataclass(frozen=True, kw_only=True, slots=True)
class SubscriptionData:
    """A subscription of a heartbeat.

    Attributes:
        sub_string: Tags joined by `||`, `*` for all messages, or an SQL92 expression.
        code_set: Java hashes of the tags.
        sub_version: Version set by the client, in milliseconds since 1970; the highest version counts.
        expression_type: `TAG` or `SQL92`.
        class_filter_mode: Whether a Java class filters, which no broker of 4.9 supports.
    """

    topic: str
    sub_string: str = SUB_ALL
    tags_set: tuple[str, ...] = ()
    code_set: tuple[int, ...] = ()
    sub_version: int
    expression_type: str = TAG
    class_filter_mode: bool = False

    @property
    def is_tag_type(self) -> bool:
        """Whether the subscription filters by tags."""
        return self.expression_type == TAG

    @classmethod
    def from_json(cls, members: JsonObject, *, now: int) -> SubscriptionData:
        """Parses a subscription. Raises `ResponseError` for a field of the wrong type, or too many tags."""
        sub_string = members.optional_text("subString")
        return cls(
            topic=members.text("topic"),
            sub_string=SUB_ALL if sub_string is None else sub_string,
            tags_set=members.texts("tagsSet", most=MAX_TAGS),
            code_set=members.integers("codeSet", most=MAX_TAGS),
            sub_version=members.number("subVersion", now),
            expression_type=members.optional_text("expressionType") or TAG,
            class_filter_mode=members.flag("classFilterMode"),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "classFilterMode": self.class_filter_mode,
            "codeSet": list(self.code_set),
            "expressionType": self.expression_type,
            "subString": self.sub_string,
            "subVersion": self.sub_version,
            "tagsSet": list(self.tags_set),
            "topic": self.topic,
        }


def meaning_of(subscription: SubscriptionData | None) -> object:
    """Returns a value by which subscriptions can be compared. The order of tags does not matter."""
    if subscription is None:
        return None
    if subscription.is_tag_type and subscription.sub_string != SUB_ALL and subscription.tags_set:
        return frozenset(subscription.tags_set)
    return subscription.expression_type, subscription.sub_string.strip()


def count_differing(
    kept: Mapping[str, SubscriptionData], members: Iterable[Mapping[str, SubscriptionData]]
) -> dict[str, int]:
    """Returns for each topic how many members subscribe differently from the group, as its broker keeps it.

    Retry topics are left out, as each member subscribes to that of its group by itself.
    """
    meanings = {topic: meaning_of(each) for topic, each in kept.items() if not topic.startswith(_RETRY_PREFIX)}
    own = list(members)
    return {topic: sum(meaning_of(each.get(topic)) != meaning for each in own) for topic, meaning in meanings.items()}
