"""A store directory that is a copy of a master's: it takes the master's log, and lists it as the master does."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, Self

from rmqfast._native import Follower, cut_copy, log_source
from rmqfast.store.append_options import AppendOptions
from rmqfast.store.retention import RetentionOptions
from rmqfast.store.writer import WritableStore

__all__ = ["CopiedQueue", "EndKind", "FollowEnd", "FollowProgress", "Following", "Replica", "ServedLog", "newest_copy"]

#: Why following a log ended: asked to; nobody listens; the connection ended; nothing came; this side did not write in
#: time; no frame came; log and copy differ; no sound record stands there; the disk is full; the copy takes nothing.
EndKind = Literal["stopped", "connect", "closed", "silent", "stalled", "frame", "diverged", "broken", "full", "store"]


def newest_copy(directory: Path) -> Path:
    """The directory of a copy, or of the last one that was begun anew beside it, `DIR.2`.

    Example:
        >>> newest_copy(Path("copies/broker-a")).name
        'broker-a'

    Source: none.
    """
    numbers = [path.suffix[1:] for path in directory.parent.glob(f"{directory.name}.*")]
    last = max((int(number) for number in numbers if number.isdecimal()), default=None)
    return directory if last is None else directory.parent / f"{directory.name}.{last}"


class FollowProgress(NamedTuple):
    """How far a copy is.

    Attributes:
        position: Offset behind its last record.
        listed_to: Up to where queues and index list it.
        compared_to: Up to where it was compared with the log; where that began, until then.
        last_store_timestamp: When the last record that came was stored, in milliseconds since 1970; 0 until one came.
    """

    position: int
    listed_to: int
    compared_to: int
    last_store_timestamp: int


class FollowEnd(NamedTuple):
    """Why following a log ended.

    Attributes:
        kind: The reason.
        text: In words.
        offset: Where in the log; None where it was not the log.
    """

    kind: EndKind
    text: str
    offset: int | None


class ServedLog(NamedTuple):
    """Where a broker serves its log.

    Attributes:
        addresses: `host:port`s, which lead to the same port.
        file_size: Bytes of a file.
        waited_for: What sends wait for there: nobody, the positions that slaves report, or whoever is connected.

    Example:
        >>> config = {"haListenPort": "10912", "mappedFileSizeCommitLog": "1073741824", "brokerRole": "SYNC_MASTER"}
        >>> ServedLog.of_config(config, "10.0.0.1:10911").waited_for
        'connections'
    """

    addresses: tuple[str, ...]
    file_size: int
    waited_for: Literal["nobody", "reports", "connections"]

    @classmethod
    def of_config(cls, config: Mapping[str, str], address: str) -> Self:
        """The log of the broker at an address, by what that says of its configuration.

        Raises:
            ArgumentError: It cannot be read.
        """
        addresses, file_size, waited_for = log_source(dict(config), address)
        return cls(tuple(addresses), file_size, waited_for)


class CopiedQueue(NamedTuple):
    """A queue of a copy.

    Attributes:
        next_offset: The queue offset that its next message would have.
        last_record: Where the log has its last message; -1 where it has none.
    """

    topic: str
    queue_id: int
    next_offset: int
    last_record: int


class Following:
    """A log that is followed, by threads of the extension, until it ends for one reason or another."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower

    def progress(self) -> FollowProgress:
        """How far it is."""
        return FollowProgress(*self._follower.progress())

    def wait(self, timeout: float) -> FollowEnd | None:
        """Waits until it ended, or for so many seconds."""
        end = self._follower.wait(timeout)
        return None if end is None else FollowEnd(*end)

    def stop(self) -> None:
        """Ends it; whole records that were read are written first."""
        self._follower.stop()


class Replica:
    """A copy of a master's store, open for its log; nobody else may append to it, and it takes no messages.

    Args:
        path: Its directory; made where it is not there.
        options: Sizes, which are those of the master.
        begin: Where a new copy begins: an offset of the log at which one of its files does.
        retention: How long its files stay, whatever the master's do; for ever without.

    Attributes:
        store: The store, to be read.

    Raises:
        StoreBusyError: Another process has it.
        UnsupportedStoreError: Neither empty nor a store.
        ArgumentError: `begin` is no multiple of the size of a file.

    Example:
        >>> directory = getfixture("tmp_path") / "copy"
        >>> sizes = AppendOptions(file_size=1 << 20, index_slots=1000, index_entries=4000)
        >>> with Replica(directory, sizes, begin=3 << 20) as copy:
        ...     copy.bounds
        (3145728, 3145728)

    Source: `DefaultMessageStore.appendToCommitLog`.
    """

    def __init__(
        self, path: Path, options: AppendOptions, *, begin: int = 0, retention: RetentionOptions | None = None
    ) -> None:
        self.path = path
        self.store = WritableStore(path, options, retention=retention, replica_from=begin)

    @property
    def bounds(self) -> tuple[int, int]:
        """Offset of its first byte, and that behind its last record."""
        return self.store.appender.log_bounds()

    @property
    def file_size(self) -> int:
        """Bytes of a file of its log."""
        return self.store.appender.log_file_size()

    def compare_from(self, end: int, most: int) -> int:
        """Where to compare it with its master's log from.

        Args:
            end: Up to where both have bytes.
            most: Bytes before that at most, unless a record is longer: it begins at a record.
        """
        return self.store.appender.compare_from(end, most)

    def queues(self) -> list[CopiedQueue]:
        """Its queues."""
        live = self.store.live
        queues = []
        for directory in (self.path / "consumequeue").glob("*/*"):
            topic, queue_id = directory.parent.name, int(directory.name)
            next_offset = live.queue_bounds(topic, queue_id)[1]
            unit = live.unit(topic, queue_id, next_offset - 1)
            queues.append(CopiedQueue(topic, queue_id, next_offset, -1 if unit is None else unit[0]))
        return queues

    def remove_ended(self, queues: Iterable[CopiedQueue]) -> list[tuple[str, int]]:
        """Removes queues that the master has no more, as their topics were deleted and made again.

        Args:
            queues: As they were seen; one that went on since is left.

        Returns:
            Topic and number of those that were removed.
        """
        ended = [((queue.topic, queue.queue_id), queue.next_offset) for queue in queues]
        return self.store.appender.remove_ended_queues(ended) if ended else []

    def follow(
        self,
        address: str,
        start: int,
        *,
        max_record: int,
        lists: bool = True,
        cold_rate: int = 0,
        cold_before: int = 0,
        counts: bool = False,
    ) -> Following:
        """Begins to take a master's log.

        Args:
            address: The master's HA port, `host:port`.
            start: The copy's end, or an offset before it, from which log and copy are compared.
            max_record: Bytes of a record at most.
            lists: Whether queues and index list what comes.
            cold_rate: Bytes a second for what is old, as a master reads that from its disk; 0 for no limit.
            cold_before: What stands before this is old.
            counts: The copy is a slave's, and the master is told what it has: sends may wait for that.

        Source: `HAClient`.
        """
        follower = Follower.start(
            self.store.appender,
            os.fspath(self.path),
            address,
            start,
            max_record=max_record,
            lists=lists,
            cold_rate=cold_rate,
            cold_before=cold_before,
            counts=counts,
        )
        return Following(follower)

    def close(self) -> None:
        """Writes what is not on the disk, and gives the directory up."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def cut(path: Path, at: int, options: AppendOptions) -> int:
        """Cuts a copy that nobody has open, behind its last record that ends at `at` or before.

        Returns:
            Where its log ends then.

        Raises:
            StoreBusyError: Somebody has it open.

        Source: `AutoSwitchHAService.truncateInvalidMsg`.
        """
        return cut_copy(os.fspath(path), at, options.completed(), progress=None)
