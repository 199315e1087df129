"""How the control plane stores messages of its own: retries, delayed messages that are due, ends of transactions."""

from __future__ import annotations

from typing import Protocol, TypedDict, Unpack

from rmqfast.message import Message
from rmqfast.store.writer import AppendResult

__all__ = ["Append", "MessageOrigin", "status_of"]


class MessageOrigin(TypedDict, total=False):
    """What a message says of its way, beside what the application gave it: see `WritableStore.append`."""

    born_host: str | None
    sys_flag: int
    reconsume_times: int
    prepared_transaction_offset: int


class Append(Protocol):
    """Stores one message, as `WritableStore.append` does.

    Source: `MessageStore.putMessage`.
    """

    def __call__(self, message: Message, **origin: Unpack[MessageOrigin]) -> AppendResult:
        """Stores the message.

        Raises:
            RmqError: It is not stored, or, as a `FlushTimeoutError`, not on the disk in time; `put_status` says why.
        """


def status_of(error: Exception) -> str:
    """What a broker calls an append that failed: the name of a `PutMessageStatus`.

    Example:
        >>> status_of(OSError("no space left"))
        'UNKNOWN_ERROR'

    Source: `PutMessageStatus`.
    """
    return getattr(error, "put_status", None) or "UNKNOWN_ERROR"
