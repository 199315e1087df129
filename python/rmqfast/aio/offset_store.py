"""Where a consumer keeps how far it is in each queue, asked from an event loop.

Source: `OffsetStore`.
"""

from __future__ import annotations

from typing import Final

from rmqfast.aio.awaited import awaited
from rmqfast.aio.calls import Calls
from rmqfast.client import consumer as blocking
from rmqfast.pickling import not_picklable


@not_picklable("make a consumer in each process")
class OffsetStore:
    """The offsets of one group, as its member sees them; queues stand there with the namespace of their topics."""

    def __init__(self, store: blocking.OffsetStore, calls: Calls) -> None:
        self._twin, self._calls = store, calls

    load: Final = awaited(blocking.OffsetStore.load)
    update_offset: Final = awaited(blocking.OffsetStore.update_offset)
    read_offset: Final = awaited(blocking.OffsetStore.read_offset)
    persist: Final = awaited(blocking.OffsetStore.persist)
    persist_all: Final = awaited(blocking.OffsetStore.persist_all)
    remove_offset: Final = awaited(blocking.OffsetStore.remove_offset)
    clone: Final = awaited(blocking.OffsetStore.clone)
    update_to_broker: Final = awaited(blocking.OffsetStore.update_to_broker)
