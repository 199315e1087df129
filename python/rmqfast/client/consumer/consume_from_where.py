"""Computes the offset at which a consumer starts in a queue that was assigned to it.

Source: RocketMQ's `ConsumeFromWhere`, `RebalancePushImpl`, `RebalanceLitePullImpl`, `UtilAll`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum

from rmqfast.client.consumer.offset_store import NO_OFFSET
from rmqfast.client.instance.namespaces import RETRY_PREFIX
from rmqfast.errors import ArgumentError
from rmqfast.message import MessageQueue

_FORMAT = "%Y%m%d%H%M%S"
_DIGITS = 14


class ConsumeFromWhere(StrEnum):
    """The position at which a group without offsets starts.

    RocketMQ's three deprecated values mean `CONSUME_FROM_LAST_OFFSET`.

    Example:
        >>> from rmqfast import ConsumeFromWhere, EmbeddedCluster, LitePullConsumer, Message, Producer
        >>> from rmqfast.client.lite_pull import LitePullOptions
        >>> first = LitePullOptions(consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
        >>> with EmbeddedCluster() as cluster, Producer("shop", name_server=cluster.name_server) as producer:
        ...     sent = producer.send(Message("orders", b"sent before the group was there"))
        ...     with LitePullConsumer("billing", name_server=cluster.name_server, options=first) as consumer:
        ...         consumer.subscribe("orders", "*")
        ...         [message.body for message in consumer.poll(timeout=60)]
        [b'sent before the group was there']
    """

    CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST = "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST"
    CONSUME_FROM_MIN_OFFSET = "CONSUME_FROM_MIN_OFFSET"
    CONSUME_FROM_MAX_OFFSET = "CONSUME_FROM_MAX_OFFSET"
    CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


def compute_pull_from_where(
    where: ConsumeFromWhere,
    queue: MessageQueue,
    stored: int,
    *,
    max_offset: Callable[[MessageQueue], int],
    search_offset: Callable[[MessageQueue, int], int],
    consume_timestamp: str,
) -> int:
    """Returns the offset at which to start in a queue. -1 if it is not known yet.

    Args:
        where: Start position of a group without an offset.
        queue: The queue.
        stored: Result of the offset store: an offset, `NO_OFFSET` or `UNREACHABLE`.
        max_offset: Returns the offset after the last message of a queue.
        search_offset: Returns the offset of a time in milliseconds since 1970.
        consume_timestamp: Start time for `CONSUME_FROM_TIMESTAMP`: `yyyyMMddHHmmss`, local time.

    Raises:
        RemotingError: `max_offset` or `search_offset` raised it.

    Example:
        >>> queue, asks = MessageQueue("t", "b", 0), {"max_offset": lambda _: 9, "search_offset": lambda *_: 3}
        >>> last = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
        >>> [compute_pull_from_where(last, queue, n, **asks, consume_timestamp="") for n in (5, -1, -2)]
        [5, 9, -1]
    """
    if stored >= 0:
        return stored
    # the broker did not answer: starting anywhere else would skip or repeat messages
    if stored != NO_OFFSET:
        return -1
    is_retry = queue.topic.startswith(RETRY_PREFIX)
    if where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET:
        return 0
    if where is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
        return max_offset(queue) if is_retry else search_offset(queue, parse_consume_timestamp(consume_timestamp))
    # a retry topic is always read from its start: messages sent back must not be skipped
    return 0 if is_retry else max_offset(queue)


def parse_consume_timestamp(text: str) -> int:
    """Converts a local time `yyyyMMddHHmmss` to milliseconds since 1970.

    Raises:
        ArgumentError: The string has another format.
    """
    if len(text) != _DIGITS:
        raise _invalid(text)
    try:
        return int(time.mktime(time.strptime(text, _FORMAT)) * 1000)
    except (ValueError, OverflowError) as error:
        raise _invalid(text) from error


def half_an_hour_ago(now: float | None = None) -> str:
    """Returns the default `consume_timestamp`: the local time 30 minutes before `now` (in seconds since 1970).

    Example:
        >>> from datetime import datetime
        >>> from rmqfast.client.consumer import half_an_hour_ago
        >>> half_an_hour_ago(datetime(2026, 11, 21, 12).timestamp())
        '20261121113000'
    """
    return time.strftime(_FORMAT, time.localtime((time.time() if now is None else now) - 1800))


def _invalid(text: str) -> ArgumentError:
    return ArgumentError(f"consumeTimestamp is invalid, the valid format is yyyyMMddHHmmss,but received {text}")
