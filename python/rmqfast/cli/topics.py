"""Describes a store and its topics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from rmqfast.cli.output import Row
from rmqfast.store import MessageStore

TOPIC_COLUMNS = (
    "topic",
    "queues",
    "messages",
    "min_offset",
    "max_offset",
    "first_store_timestamp",
    "last_store_timestamp",
)

Queues = dict[int, tuple[int, int]]


def store_facts(store: MessageStore) -> dict[str, object]:
    """Returns `MessageStore.info` as one record: the number of index files, and the checkpoint as three times."""
    facts = asdict(store.info())
    log, queues, index = facts.pop("checkpoint") or (None, None, None)
    facts["known_topics"] = facts.pop("topics")
    facts["index_files"] = len(facts["index_files"])
    flushed = {"log_flushed_timestamp": log, "queues_flushed_timestamp": queues, "index_flushed_timestamp": index}
    notes = facts.pop("notes")
    return facts | flushed | {"notes": notes}


def topic_rows(store: MessageStore) -> list[Row]:
    """Returns one row per topic, with the lowest and the highest offset of its queues."""
    return [_topic_row(store, topic, queues) for topic, queues in sorted(store.topics().items())]


def _topic_row(store: MessageStore, topic: str, queues: Queues) -> Row:
    filled = {queue_id: (low, high) for queue_id, (low, high) in queues.items() if high > low}
    firsts = _times(store, topic, ((queue_id, low) for queue_id, (low, _) in filled.items()))
    lasts = _times(store, topic, ((queue_id, high - 1) for queue_id, (_, high) in filled.items()))
    return (
        topic,
        len(queues),
        sum(high - low for low, high in queues.values()),
        min((low for low, _ in queues.values()), default=0),
        max((high for _, high in queues.values()), default=0),
        min(firsts, default=None),
        max(lasts, default=None),
    )


def _times(store: MessageStore, topic: str, places: Iterable[tuple[int, int]]) -> list[int]:
    """Returns the store times of the messages at these queue offsets. Skips messages that cannot be read."""
    answers = (store.get(topic, queue_id, offset, max_messages=1).messages for queue_id, offset in places)
    return [message.store_timestamp for messages in answers for message in messages]
