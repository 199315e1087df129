"""Offset stores for asyncio."""

from __future__ import annotations

from typing import Final

from rmqfast.aio.calls import Calls
from rmqfast.aio.twin import awaitable
from rmqfast.client import consumer as blocking
from rmqfast.pickling import not_picklable


@not_picklable("make a consumer in each process")
class OffsetStore:
    """The offsets of one group, as this client knows them. Topics of queues include the namespace."""

    def __init__(self, store: blocking.OffsetStore, calls: Calls) -> None:
        self._twin, self._calls = store, calls

    load: Final = awaitable(blocking.OffsetStore.load)
    update_offset: Final = awaitable(blocking.OffsetStore.update_offset)
    read_offset: Final = awaitable(blocking.OffsetStore.read_offset)
    persist: Final = awaitable(blocking.OffsetStore.persist)
    persist_all: Final = awaitable(blocking.OffsetStore.persist_all)
    remove_offset: Final = awaitable(blocking.OffsetStore.remove_offset)
    clone: Final = awaitable(blocking.OffsetStore.clone)
    update_to_broker: Final = awaitable(blocking.OffsetStore.update_to_broker)
