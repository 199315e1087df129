"""Messages as a pull brings them: a store is written, and its records are decoded."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import rmqfast
from rmqfast._native import MessageView, decode_pull
from rmqfast.store import AppendOptions

_SMALL = AppendOptions(file_size=1 << 20, queue_file_size=20_000, index_slots=100, index_entries=400)


@cache
def messages(count: int, topic: str = "t", tags: str | None = None) -> tuple[MessageView, ...]:
    """The messages 0 to count - 1 of queue 0, each with its number as the body."""
    with TemporaryDirectory() as directory:
        with rmqfast.open_store(directory, mode="a", options=_SMALL) as store:
            for number in range(count):
                store.append(rmqfast.Message(topic, b"%d" % number, tags=tags, queue_id=0))
        (log,) = (Path(directory) / "commitlog").iterdir()
        content, end = log.read_bytes(), 0
    while size := int.from_bytes(content[end : end + 4], "big"):
        end += size
    return tuple(decode_pull(content[:end], broker_name="broker-a"))
