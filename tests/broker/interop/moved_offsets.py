"""Places in a log that another broker wrote: a request that names one is sent with the place on this broker.

A broker of 5.x stores more properties with each message than one of 4.9.4, so its records are longer, and what a client
says of its log (this message comes back, this transaction ends) means nothing in the other.
"""

from __future__ import annotations

from .frames import JSON, Frame

VIEW, SEND_BACK, END_TRANSACTION = 33, 36, 37
NAMED = {VIEW: "offset", SEND_BACK: "offset", END_TRANSACTION: "commitLogOffset"}
QUEUE_OFFSET = "tranStateTableOffset"


class MovedOffsets:
    """The new physical offset of each message that was sent."""

    def __init__(self) -> None:
        self._now: dict[str, tuple[str, str]] = {}

    def learn(self, recorded: Frame, got: Frame) -> None:
        """Two answers to one send: their offset ids say where each broker put the message."""
        ids = (frame.fields.get("msgId", "").split(",") for frame in (recorded, got))
        queue_offset = got.fields.get("queueOffset", "")
        self._now |= {
            place(one): (place(other), queue_offset) for one, other in zip(*ids, strict=False) if one and other
        }

    def request(self, data: bytes) -> bytes:
        """A recorded request as this broker understands it."""
        frame = Frame.read(data)
        name = NAMED.get(frame.code)
        if name is None or frame.serialization != JSON or frame.fields[name] not in self._now:
            return data
        offset, queue_offset = self._now[frame.fields[name]]
        moved = {name: offset} | ({QUEUE_OFFSET: queue_offset} if QUEUE_OFFSET in frame.fields else {})
        return Frame(JSON, frame.header | {"extFields": frame.fields | moved}, frame.body).written()


def place(offset_id: str) -> str:
    """The offset in the log that an offset id ends with."""
    return str(int(offset_id[-16:], 16)) if offset_id else ""
