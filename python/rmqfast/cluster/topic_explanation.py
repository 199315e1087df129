"""Explanations of cluster scans. They ask no broker."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, cast

from rmqfast._native import COLUMNS
from rmqfast.store import FilterUse, PieceExplanation, QueueRange, ScanExplanation, ScanRequest
from rmqfast.store.explanation import Certainty, PieceWay

#: Way, address, ranges of queues, and the range of the log, as `TopicRead.explain` gives them.
Piece = tuple[str, str | None, list[tuple[str, str, int, int, int]], tuple[int, int] | None]

_OFFSETS = "offsets outside of it are not asked for"
_NARROWS = {
    "topic": "only its queues are read",
    "queue_ids": "other queues are not read",
    "start_offset": _OFFSETS,
    "end_offset": _OFFSETS,
    "start_time": "the offsets begin where the brokers find the time; each message's time is compared",
    "end_time": "the offsets end where the brokers find the time; each message's time is compared",
}
_OF_PULLS = {
    "tags": "the broker compares the hash of the tag in its queue; the tag itself is compared after the pull",
    "sql": "the broker evaluates it",
}


class _Source(Protocol):
    @property
    def options(self) -> Mapping[str, str]: ...
    @property
    def threads(self) -> int: ...
    @property
    def ways(self) -> str: ...
    @property
    def filters(self) -> Sequence[tuple[str, str, list[Any]]]: ...


def explain_topics(
    pieces: Sequence[Piece], source: _Source, request: ScanRequest, *, count: int | None, limit: int | None
) -> ScanExplanation:
    """Returns the explanation of a scan of planned pieces. `count` is the number of messages if it is known."""
    reasons: dict[str, str | None] = dict(json.loads(source.ways or "[]"))
    explained = tuple(_piece(piece, source.options.get("via", "pull"), reasons) for piece in pieces)
    messages, certainty = _messages(explained, count, limit)
    return ScanExplanation(
        messages=messages,
        messages_are=certainty,
        columns=tuple(COLUMNS if request.columns is None else request.columns),
        filters=tuple(_filters(request, source, is_pulled=all(piece.way == "pull" for piece in explained))),
        pieces=explained,
        threads=max(1, min(source.threads, len(explained))),
        limit=limit,
        io="pull",
        not_read=("offsets that messages have got since the scan was made",),
    )


def _piece(piece: Piece, via: str, reasons: Mapping[str, str | None]) -> PieceExplanation:
    way, address, ranges, log = piece
    queues = tuple(QueueRange(*each) for each in ranges)
    because = next((reasons.get(each.broker_name) for each in queues), None)
    reason = f"pulled, as {because}" if way == "pull" and because else f"via={via!r} is asked for"
    begin, end = log or (None, None)
    return PieceExplanation(
        way=cast("PieceWay", way), reason=reason, begin=begin, end=end, queues=queues, address=address
    )


def _messages(pieces: Iterable[PieceExplanation], count: int | None, limit: int | None) -> tuple[int | None, Certainty]:
    # several pieces of a copy have the same ranges
    ranges = {each for piece in pieces for each in piece.queues}
    most = sum(max(each.end - each.start, 0) for each in ranges) if count is None else count
    return most if limit is None else min(most, limit), "at most" if count is None else "exact"


def _filters(request: ScanRequest, source: _Source, *, is_pulled: bool) -> Iterable[FilterUse]:
    # one offset of all queues is a filter
    bounds = {kind for kind, column, _ in source.filters if column == "queue_offset"}
    is_set = {
        "topic": request.topic is not None or request.among is not None,
        "queue_ids": request.queue_ids is not None,
        "start_offset": ">=" in bounds or source.options.get("startingOffsets", "earliest") != "earliest",
        "end_offset": "<" in bounds or source.options.get("endingOffsets", "latest") != "latest",
        "start_time": request.start_time is not None,
        "end_time": request.end_time is not None,
        "tags": bool(request.tags) and request.tags != "*",
        "sql": request.sql is not None,
        "keys": request.keys is not None,
        "keys_prefix": request.keys_prefix is not None,
    }
    for name in (name for name, is_used in is_set.items() if is_used):
        yield FilterUse(name, _NARROWS.get(name) or (_OF_PULLS.get(name) if is_pulled else None))
