"""The live side of a real store that is open for appending: what the files say right now."""

from __future__ import annotations

from pathlib import Path

from rmqfast import WritableStore
from tests.broker.memory_store import MemoryStore

UNIT = 20


class FileStore(MemoryStore):
    """Bounds, units and records of a store's files; files of queues have their common size."""

    def __init__(self, store: WritableStore) -> None:
        super().__init__(lambda: 0)
        self.root = store.path

    def queue_bounds(self, topic: str, queue_id: int) -> tuple[int, int]:
        files = self._queue(topic, queue_id)
        if not files:
            return 0, 0
        last = files[-1].read_bytes()
        units = next((at for at in range(0, len(last), UNIT) if not any(last[at + 8 : at + 12])), len(last)) // UNIT
        return int(files[0].name) // UNIT, int(files[-1].name) // UNIT + units

    def unit(self, topic: str, queue_id: int, queue_offset: int) -> tuple[int, int, int] | None:
        found = _at(self._queue(topic, queue_id), queue_offset * UNIT, UNIT)
        if found is None or not any(found[8:12]):
            return None
        return int.from_bytes(found[:8]), int.from_bytes(found[8:12]), int.from_bytes(found[12:], signed=True)

    def record(self, physical_offset: int) -> bytes | None:
        files = sorted((self.root / "commitlog").iterdir())
        head = _at(files, physical_offset, 4)
        return None if head is None else _at(files, physical_offset, int.from_bytes(head))

    def _queue(self, topic: str, queue_id: int) -> list[Path]:
        directory = self.root / "consumequeue" / topic / str(queue_id)
        return sorted(directory.iterdir()) if directory.is_dir() else []


def _at(files: list[Path], offset: int, size: int) -> bytes | None:
    for path in reversed(files):
        start = int(path.name)
        if start <= offset:
            with path.open("rb") as file:
                file.seek(offset - start)
                data = file.read(size)
            return data if size and len(data) == size else None
    return None
