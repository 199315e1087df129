"""Requests about single messages between the Java client of 4.9.4 and its broker, as they went over the wire.

A line of the file is a request: `code`, `version`, header `fields`, `body` in hex, `step` (what the client was doing),
and the `response` where there is one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "recorded-4.9.4.jsonl"


def recorded(code: int, step: str | None = None) -> list[dict[str, Any]]:
    """The requests of a code, in their order."""
    return [one for one in all_recorded() if one["code"] == code and step in {None, one["step"]}]


def all_recorded() -> list[dict[str, Any]]:
    """All requests, in their order."""
    return [json.loads(line) for line in FILE.read_text().splitlines()]
