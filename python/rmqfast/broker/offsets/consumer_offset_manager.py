"""Saves consumer offsets, and answers how far a group has consumed.

Source: `ConsumerOffsetManager`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rmqfast._native import DataPlane
from rmqfast.broker.metadata import Metadata
from rmqfast.logs import QuietLock, logger_of
from rmqfast.store import GetLimits, LiveStore
from rmqfast.store.config import ConsumerOffsetTable
from rmqfast.store.config.lost_offsets import lost_offsets_note

INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1
#: Offsets of so many groups and topics are one transaction, and so many transactions are one save.
_PIECE, _PIECES = 5_000, 200

_log = logger_of("rmqfast.broker")


class ConsumerOffsetManager:
    """The offsets, which are the data plane's, and their file."""

    def __init__(
        self, metadata: Metadata, data_plane: DataPlane, store: LiveStore, *, limits: GetLimits | None = None
    ) -> None:
        self._metadata = metadata
        self._data_plane = data_plane
        self._store = store
        limits = (limits or GetLimits()).completed()
        # `accessMessageInMemoryMaxRatio`: RocketMQ takes the log's last 40 % of the memory's size to be in memory
        self._memory = int((limits.physical_memory or 0) * (limits.access_ratio / 100))
        self._saving = QuietLock()
        self._is_kept = True

    def load(self) -> None:
        """Gives the data plane what is kept; warns where something should be there and is not.

        Raises:
            CorruptError: Neither the database has it, nor can the file or its `.bak` be read.

        Source: `ConfigManager.load`.
        """
        with self._saving:
            self._is_kept = self._metadata.is_kept(ConsumerOffsetTable)
            warning = lost_offsets_note(self._metadata.root, is_kept=self._is_kept)
            if warning is not None:
                _log.warning("%s", warning)
            for (topic, group), queues in self._metadata.load(ConsumerOffsetTable).items():
                for queue_id, offset in queues.items():
                    self._data_plane.commit_offset(group, topic, queue_id, offset)
            while self._data_plane.take_changed_offsets(_PIECE):
                pass  # they are kept already

    def persist(self) -> None:
        """Saves what changed; the first time the file is written in any case: one that is missing later was removed.

        Raises:
            StoreIOError: The operating system refused; it is tried again with the next call.

        Source: `ConsumerOffsetManager.persist`.
        """
        with self._saving:
            # bounded: whoever commits without end must not keep one save going for ever
            for _ in range(_PIECES):
                texts = self._data_plane.take_changed_offsets(_PIECE)
                self._metadata.put_texts(ConsumerOffsetTable, texts)
                self._metadata.flush()
                if len(texts) < _PIECE:
                    break
            if not self._is_kept:
                self._metadata.write_behind(ConsumerOffsetTable)
                self._is_kept = True

    def query(self, group: str, topic: str, queue_id: int, *, is_zero_wanted: bool = True) -> int | None:
        """Where a client of the group begins; None where it has to decide that itself.

        A group that has committed nothing begins at 0 as long as the queue's first message is there, in memory.
        Unless `is_zero_wanted` it decides itself.

        Source: `ConsumerManageProcessor.queryConsumerOffset`.
        """
        offset = self._data_plane.offset(group, topic, queue_id)
        if offset >= 0:
            return offset
        # so a new group begins at the first message of a young topic even with CONSUME_FROM_LAST_OFFSET
        return 0 if is_zero_wanted and self._is_young(topic, queue_id) else None

    def committed(self, group: str, topic: str, queue_id: int) -> int:
        """The offset that a group has committed; -1 where it has none.

        Source: `ConsumerOffsetManager.queryOffset`.
        """
        return self._data_plane.offset(group, topic, queue_id)

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Notes the next offset that a group consumes, a smaller one, too.

        Source: `ConsumerOffsetManager.commitOffset`.
        """
        self._data_plane.commit_offset(group, topic, queue_id, offset)

    def take(self, table: ConsumerOffsetTable) -> None:
        """Has the offsets of a master; those that the master does not have stay.

        Source: `SlaveSynchronize.syncConsumerOffset`.
        """
        for (topic, group), queues in table.items():
            for queue_id, offset in queues.items():
                if self._data_plane.offset(group, topic, queue_id) != offset:
                    self._data_plane.commit_offset(group, topic, queue_id, offset)

    def table(self) -> dict[str, dict[int, int]]:
        """All offsets: by `topic@group`, then by queue."""
        return self._data_plane.offsets()

    def topics_of(self, group: str) -> set[str]:
        """The topics of which a group has offsets.

        Source: `ConsumerOffsetManager.whichTopicByConsumer`.
        """
        return {_parted(key)[0] for key in self._data_plane.offsets(group=group)}

    def groups_of(self, topic: str) -> set[str]:
        """The groups that have offsets of a topic.

        Source: `ConsumerOffsetManager.whichGroupByTopic`.
        """
        return {_parted(key)[1] for key in self._data_plane.offsets(topic=topic)}

    def clone(self, source: str, target: str, topic: str) -> None:
        """Gives a group the offsets that another one has of a topic, in place of its own.

        Source: `ConsumerOffsetManager.cloneOffset`.
        """
        queues = self._data_plane.offsets(group=source, topic=topic).get(f"{topic}@{source}")
        # a group copied to itself would lose its offsets by the removal below
        if not queues or source == target:
            return
        self._data_plane.remove_offsets(target, topic)
        for queue_id, offset in queues.items():
            self._data_plane.commit_offset(target, topic, queue_id, offset)

    def correction(self, topic: str, compare_group: str, left_out: Iterable[str]) -> dict[int, int]:
        """By queue the smallest offset of the topic's groups; the greatest number where `compare_group` is behind it.

        Source: `AdminBrokerProcessor.queryCorrectionOffset`, `ConsumerOffsetManager.queryMinOffsetInAllGroup`.
        """
        offsets = self._data_plane.offsets(topic=topic)
        smallest = self._smallest(offsets, topic, set(left_out))
        for queue_id, offset in offsets.get(f"{topic}@{compare_group}", {}).items():
            if smallest.get(queue_id, offset) > offset:
                smallest[queue_id] = LONG_MAX
        return smallest

    def remove(self, group: str, topic: str | None = None) -> None:
        """Forgets the offsets of a group, in all topics unless one is given.

        Source: `ConsumerOffsetManager.removeOffset`.
        """
        self._data_plane.remove_offsets(group, topic)

    def remove_topic(self, topic: str) -> None:
        """Forgets all groups' offsets of a topic.

        Source: `ConsumerOffsetManager.cleanOffsetByTopic` of 5.x.
        """
        for group in self.groups_of(topic):
            self._data_plane.remove_offsets(group, topic)

    def _smallest(self, offsets: Mapping[str, Mapping[int, int]], topic: str, left_out: set[str]) -> dict[int, int]:
        smallest: dict[int, int] = {}
        for key, queues in offsets.items():
            key_topic, group = _parted(key)
            if key_topic != topic or group in left_out:
                continue
            for queue_id, offset in queues.items():
                # as in Java, offsets before the queue's first message do not count
                if offset >= self._store.queue_bounds(topic, queue_id)[0]:
                    smallest[queue_id] = min(offset, smallest.get(queue_id, offset))
        return smallest

    def _is_young(self, topic: str, queue_id: int) -> bool:
        """Whether a queue still has its first message, in memory, or has none."""
        if self._store.queue_bounds(topic, queue_id)[0] > 0:
            return False
        unit = self._store.unit(topic, queue_id, 0)
        return unit is None or self._store.log_bounds()[1] - unit[0] <= self._memory


def _parted(key: str) -> tuple[str, str]:
    topic, _, group = key.partition("@")
    return topic, group
