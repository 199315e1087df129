"""A subscription: what a consumer wants of a topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rmqfast.remoting.protocol.json_object import JsonObject

MAX_TAGS = 10_000
SUB_ALL = "*"
TAG = "TAG"


@dataclass(frozen=True, kw_only=True, slots=True)
class SubscriptionData:
    """A subscription as a heartbeat has it.

    Attributes:
        sub_string: Tags joined by `||`, `*` for all, or an expression.
        tags_set: The tags, in the client's order.
        code_set: Their Java hashes.
        sub_version: The client's version of it, in milliseconds since 1970: the greatest one counts.
        expression_type: `TAG` or `SQL92`.
        class_filter_mode: Whether a class filters, which no broker of 4.9 does.

    Example:
        >>> body = b'{"topic":"t","subString":"A","tagsSet":["A"],"codeSet":[65],"subVersion":7}'
        >>> subscription = SubscriptionData.from_json(JsonObject.of_body(body), now=9)
        >>> subscription.sub_version, subscription.is_tag_type
        (7, True)

    Source: `SubscriptionData`.
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
        """Whether tags are wanted, not what an expression says.

        Source: `ExpressionType.isTagType`.
        """
        return self.expression_type == TAG

    @classmethod
    def from_json(cls, members: JsonObject, *, now: int) -> SubscriptionData:
        """The subscription that an object of a body is.

        Raises:
            ResponseError: A member of another type, or too many tags.
        """
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
        """The object that a body has for it."""
        return {
            "classFilterMode": self.class_filter_mode,
            "codeSet": list(self.code_set),
            "expressionType": self.expression_type,
            "subString": self.sub_string,
            "subVersion": self.sub_version,
            "tagsSet": list(self.tags_set),
            "topic": self.topic,
        }
