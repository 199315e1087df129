"""Renders a store as HTML in notebooks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from rmqfast.html import MOST_ROWS, facts, table
from rmqfast.paths import list_directory
from rmqfast.store.report import StoreInfo

COLUMNS = ("topic", "queues", "messages", "min_offset", "max_offset")


Topics = Mapping[str, Mapping[int, tuple[int, int]]]


def store_html(
    title: str, path: str | os.PathLike[str], read_info: Callable[[], StoreInfo], read_topics: Callable[[], Topics]
) -> str:
    """Returns the facts of a store and its first topics as HTML. Only reads the first and the last message.

    A store without consume queues shows no topics, because finding them would read the whole log.
    """
    known: dict[str, object] = {"path": str(path)}
    # `topics()` would read the whole log
    if not _has_queues(path):
        return facts(title, known | {"topics": "no consume queues: topics() reads the whole log"})
    info, topics = read_info(), read_topics()
    known |= {
        "version": info.version,
        "first_store_timestamp": info.first_store_timestamp,
        "last_store_timestamp": info.last_store_timestamp,
    }
    rows = [
        (
            topic,
            len(queues),
            sum(high - low for low, high in queues.values()),
            min((low for low, _ in queues.values()), default=0),
            max((high for _, high in queues.values()), default=0),
        )
        for topic, queues in sorted(topics.items())[:MOST_ROWS]
    ]
    return facts(title, known) + table(COLUMNS, rows, caption="topics", count=len(topics))


def _has_queues(path: str | os.PathLike[str]) -> bool:
    return bool(list_directory(Path(path) / "consumequeue"))
