"""Compares JSON whose order says nothing: that of Java's hash tables."""

from __future__ import annotations

from typing import Any

from rmqfast.remoting.fastjson import decode


def unordered(body: bytes) -> Any:
    """The value of a body with its lists sorted; other bodies as they are."""
    return in_order(decode(body)) if body[:1] in {b"{", b"["} else body


def in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: in_order(member) for key, member in value.items()}
    return sorted(map(in_order, value), key=repr) if isinstance(value, list) else value
