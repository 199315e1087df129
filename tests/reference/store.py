"""A store directory, read as it stands on disk: nothing is repaired, nothing is written.

`queues` are the consume queues of the disk; `rebuilt_queues` are those that the commit log asks for, which is what a
recovery would leave. Source: DefaultMessageStore.load, DefaultMessageStore.queryMessage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from . import checkpoint, config_json, consume_queue
from .commit_log import CommitLog, Walk
from .consume_queue import ConsumeQueue, Unit
from .get_message import GetMessageResult, get_message
from .index_file import DEFAULT_GEOMETRY, MAX_TIME, Geometry, IndexService, keys_of
from .record import Record
from .row import Row, row_of
from .search_offset import search_offset_4, search_offset_5

QueueKey = tuple[str, int]


@dataclass
class Store:
    path: Path
    log: CommitLog
    queues: dict[QueueKey, ConsumeQueue]
    index: IndexService

    @staticmethod
    def open(path: Path, commitlog_dirs: Sequence[Path] | None = None, geometry: Geometry = DEFAULT_GEOMETRY) -> Store:
        """`commitlog_dirs` where the commit log is not in `path`/commitlog; `geometry` is that of the index files."""
        log = CommitLog.read(commitlog_dirs or [path / "commitlog"])
        return Store(path, log, dict(_read_queues(path / "consumequeue")), IndexService.read(path / "index", geometry))

    @property
    def is_aborted(self) -> bool:
        return (self.path / "abort").exists()

    @property
    def checkpoint(self) -> checkpoint.Checkpoint:
        return checkpoint.Checkpoint.decode((self.path / "checkpoint").read_bytes())

    @property
    def configs(self) -> dict[str, config_json.Value]:
        paths = sorted((self.path / "config").glob("*.json"))
        return {path.name: config_json.loads(path.read_text()) for path in paths}

    def walk(self, verify_crc: bool = True) -> Walk:
        """Records and blank records in physical order; see `commit_log.Walk` for how it ends."""
        return self.log.walk(verify_crc)

    @cached_property
    def end_offset(self) -> int:
        """Where the commit log ends: the physical offset that the next record would get."""
        walk = self.walk()
        for _ in walk:
            pass
        return walk.end_offset

    def records(self) -> list[Record]:
        return [found for found in self.walk() if isinstance(found, Record)]

    def rows(self) -> list[Row]:
        """Every message of the commit log as a row, in physical order."""
        return [row_of(found) for found in self.records()]

    def topics(self) -> dict[str, dict[int, tuple[int, int]]]:
        """Topic to queue id to (min offset, max offset), from the consume queues on disk."""
        found: dict[str, dict[int, tuple[int, int]]] = {}
        for (topic, queue_id), queue in sorted(self.queues.items()):
            found.setdefault(topic, {})[queue_id] = (queue.min_offset(self.log.min_offset), queue.max_offset)
        return found

    def queue(self, topic: str, queue_id: int) -> ConsumeQueue:
        """The queue, an empty one where there is none: RocketMQ makes a queue up when it is asked for."""
        return self.queues.get((topic, queue_id)) or ConsumeQueue(topic, queue_id, consume_queue.UNIT_BYTES)

    def rebuilt_queues(self) -> dict[QueueKey, dict[int, Unit]]:
        """Queue offset to unit, as dispatching the whole commit log would build them."""
        found: dict[QueueKey, dict[int, Unit]] = {}
        for record in self.records():
            if record.has_queue_place:
                key = (record.topic, record.queue_id)
                found.setdefault(key, {})[record.queue_offset] = consume_queue.unit_of(record)
        return found

    def rebuilt_index(self) -> IndexService:
        """The index that dispatching the whole commit log would build; its files are named 1, 2, ..."""
        index = IndexService(self.index.geometry)
        for record in self.records():
            index.build(record, f"{1:017d}")
        return index

    def get(self, topic: str, queue_id: int, offset: int, max_messages: int = 32, tags: str = "*") -> GetMessageResult:
        return get_message(self.log, self.queue(topic, queue_id), offset, max_messages, tags)

    def message_at(self, physical_offset: int) -> Record | None:
        return self.log.message_at(physical_offset)

    def query(self, topic: str, key: str, begin: int = 0, end: int = MAX_TIME) -> list[Record]:
        """Messages of `topic` that have `key`, in physical order; those that only share its hash are left out."""
        offsets = sorted(set(self.index.query(topic, key, begin=begin, end=end)))
        found = [self.message_at(offset) for offset in offsets]
        return [record for record in found if record and record.topic == topic and key in keys_of(record)]

    def search_offset_4(self, topic: str, queue_id: int, timestamp: int) -> int:
        return search_offset_4(self.log, self.queue(topic, queue_id), timestamp)

    def search_offset_5(self, topic: str, queue_id: int, timestamp: int, upper: bool = False) -> int:
        return search_offset_5(self.log, self.queue(topic, queue_id), timestamp, upper)


def _read_queues(root: Path) -> Iterator[tuple[QueueKey, ConsumeQueue]]:
    for topic in sorted(root.glob("*")):
        for directory in sorted(topic.glob("*")):
            if directory.is_dir() and directory.name.isdigit():
                key = (topic.name, int(directory.name))
                yield key, consume_queue.read(directory, *key)
