"""The stores of `golden/`, which real brokers wrote, and what RocketMQ's own classes read from them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import ipaddress
import json
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from .reference.index_file import Geometry

DIRECTORY = Path(__file__).parent / "golden"
NAMES = tuple(sorted(path.name.removesuffix(".tar.gz") for path in DIRECTORY.glob("*.tar.gz")))
GEOMETRY = Geometry(slots=1000, entries=4000)
MAX_BODY_GIVEN = 2048

Line = dict[str, Any]
#: What the fixtures `golden_store` and `golden_store_copy` are: the path of a store by its name.
PathOf = Callable[[str], Path]


def unpack(name: str, directory: Path) -> Path:
    """Unpacks a golden store into `directory` and gives the store's path; `broker.conf` is beside it."""
    directory.mkdir(parents=True, exist_ok=True)
    # files are mostly zeroes: tarfile would write them all
    subprocess.run(["tar", "-C", directory, "--sparse", "-xzf", DIRECTORY / f"{name}.tar.gz"], check=True)
    return directory / "store"


def version(name: str) -> str:
    """The RocketMQ version that wrote the store."""
    return name.rsplit("-", 1)[1]


def expected(name: str, started: bool = False) -> dict[str, list[Line]]:
    """What DumpStore of the same version says, its lines by kind; `started` is after a start, too (crashed stores)."""
    path = DIRECTORY / f"{name}{'.started' if started else ''}.expected.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return by_kind(file)


def expected_rows(name: str) -> list[Line]:
    """The messages of the store as rows, in physical order.

    Bodies above 2 KiB are given as `BodyDigest`, which equals the bytes that it stands for.
    """
    return rows_of(expected(name)["msg"], version(name))


def rows_of(lines: list[Line], written_by: str) -> list[Line]:
    """The rows of DumpStore's `msg` lines; `written_by` is the version of the DumpStore."""
    return [_row(line, written_by) for line in lines]


def by_kind(text: Iterable[str]) -> dict[str, list[Line]]:
    """JSON lines of DumpStore, grouped."""
    lines: dict[str, list[Line]] = {}
    for line in map(json.loads, text):
        lines.setdefault(line["kind"], []).append(line)
    return lines


class BodyDigest:
    """A body of which only length and SHA-1 are known; equal to bytes that have them."""

    def __init__(self, size: int, sha1: str) -> None:
        self.size, self.sha1 = size, sha1

    def __eq__(self, other: object) -> bool:
        if isinstance(other, BodyDigest):
            return (self.size, self.sha1) == (other.size, other.sha1)
        if not isinstance(other, bytes | bytearray | memoryview):
            return NotImplemented
        return len(other) == self.size and hashlib.sha1(other).hexdigest() == self.sha1

    def __hash__(self) -> int:
        return hash((self.size, self.sha1))

    def __repr__(self) -> str:
        return f"BodyDigest({self.size}, {self.sha1!r})"


def _row(line: Line, written_by: str) -> Line:
    return {
        "topic": line["topic"],
        "broker_name": None,
        "queue_id": line["queueId"],
        "queue_offset": line["queueOffset"],
        "physical_offset": line["commitLogOffset"],
        "msg_id": line["uniqKey"] or line["offsetMsgId"],
        "offset_msg_id": line["offsetMsgId"],
        "tags": line["tags"],
        "keys": line["keys"],
        "body": _body(line),
        "properties": line["properties"],
        "born_timestamp": line["bornTimestamp"],
        "store_timestamp": line["storeTimestamp"],
        "born_host": _host(line["bornHost"]),
        "store_host": _host(line["storeHost"]),
        "flag": line["flag"],
        "sys_flag": _stored_sys_flag(line["sysFlag"], written_by),
        "reconsume_times": line["reconsumeTimes"],
        "prepared_transaction_offset": line["preparedTransactionOffset"],
        "store_size": line["storeSize"],
        "body_crc": line["bodyCrc"],
    }


def _body(line: Line) -> bytes | BodyDigest:
    if line["bodyLen"] > MAX_BODY_GIVEN:
        return BodyDigest(line["bodyLen"], line["bodySha1"])
    return base64.b64decode(line["body"])


def _host(text: str) -> str:
    """Java writes 0:0:0:0:0:0:0:1:10911 where a row has [::1]:10911."""
    ip, port = text.rsplit(":", 1)
    return f"[{ipaddress.IPv6Address(ip)}]:{port}" if ":" in ip else text


def _stored_sys_flag(sys_flag: int, written_by: str) -> int:
    """5.x clears the bit for "compressed" once it has decompressed; it is set on disk where a type is given."""
    was_compressed = written_by.startswith("5.") and sys_flag & 0x700
    return sys_flag | 0x1 if was_compressed else sys_flag


def differences(rows: list[Line], wanted: list[Line]) -> Iterator[str]:
    """Says where two lists of rows differ, a line for each value; pytest would print both lists in full."""
    if len(rows) != len(wanted):
        yield f"{len(rows)} rows, expected {len(wanted)}"
    for row, want in zip(rows, wanted, strict=False):
        for column, value in want.items():
            if value != row.get(column):
                yield f"physical offset {want['physical_offset']}: {column} {row.get(column)!r}, expected {value!r}"
