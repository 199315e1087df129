"""Stores consumer offsets in memory, and also at the brokers or in a local file.

Source: RocketMQ's `OffsetStore`, `ReadOffsetType`, `RemoteBrokerOffsetStore`, `LocalFileOffsetStore`, `MixAll`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Final, Protocol

from rmqfast.client.instance import ClientInstance
from rmqfast.errors import ArgumentError, ClientError, RemotingError, RemotingProtocolError, ResponseError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.message import MessageQueue
from rmqfast.paths import exists
from rmqfast.remoting import fastjson
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.threads import new_lock

_log = logger_of(__name__)

#: The store has no offset.
NO_OFFSET = -1
#: The broker does not answer.
UNREACHABLE = -2
_TIMEOUT = 5.0
_TABLE = "offsetTable"
# limits of the file, which another program may have written
_MOST_BYTES = 64 << 20
_MOST_QUEUES = 1_000_000


class ReadOffsetType(Enum):
    """The source of an offset: memory, the store, or the store if memory has no offset."""

    READ_FROM_MEMORY = "READ_FROM_MEMORY"
    READ_FROM_STORE = "READ_FROM_STORE"
    MEMORY_FIRST_THEN_STORE = "MEMORY_FIRST_THEN_STORE"


class OffsetStore(Protocol):
    """The offsets of one group, as this client knows them."""

    def load(self) -> None:
        """Reads the offsets that are stored locally."""

    def update_offset(self, queue: MessageQueue, offset: int, *, increase_only: bool = False) -> None:
        """Sets an offset in memory. With `increase_only`, a lower offset is ignored."""

    def read_offset(self, queue: MessageQueue, kind: ReadOffsetType) -> int:
        """Returns the offset of a queue. `NO_OFFSET` if there is none, `UNREACHABLE` if the broker does not answer."""

    def persist(self, queue: MessageQueue) -> None:
        """Stores the offset of one queue."""

    def persist_all(self, queues: Iterable[MessageQueue]) -> None:
        """Stores the offsets of the given queues. Drops all other offsets from memory."""

    def remove_offset(self, queue: MessageQueue) -> None:
        """Drops the offset of a queue from memory."""

    def clone(self, topic: str | None = None) -> dict[MessageQueue, int]:
        """Returns a copy of the offsets in memory: of one topic, or of all if `topic` is None."""

    def update_to_broker(self, queue: MessageQueue, offset: int, *, oneway: bool = True) -> None:
        """Commits an offset to the broker without changing memory."""


class _OffsetTable(ABC):
    """Offsets in memory, by queue. Thread-safe."""

    def __init__(self) -> None:
        self._offsets: dict[MessageQueue, int] = {}
        self._lock = new_lock()

    def update_offset(self, queue: MessageQueue, offset: int, *, increase_only: bool = False) -> None:
        """Sets an offset in memory. With `increase_only`, a lower offset is ignored."""
        # several threads may consume messages of one queue
        with self._lock:
            before = self._offsets.get(queue)
            if before is None or offset > before or not increase_only:
                self._offsets[queue] = offset

    def read_offset(self, queue: MessageQueue, kind: ReadOffsetType) -> int:
        """Returns the offset of a queue. An offset that is read from the store is then kept in memory."""
        if kind is not ReadOffsetType.READ_FROM_STORE:
            offset = self._offsets.get(queue)
            if offset is not None:
                return offset
            if kind is ReadOffsetType.READ_FROM_MEMORY:
                return NO_OFFSET
        offset = self._read_stored(queue)
        if offset not in {NO_OFFSET, UNREACHABLE}:
            self.update_offset(queue, offset)
        return offset

    def clone(self, topic: str | None = None) -> dict[MessageQueue, int]:
        """Returns a copy of the offsets in memory: of one topic, or of all if `topic` is None."""
        return {queue: offset for queue, offset in self._offsets.copy().items() if topic in {None, queue.topic}}

    @abstractmethod
    def _read_stored(self, queue: MessageQueue) -> int: ...


class RemoteBrokerOffsetStore(_OffsetTable):
    """Keeps offsets in memory and commits them to brokers at intervals. Used for `CLUSTERING`."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        super().__init__()
        self._instance, self._group = instance, group
        # held from reading to sending an offset, so that an older offset is never sent after a newer one
        self._sending = QuietLock()

    def load(self) -> None:
        """Does nothing, since brokers store the offsets."""

    def persist(self, queue: MessageQueue) -> None:
        """Commits the offset of one queue. Does not wait for an answer."""
        with self._sending:
            offset = self._offsets.get(queue)
            if offset is None:
                return
            try:
                self.update_to_broker(queue, offset)
            except (ClientError, RemotingError) as error:
                _log.warning(
                    "group %s: the broker does not get the offset %d of %s: %s", self._group, offset, queue, error
                )

    def persist_all(self, queues: Iterable[MessageQueue]) -> None:
        """Commits the offsets of the given queues and drops all other offsets. Does nothing if `queues` is empty."""
        # offsets before queues: an offset that was in memory before `queues` was read, and is not in it, was revoked
        others, mine = self.clone(), list(queues)
        if not mine:
            return
        for queue in mine:
            others.pop(queue, None)
            self.persist(queue)
        with self._lock:
            for queue, offset in others.items():
                # a changed offset belongs to a queue that was assigned again meanwhile
                if self._offsets.get(queue) == offset:
                    del self._offsets[queue]

    def remove_offset(self, queue: MessageQueue) -> None:
        """Drops the offset of a queue from memory. The broker keeps its offset."""
        self._offsets.pop(queue, None)

    def update_to_broker(self, queue: MessageQueue, offset: int, *, oneway: bool = True) -> None:
        """Commits an offset to the broker.

        Raises:
            ClientError: The broker's address is unknown.
            RemotingError: The broker rejects the offset or cannot be reached.
        """
        self._instance.api.update_consumer_offset(
            self._address(queue), self._group, queue, offset, oneway=oneway, timeout=_TIMEOUT
        )

    def _read_stored(self, queue: MessageQueue) -> int:
        try:
            address = self._address(queue)
            offset = self._instance.api.query_consumer_offset(address, self._group, queue, timeout=_TIMEOUT)
        except (ClientError, RemotingError) as error:
            # also if the broker is busy: Java's 4.9 then treats the group as new, and skips messages
            _log.warning("group %s: the offset of %s cannot be read: %s", self._group, queue, error)
            return UNREACHABLE
        return NO_OFFSET if offset is None else offset

    def _address(self, queue: MessageQueue) -> str:
        broker = self._instance.routes.subscribe_address(queue.broker_name, 0, only_this=True)
        # a slave is used only if the name servers know no master either
        if broker is None:
            self._instance.update_route(queue.topic)
            broker = self._instance.routes.subscribe_address(queue.broker_name, 0)
        if broker is None:
            raise ClientError(f"The broker[{queue.broker_name}] not exist", next_step="is it registered and running?")
        return broker.address


class LocalFileOffsetStore(_OffsetTable):
    """Keeps offsets in memory and, at intervals, in a file that Java's clients can read. Used for `BROADCASTING`.

    Raises:
        ArgumentError: The client id or the group leads out of the directory; Java's client would write there.

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
        super().__init__()
        # an id with a path separator becomes nested directories, as in Java
        for kind, name in (("client id, which has instance_name in it", client_id), ("group", group)):
            path = Path(name)
            if not name or "\0" in name or path.anchor or ".." in path.parts:
                raise ArgumentError(f"{kind}: expected a path below {directory}, where offsets are kept, got {name!r}")
        self.path: Final = directory / client_id / group / "offsets.json"
        self._writing = new_lock()

    def load(self) -> None:
        """Reads the file, or its backup.

        Raises:
            ClientError: Neither can be read.
        """
        offsets = self._read()
        with self._lock:
            self._offsets.update(offsets)

    def persist(self, queue: MessageQueue) -> None:
        """Does nothing, since only `persist_all` can write the file."""

    def persist_all(self, queues: Iterable[MessageQueue]) -> None:
        """Writes the file with the offsets of the given queues. Does nothing if `queues` is empty."""
        mine = set(queues)
        if not mine:
            return
        text = _text({queue: offset for queue, offset in self.clone().items() if queue in mine})
        try:
            with self._writing:
                self._write(text)
        except OSError as error:
            _log.error("offsets cannot be stored in %s: %s", self.path, error)

    def remove_offset(self, queue: MessageQueue) -> None:
        """Does nothing, so that a queue that is assigned again continues at its offset."""

    def update_to_broker(self, queue: MessageQueue, offset: int, *, oneway: bool = True) -> None:
        """Does nothing, since brokers do not store offsets of broadcasting consumers."""

    def _read_stored(self, queue: MessageQueue) -> int:
        try:
            return self._read().get(queue, NO_OFFSET)
        except ClientError as error:
            _log.warning("offsets cannot be read: %s", error)
            return NO_OFFSET

    def _read(self) -> dict[MessageQueue, int]:
        try:
            offsets = _read_file(self.path)
        except RemotingProtocolError as error:
            _log.warning("%s is of no use, the file before it is read: %s", self.path, error)
            offsets = None
        if offsets is not None:
            return offsets
        try:
            return _read_file(self._backup) or {}
        except RemotingProtocolError as error:
            raise ClientError(
                f"{self._backup}: expected the offsets of a group, got what cannot be read: {error}",
                next_step=f"put a sound file in its place, or remove {self.path.parent} to begin anew",
            ) from error

    def _write(self, text: bytes) -> None:
        # the old file becomes the backup: after a crash, at least one of the two is complete
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_name("offsets.json.tmp")
        new.write_bytes(text)
        before = self.path.read_bytes() if exists(self.path) else b""
        if before.strip():
            self._backup.write_bytes(before)
        new.replace(self.path)

    @property
    def _backup(self) -> Path:
        return self.path.with_name("offsets.json.bak")


def _read_file(path: Path) -> dict[MessageQueue, int] | None:
    """Returns the offsets in a file. None if the file is empty or missing."""
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        if exists(path):
            raise _unreadable(path, "a symbolic link that leads nowhere") from error
        return None
    except OSError as error:
        raise _unreadable(path, str(error.strerror).lower()) from error
    return _offsets(data) if data.strip() else None


def _unreadable(path: Path, reason: str) -> ClientError:
    step = f"let this user read it, or remove {path.parent} to begin anew"
    return ClientError(f"{path}: expected the offsets of a group, got: {reason}", next_step=step)


def _text(offsets: Mapping[MessageQueue, int]) -> bytes:
    # fastjson's pretty format
    rows = [_row(queue, offset) for queue, offset in sorted(offsets.items())]
    # fastjson writes no line break before a key that is an object
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
