"""Parts of a document that a program writes: what stands between two marks."""

from __future__ import annotations


def with_part(text: str, begin: str, end: str, part: str) -> str:
    """The document with another part between its marks; each mark must stand there once, in this order."""
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ValueError(f"expected {begin.strip()} and {end.strip()} once, in this order")
    return text.partition(begin)[0] + begin + part + end + text.partition(end)[2]
