"""An event of a message's life."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EventKind(StrEnum):
    """The kind of an event.

    Attributes:
        SENT: A producer made the message.
        STORED: A broker stored it.
        HANDED_OUT: A member was handed it.
        DROPPED: A member was handed it, and its tag check dropped it.
        FILTERED: A member's pull passed it, and the broker's filter left it out.
        PULLED: A member's pull passed it, and it is not known whether it got it.
        CONFIRMED: The offset that the member told had passed it.
        MOVED: Somebody moved the group's offset over it.
        SENT_BACK: A member sent it back, to get it again.
        RETRIED: It was stored in the group's retry topic.
        DEAD: It was stored among the group's dead letters.
        BEGUN: A listener was called with it, as the member's trace says.
        PROCESSED: The listener processed it, as the trace says.
        FAILED: The listener or the send failed, as the trace says.
        ENDED: Its transaction ended, as the trace says.
    """

    SENT = "SENT"
    STORED = "STORED"
    HANDED_OUT = "HANDED_OUT"
    DROPPED = "DROPPED"
    FILTERED = "FILTERED"
    PULLED = "PULLED"
    CONFIRMED = "CONFIRMED"
    MOVED = "MOVED"
    SENT_BACK = "SENT_BACK"
    RETRIED = "RETRIED"
    DEAD = "DEAD"
    BEGUN = "BEGUN"
    PROCESSED = "PROCESSED"
    FAILED = "FAILED"
    ENDED = "ENDED"


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageEvent:
    """Something that happened to a message.

    Attributes:
        timestamp: Time in milliseconds since 1970, by the clock of who tells it; 0 if it does not tell one.
        kind: The kind of the event.
        text: A sentence.
        group: The group that it is about; `None` for the producer's and the broker's part.
        client: Client id or address of the client; `None` if nobody tells it.
    """

    timestamp: int
    kind: EventKind
    text: str
    group: str | None = None
    client: str | None = None
