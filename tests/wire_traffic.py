"""Recorded traffic between the official Java client and a broker or name server."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Exchange:
    """A request and, unless nobody waited for it, its answer."""

    row: int
    server: str
    code: int
    name: str
    step: str
    serialize: str
    request_header: dict[str, Any]
    request_body: bytes
    response_header: dict[str, Any] | None
    response_body: bytes

    def __str__(self) -> str:
        return f"{self.row} {self.step} {self.name}"


@cache
def exchanges(version: str) -> list[Exchange]:
    """All of a recording, in the order in which they were."""
    with gzip.open(GOLDEN / f"wire-{version}.jsonl.gz", "rt") as lines:
        return [_exchange(row, json.loads(line)) for row, line in enumerate(lines)]


def _exchange(row: int, recorded: dict[str, Any]) -> Exchange:
    return Exchange(
        row=row,
        server=recorded["server"],
        code=recorded["code"],
        name=recorded["name"],
        step=recorded["step"],
        serialize=recorded["serialize"],
        request_header=recorded["requestHeader"],
        request_body=_body(recorded["request"]),
        response_header=recorded.get("responseHeader"),
        response_body=_body(recorded["response"]) if "response" in recorded else b"",
    )


def _body(frame: str) -> bytes:
    data = bytes.fromhex(frame)
    return data[8 + int.from_bytes(data[5:8], "big") :]
