"""Offsets of a consumer that gets all messages: a file on this machine keeps them, which Java's clients read, too.

Source: `LocalFileOffsetStore`, `OffsetSerializeWrapper`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from rmqfast.client.consumer.offset_store import NO_OFFSET, OffsetTable, ReadOffsetType
from rmqfast.errors import ClientError, RemotingProtocolError, ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting import fastjson
from rmqfast.remoting.hash_map import hash_order
from rmqfast.remoting.protocol.json_object import JsonObject

_log = logging.getLogger(__name__)
_TABLE = "offsetTable"
_MOST_BYTES = 64 << 20
_MOST_QUEUES = 1_000_000


class LocalFileOffsetStore:
    """Keeps offsets in memory, and all of them in one file now and then.

    Args:
        directory: Where offsets of all consumers are; in it a directory for each client id.
        client_id: The client.
        group: The group.

    Example:
        >>> import tempfile
        >>> store = LocalFileOffsetStore(Path(tempfile.mkdtemp()), "10.0.0.1@DEFAULT", "news")
        >>> queue = MessageQueue("t", "broker-a", 0)
        >>> store.update_offset(queue, 5)
        >>> store.persist_all([queue])
        >>> store.read_offset(queue, ReadOffsetType.READ_FROM_STORE)
        5
    """

    def __init__(self, directory: Path, client_id: str, group: str) -> None:
        self.path = directory / client_id / group / "offsets.json"
        self._table, self._writing = OffsetTable(), threading.Lock()

    def load(self) -> None:
        """Reads the file, or the one before it.

        Raises:
            ClientError: Neither can be read.
        """
        self._table.put_all(self._read())

    def update_offset(self, queue: MessageQueue, offset: int, *, increase_only: bool = False) -> None:
        """Notes where to go on."""
        self._table.update(queue, offset, increase_only=increase_only)

    def read_offset(self, queue: MessageQueue, kind: ReadOffsetType) -> int:
        """Where to go on; the file is read again where it is asked for."""
        if kind is not ReadOffsetType.READ_FROM_STORE:
            known = self._table.get(queue)
            if known is not None:
                return known
            if kind is ReadOffsetType.READ_FROM_MEMORY:
                return NO_OFFSET
        try:
            offset = self._read().get(queue)
        except ClientError as error:
            _log.warning("offsets cannot be read: %s", error)
            return NO_OFFSET
        if offset is None:
            return NO_OFFSET
        self._table.update(queue, offset, increase_only=False)
        return offset

    def persist(self, queue: MessageQueue) -> None:
        """Nothing: the file is written as a whole."""

    def persist_all(self, queues: Iterable[MessageQueue]) -> None:
        """Writes the file with the offsets of these queues and no others; nothing where there are none."""
        mine = set(queues)
        if not mine:
            return
        # in two steps, as Java has two tables: those of one bucket stay in the order of the first one
        known = self._table.clone()
        text = _text({queue: known[queue] for queue in hash_order(known, concurrent=True) if queue in mine})
        try:
            with self._writing:
                self._write(text)
        except OSError as error:
            _log.error("offsets cannot be stored in %s: %s", self.path, error)

    def remove_offset(self, queue: MessageQueue) -> None:
        """Nothing: a queue comes back where it was left."""

    def clone(self, topic: str | None = None) -> dict[MessageQueue, int]:
        """What is in memory."""
        return self._table.clone(topic)

    def update_to_broker(self, queue: MessageQueue, offset: int, *, oneway: bool = True) -> None:
        """Nothing: brokers know nothing of these offsets."""

    def _read(self) -> dict[MessageQueue, int]:
        try:
            offsets = _in_file(self.path)
        except RemotingProtocolError as error:
            _log.warning("%s is of no use, the file before it is read: %s", self.path, error)
            offsets = None
        if offsets is not None:
            return offsets
        try:
            return _in_file(self._backup) or {}
        except RemotingProtocolError as error:
            raise ClientError(
                f"{self._backup}: expected the offsets of a group, got what cannot be read: {error}",
                next_step=f"put a sound file in its place, or remove {self.path.parent} to begin anew",
            ) from error

    def _write(self, text: bytes) -> None:
        """What was there stays beside it; a crash leaves the one or the other.

        Source: `MixAll.string2File`.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_name("offsets.json.tmp")
        new.write_bytes(text)
        before = self.path.read_bytes() if self.path.exists() else b""
        if before.strip():
            self._backup.write_bytes(before)
        new.replace(self.path)

    @property
    def _backup(self) -> Path:
        return self.path.with_name("offsets.json.bak")


def _in_file(path: Path) -> dict[MessageQueue, int] | None:
    """The offsets of a file; nothing where it is empty, or cannot be read.

    Raises:
        RemotingProtocolError: It says something else than offsets.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        _log.warning("offsets cannot be read: %s", error)
        return None
    return _offsets(data) if data.strip() else None


def _text(offsets: Mapping[MessageQueue, int]) -> bytes:
    """As fastjson prints it for people, in the order of Java's table."""
    rows = [_row(queue, offsets[queue]) for queue in hash_order(offsets, concurrent=True)]
    # fastjson begins no line before a key that is an object
    table = "{" + ",".join(rows) + "\n\t}" if rows else "{}"
    return ('{\n\t"' + _TABLE + '":' + table + "\n}").encode()


def _row(queue: MessageQueue, offset: int) -> str:
    broker, topic = (fastjson.encode(name).decode() for name in (queue.broker_name, queue.topic))
    members = f'"brokerName":{broker}', f'"queueId":{queue.queue_id}', f'"topic":{topic}'
    return "{\n\t\t\t" + ",\n\t\t\t".join(members) + "\n\t\t}:" + str(offset)


def _offsets(data: bytes) -> dict[MessageQueue, int]:
    try:
        return JsonObject.of_body(data, most=_MOST_BYTES).numbers_by_queue(_TABLE, most=_MOST_QUEUES)
    except ResponseError as error:
        raise RemotingProtocolError(error.remark) from error
