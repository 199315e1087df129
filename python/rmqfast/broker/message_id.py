"""Reads the physical offset out of a broker's message id, for requests that name a message by it."""

__all__ = ["offset_of_id"]


def offset_of_id(offset_msg_id: str) -> int:
    """The physical offset that a broker's message id says.

    Raises:
        ValueError: It is no such id.

    Example:
        >>> offset_of_id("0A01020300002A9F00000000075BCD15")
        123456789

    Source: `MessageDecoder.decodeMessageId`.
    """
    digits = bytes.fromhex(offset_msg_id)
    # `fromhex` passes over blanks: a text of the right length may have too few digits
    if len(digits) not in (16, 28) or len(offset_msg_id) != 2 * len(digits):
        raise ValueError(f"message id: expected 32 or 56 hex digits, got {len(offset_msg_id)}")
    return int.from_bytes(digits[-8:], "big", signed=True)
