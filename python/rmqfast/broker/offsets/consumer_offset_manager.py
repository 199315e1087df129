"""Saves consumer offsets, and answers queries for them.

Source: RocketMQ's `ConsumerOffsetManager`, `ConfigManager`, `ConsumerManageProcessor`, `SlaveSynchronize`,
`AdminBrokerProcessor`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rmqfast._native import DataPlane
from rmqfast.broker.metadata import Metadata
from rmqfast.logs import QuietLock, logger_of
from rmqfast.store import LiveStore
from rmqfast.store.config import ConsumerOffsetTable
from rmqfast.store.config.offsets import warning_of_lost_offsets

LONG_MAX = (1 << 63) - 1
#: Keys (group and topic) per transaction, and transactions per save.
_PIECE, _PIECES = 5_000, 200

_log = logger_of("rmqfast.broker")


class ConsumerOffsetManager:
    """Saves and copies the data plane's offsets."""

    def __init__(self, metadata: Metadata, data_plane: DataPlane, store: LiveStore) -> None:
        self._metadata = metadata
        self._data_plane = data_plane
        self._store = store
        self._saving = QuietLock()
        self._is_kept = True

    def load(self) -> None:
        """Loads the saved offsets into the data plane. Warns if they are missing."""
        with self._saving:
            self._is_kept = self._metadata.is_kept(ConsumerOffsetTable)
            warning = warning_of_lost_offsets(self._metadata.root, is_kept=self._is_kept)
            if warning is not None:
                _log.warning("%s", warning)
            for (topic, group), queues in self._metadata.load(ConsumerOffsetTable).items():
                for queue_id, offset in queues.items():
                    self._data_plane.commit_offset(group, topic, queue_id, offset)
            while self._data_plane.take_changed_offsets(_PIECE):
                pass  # these are saved already

    def persist(self) -> None:
        """Saves changed offsets. The first call always writes the file, so a file that is missing later was removed."""
        with self._saving:
            # Bounded, since endless commits must not keep one save going forever.
            for _ in range(_PIECES):
                texts = self._data_plane.take_changed_offsets(_PIECE)
                self._metadata.put_texts(ConsumerOffsetTable, texts)
                self._metadata.flush()
                if len(texts) < _PIECE:
                    break
            if not self._is_kept:
                self._metadata.write_behind(ConsumerOffsetTable)
                self._is_kept = True

    def offset(self, group: str, topic: str, queue_id: int) -> int:
        """Returns the committed offset, or -1 if there is none."""
        return self._data_plane.offset(group, topic, queue_id)

    def take(self, table: ConsumerOffsetTable) -> None:
        """Applies the offsets of the master. Offsets that the master does not have stay."""
        for (topic, group), queues in table.items():
            for queue_id, offset in queues.items():
                if self._data_plane.offset(group, topic, queue_id) != offset:
                    self._data_plane.commit_offset(group, topic, queue_id, offset)

    def table(self) -> dict[str, dict[int, int]]:
        """Returns all offsets, by `topic@group` and queue."""
        return self._data_plane.offsets()

    def by_group(self) -> dict[str, dict[str, dict[int, int]]]:
        """Returns all offsets, by group, topic and queue."""
        groups: dict[str, dict[str, dict[int, int]]] = {}
        for key, queues in self.table().items():
            topic, group = _split_key(key)
            groups.setdefault(group, {})[topic] = queues
        return groups

    def of_group(self, group: str) -> dict[str, dict[int, int]]:
        """Returns the offsets of a group, by topic and queue."""
        return {_split_key(key)[0]: queues for key, queues in self._data_plane.offsets(group=group).items()}

    def groups_of(self, topic: str) -> set[str]:
        return {_split_key(key)[1] for key in self._data_plane.offsets(topic=topic)}

    def clone(self, source: str, target: str, topic: str) -> None:
        """Replaces a topic's offsets of the group `target` by those of `source`, unless `source` has none."""
        queues = self._data_plane.offsets(group=source, topic=topic).get(f"{topic}@{source}")
        # A group copied to itself would lose its offsets by the removal below.
        if not queues or source == target:
            return
        self._data_plane.remove_offsets(target, topic)
        for queue_id, offset in queues.items():
            self._data_plane.commit_offset(target, topic, queue_id, offset)

    def correction(self, topic: str, compare_group: str, left_out: Iterable[str]) -> dict[int, int]:
        """Returns each queue's lowest offset, without groups `left_out`. LONG_MAX if `compare_group`'s is lower."""
        offsets = self._data_plane.offsets(topic=topic)
        smallest = self._smallest(offsets, topic, set(left_out))
        for queue_id, offset in offsets.get(f"{topic}@{compare_group}", {}).items():
            if smallest.get(queue_id, offset) > offset:
                smallest[queue_id] = LONG_MAX
        return smallest

    def remove(self, group: str, topic: str | None = None) -> None:
        self._data_plane.remove_offsets(group, topic)

    def remove_topic(self, topic: str) -> None:
        for group in self.groups_of(topic):
            self._data_plane.remove_offsets(group, topic)

    def _smallest(self, offsets: Mapping[str, Mapping[int, int]], topic: str, left_out: set[str]) -> dict[int, int]:
        smallest: dict[int, int] = {}
        for key, queues in offsets.items():
            key_topic, group = _split_key(key)
            if key_topic != topic or group in left_out:
                continue
            for queue_id, offset in queues.items():
                # As in Java, offsets before the queue's first message do not count.
                if offset >= self._store.queue_bounds(topic, queue_id)[0]:
                    smallest[queue_id] = min(offset, smallest.get(queue_id, offset))
        return smallest


def _split_key(key: str) -> tuple[str, str]:
    topic, _, group = key.partition("@")
    return topic, group
