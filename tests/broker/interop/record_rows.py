"""Messages as they are stored and sent, taken apart without the code under test."""

from __future__ import annotations

import struct
from typing import Any

from . import masks

FIXED = struct.Struct(">IIIIIQQI QIIQII IQ")
NAMES: tuple[str, ...] = ("size", "magic", "crc", "queueId", "flag", "queueOffset", "physicalOffset", "sysFlag")
NAMES += ("born", "bornHost", "bornPort", "stored", "storeHost", "storePort", "reconsumeTimes", "prepared")
MASKED = ("physicalOffset", "bornPort", "stored", "storePort")


def record_rows(data: bytes) -> list[dict[str, Any]]:
    """Each message of a body; offsets in the log, times of storing and ports are masked."""
    rows, at = [], 0
    while at < len(data):
        row: dict[str, Any] = dict(zip(NAMES, FIXED.unpack_from(data, at), strict=True))
        end, at = at + row["size"], at + FIXED.size
        (length,) = struct.unpack_from(">I", data, at)
        row["body"], at = data[at + 4 : at + 4 + length], at + 4 + length
        row["topic"], at = data[at + 1 : at + 1 + data[at]].decode(), at + 1 + data[at]
        row["properties"] = properties(data[at + 2 : end].decode())
        row |= dict.fromkeys(MASKED, "<masked>") | {"prepared": row["prepared"] != 0}
        rows.append(row)
        at = end
    return rows


def properties(text: str) -> dict[str, str]:
    """Names and values, of those that are made anew the names only."""
    pairs = [pair.split("\x01", 1) for pair in text.split("\x02") if pair]
    again = masks.PROPERTIES.keys() - {"UNIQ_KEY", "__transactionId__", "CORRELATION_ID", "REPLY_TO_CLIENT"}
    return {name: "<masked>" if name in again else value for name, value in pairs}
