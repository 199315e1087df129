"""Properties of a message: name 0x01 value 0x02 name 0x01 value 0x02 ..., UTF-8.

4.9 drops the last 0x02, 5.x keeps it. Source: MessageDecoder.messageProperties2String, string2messageProperties.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

NAME_VALUE_SEPARATOR = "\x01"
PROPERTY_SEPARATOR = "\x02"

KEYS = "KEYS"
TAGS = "TAGS"
UNIQ_KEY = "UNIQ_KEY"
DELAY = "DELAY"

CRC_NAME = "__CRC32#"
CRC_RESERVED_BYTES = 20


def encode(pairs: Iterable[tuple[str, str]], trailing_separator: bool = False) -> bytes:
    """The stored bytes of `pairs`, in their order, duplicates included."""
    text = PROPERTY_SEPARATOR.join(name + NAME_VALUE_SEPARATOR + value for name, value in pairs)
    if text and trailing_separator:
        text += PROPERTY_SEPARATOR
    return text.encode()


def decode(stored: bytes) -> dict[str, str]:
    """Name to value. Empty names and empty values vanish, a duplicated name keeps its last value."""
    found = {}
    for segment in stored.decode(errors="replace").split(PROPERTY_SEPARATOR):
        at = segment.find(NAME_VALUE_SEPARATOR)
        if 1 <= at < len(segment) - 1:
            found[segment[:at]] = segment[at + 1 :]
    return found


def encode_crc(checked: bytes) -> bytes:
    """The 20 bytes that end the properties where enabledAppendPropCRC is on; `checked` is the record before them.

    Source: MessageDecoder.createCrc32 (5.x), which prints the number from its last digit on.
    """
    digits = str(zlib.crc32(checked) & 0x7FFFFFFF)[::-1].ljust(10, "0")
    return f"{CRC_NAME}{NAME_VALUE_SEPARATOR}{digits}{PROPERTY_SEPARATOR}".encode()
