"""Decides at which offset a queue continues after a pull at an offset that it does not have.

Source: RocketMQ's `DefaultMQPushConsumerImpl`, `DefaultLitePullConsumerImpl`.
"""

from __future__ import annotations

from typing import Any

from rmqfast._native import Fetched
from rmqfast.client.instance.api import ClientApi
from rmqfast.client.pulling.pulled_queues import PulledQueue
from rmqfast.client.pulling.single_pulls import PullStatus
from rmqfast.errors import RmqError
from rmqfast.logs import logger_of

_log = logger_of(__name__)


def has_illegal_offset(fetched: Fetched) -> bool:
    """Whether the queue does not have the offset that was pulled."""
    return fetched.status == PullStatus.OFFSET_ILLEGAL


def offset_to_go_on_at(api: ClientApi, pulled: PulledQueue[Any], fetched: Fetched) -> int:
    """Returns the offset at which to continue after OFFSET_ILLEGAL. Logs the reason.

    The broker suggests an offset, which is the queue's end if the offset was too high. If the queue's first message is
    newer than the last message received, the topic was deleted and created again: then it is the first message.
    """
    first, end, offset = fetched.min_offset, fetched.max_offset, fetched.next_begin_offset
    text = f"{pulled.queue} does not have the offset {fetched.begin_offset}, but {first} to {end}"
    if fetched.begin_offset <= end:
        _log.warning("%s: retention removed messages that were not consumed; goes on at %d", text, offset)
    elif _is_made_anew(api, pulled):
        _log.warning("%s: its topic was deleted and made anew; goes on at %d", text, first)
        return first
    else:
        _log.warning(
            "%s: its broker lost the last messages, or its topic was deleted and made anew; goes on at %d, where the "
            "broker says, past %d messages: reset the group's offset to read them",
            *(text, offset, max(0, offset - first)),
        )
    return offset


def _is_made_anew(api: ClientApi, pulled: PulledQueue[Any]) -> bool:
    if pulled.last_store_timestamp is None:
        return False
    try:
        return api.earliest_store_time(pulled.address, pulled.queue) > pulled.last_store_timestamp
    except RmqError as error:
        _log.warning("%s: the store time of its first message is not known: %s", pulled.queue, error)
        return False
