"""What a consumer wants of a topic, as it is written: tags, or an SQL92 expression.

Source: `FilterAPI`, `MessageSelector`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Self

from rmqfast.errors import ExpressionError
from rmqfast.remoting.hash_map import java_hash
from rmqfast.remoting.protocol.subscription_data import SUB_ALL, TAG, SubscriptionData

SQL92 = "SQL92"
#: What `String.trim` takes away, which is not what Python does.
_BLANKS = "".join(map(chr, range(ord(" ") + 1)))


@dataclass(frozen=True, slots=True)
class MessageSelector:
    """Which messages of a topic are wanted.

    Attributes:
        expression_type: `TAG` or `SQL92`.
        expression: Tags joined by `||`, or the SQL92 expression.

    Example:
        >>> MessageSelector.by_sql("price > 10").expression_type, MessageSelector.by_tag("A || B").expression
        ('SQL92', 'A || B')

    Source: `MessageSelector`.
    """

    expression_type: str
    expression: str | None

    @classmethod
    def by_tag(cls, tags: str | None = SUB_ALL) -> Self:
        """Messages with one of these tags; all of them for `*`."""
        return cls(TAG, tags)

    @classmethod
    def by_sql(cls, expression: str) -> Self:
        """Messages of whose properties the expression is true."""
        return cls(SQL92, expression)


def build_subscription_data(
    topic: str, expression: str | MessageSelector | None = SUB_ALL, *, now: int | None = None
) -> SubscriptionData:
    """The subscription that a heartbeat carries.

    Args:
        topic: The topic.
        expression: Tags joined by `||`, or a selector.
        now: Milliseconds since 1970, its version; the present time unless given.

    Raises:
        ExpressionError: There is nothing between the `||`, or a selector of another type says nothing. RocketMQ takes
            blanks for tags that no message has, and delivers nothing.

    Example:
        >>> build_subscription_data("orders", "paid || sent", now=1).tags_set
        ('paid', 'sent')

    Source: `FilterAPI.buildSubscriptionData`, `FilterAPI.build`.
    """
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
    if selector.expression in {None, "", SUB_ALL}:
        return SubscriptionData(topic=topic, sub_version=version)
    text = selector.expression or ""
    tags = tuple(dict.fromkeys(tag for part in text.split("||") if (tag := part.strip(_BLANKS))))
    if not tags:
        raise ExpressionError(f"subString split error: expected tags between ||, got {text!r}")
    codes = tuple(dict.fromkeys(_signed(java_hash(tag)) for tag in tags))
    return SubscriptionData(topic=topic, sub_string=text, tags_set=tags, code_set=codes, sub_version=version)


def _signed(code: int) -> int:
    return code - (1 << 32) if code >= 1 << 31 else code
