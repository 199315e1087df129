"""Selects the settings and offsets of some topics from a broker's configuration."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from rmqfast.broker.topics.topic_names import SCHEDULE_TOPIC
from rmqfast.store.config import ConsumerOffsetTable, DelayOffsetTable, TopicConfigTable
from rmqfast.store.config.file import ConfigFile


def of_topics(table: ConfigFile, topics: AbstractSet[str]) -> ConfigFile | None:
    """Returns the part of a table about these topics. `None` for a table that a mirror of some topics does not have."""
    match table:
        case TopicConfigTable():
            entries = (entry for name, entry in table.items() if name in topics)
            kept: ConfigFile = TopicConfigTable(entries, table.data_version)
        case ConsumerOffsetTable():
            kept = offsets = ConsumerOffsetTable()
            for (topic, group), queues in table.items():
                for queue_id, offset in queues.items() if topic in topics else ():
                    offsets.commit(topic, group, queue_id, offset)
        # Without these offsets, a broker would deliver all delayed messages again.
        case DelayOffsetTable() if SCHEDULE_TOPIC in topics:
            return table
        # Groups do not belong to a topic.
        case _:
            return None
    kept.other = table.other
    return kept
