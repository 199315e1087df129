"""How much of what waits a trigger takes: decisions from values alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

__all__ = ["allotted"]

Key = TypeVar("Key")


def allotted(waiting: Mapping[Key, int], most: int) -> dict[Key, int]:
    """Shares a number of messages out among queues, in proportion to what waits in each.

    Args:
        waiting: Messages by queue.
        most: How many in all; what is left over by rounding goes to the queues in their order.

    Returns:
        A share for each queue, none above what waits there; together `most`, or all there is.

    Example:
        >>> allotted({"a": 90, "b": 9, "c": 0}, 10)
        {'a': 10, 'b': 0, 'c': 0}
        >>> allotted({"a": 5, "b": 5}, 100)
        {'a': 5, 'b': 5}

    Source: `KafkaMicroBatchStream.rateLimit`.
    """
    total = sum(waiting.values())
    if total <= most:
        return dict(waiting)
    shares = {key: count * most // total for key, count in waiting.items()}
    left = most - sum(shares.values())
    for key, count in waiting.items():
        more = min(left, count - shares[key], 1)
        shares[key] += more
        left -= more
    return shares
