"""Where a time begins in a queue.

Brokers of 4.9 give the message that is nearest to a time, any one of those of the same millisecond, and of a queue with
several files the wrong file where these were copied. So what they say is where to look first.

Source: `ConsumeQueue.getOffsetInQueueByTime`, `MappedFileQueue.getMappedFileByTime`.
"""

from __future__ import annotations

from collections.abc import Callable

from rmqfast._native import pull_fields, read_pull
from rmqfast.client.ranges.topic_routes import TopicRoutes
from rmqfast.errors import ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode


def first_offset_at(when: int, bounds: tuple[int, int], hint: int, store_time: Callable[[int], int | None]) -> int:
    """The first offset of a queue whose message was stored at a time or later; the queue's end where none was.

    Args:
        when: Milliseconds since 1970.
        bounds: The queue's first offset, and the one behind its last.
        hint: Where to look first.
        store_time: When the message of an offset was stored; `None` where it is not there any more.

    Example:
        >>> times = [10, 20, 20, 20, 30]
        >>> [first_offset_at(when, (0, 5), 3, times.__getitem__) for when in (0, 20, 21, 31)]
        [0, 1, 4, 5]

    Source: as above.
    """
    low, high = bounds  # what is before `low` is older, what is from `high` on is not
    probe, step, turns = min(max(hint, low), max(high - 1, low)), 1, 0
    was_older = None
    while low < high:
        stored = store_time(probe)
        is_older = stored is None or stored < when
        low, high = (probe + 1, high) if is_older else (low, probe)
        turns += was_older is (not is_older)
        was_older = is_older
        probe = low + step - 1 if is_older else high - step  # from the hint on in steps that double
        step *= 2
        if turns or not low <= probe < high:  # then by halves
            turns, probe = 1, (low + high) // 2
    return low


def offset_at(
    routes: TopicRoutes, address: str, queue: MessageQueue, when: int, bounds: tuple[int, int], *, group: str
) -> int:
    """The first offset of a queue of a broker whose message was stored at a time or later.

    Args:
        routes: What requests go out by.
        address: The broker.
        queue: The queue.
        when: Milliseconds since 1970.
        bounds: As in `first_offset_at`.
        group: In whose name messages are looked at.

    Raises:
        RemotingError: The broker refuses, or does not answer.

    Source: `MQAdminImpl.searchOffset`.
    """
    if bounds[0] >= bounds[1]:
        return bounds[1]
    try:
        hint = routes.api.search_offset(address, queue, when)
    except ResponseError:
        hint = bounds[0]
    return first_offset_at(when, bounds, hint, lambda offset: _store_time(routes, address, queue, offset, group))


def _store_time(routes: TopicRoutes, address: str, queue: MessageQueue, offset: int, group: str) -> int | None:
    fields = pull_fields(group, queue, offset, 1)
    answer = routes.connections.request(address, RequestCode.PULL_MESSAGE, fields, timeout=routes.api.timeout)
    fetched = read_pull(
        queue, offset, code=answer.code, remark=answer.remark, ext_fields=answer.ext_fields, body=answer.body
    )
    if fetched.status == "FAILED" and fetched.code >= 0:
        raise ResponseError(fetched.code, fetched.remark)
    return fetched.messages[0].store_timestamp if fetched.messages else None
