"""Records as they stand in the body of a pull's answer, written by peers and a broker of IPv4."""

from __future__ import annotations


def records_of(body: bytes) -> list[bytes]:
    """The records, one by one.

    Raises:
        ValueError: A size that is none.
    """
    found = []
    while body:
        size = int.from_bytes(body[:4], "big")
        if not 0 < size <= len(body):
            raise ValueError(f"expected a record of 1 to {len(body)} bytes, got {size}")
        found.append(body[:size])
        body = body[size:]
    return found


def body_of(record: bytes) -> bytes:
    """The body of the message."""
    length = int.from_bytes(record[84:88], "big")
    return record[88 : 88 + length]
