"""Bodies that are not those that were stored: brokers hand out what their disks give, and check nothing."""

from __future__ import annotations

from collections.abc import Sequence

from rmqfast._native import Fetched, MessageView, decode_pull
from rmqfast.errors import RemotingProtocolError

#: No message has such a tag: all are looked at, and none becomes an object.
_NO_TAG = frozenset({"\x02"})


def changed_bodies(fetched: Sequence[Fetched]) -> list[MessageView]:
    """Messages whose stored body does not match its CRC.

    Args:
        fetched: What pulls brought.

    Source: `MessageDecoder.decode` with `checkCRC`, which Java's consumers do not ask for.
    """
    return [view for answer in fetched if not _is_sound(answer.body) for view in _changed(answer)]


def _changed(answer: Fetched) -> list[MessageView]:
    """Those of an answer, found one by one, as they are rare."""
    views = decode_pull(answer.body, broker_name=answer.queue.broker_name)
    return [view for view in views if not _is_sound(view.record)]


def _is_sound(records: bytes) -> bool:
    try:
        decode_pull(records, broker_name=None, tags=_NO_TAG, verify_crc=True)
    except RemotingProtocolError:
        return False
    return True
