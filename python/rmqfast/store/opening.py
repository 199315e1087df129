"""Opens a store directory for reading or for appending.

Source: RocketMQ's `DefaultMessageStore`, `StorePathConfigHelper`, `CommitLog`, `StoreCheckpoint`, `ConsumeQueue`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, overload

from rmqfast import _native
from rmqfast.arguments import suggests_names
from rmqfast.errors import ArgumentError
from rmqfast.paths import local_path
from rmqfast.store.append_options import AppendOptions
from rmqfast.store.reader import MessageStore
from rmqfast.store.retention import RetentionOptions
from rmqfast.store.scan_source import StoreFiles, StoreIo
from rmqfast.store.writer import RecoveryReport, WritableStore

StorePath = str | os.PathLike[str]


@overload
def open_store(
    path: StorePath,
    mode: Literal["r"] = "r",
    *,
    commit_log_dirs: Sequence[StorePath] = (),
    broker_name: str | None = None,
    io: StoreIo = "pread",
) -> MessageStore: ...


@overload
def open_store(
    path: StorePath,
    mode: Literal["a"],
    *,
    broker_name: str | None = None,
    io: StoreIo = "pread",
    flush: Literal["async", "sync"] = "async",
    options: AppendOptions | None = None,
    retention: RetentionOptions | None = None,
    clock: Callable[[], int] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> WritableStore: ...


@suggests_names
def open_store(
    path: StorePath,
    mode: Literal["r", "a"] = "r",
    *,
    commit_log_dirs: Sequence[StorePath] = (),
    broker_name: str | None = None,
    io: StoreIo = "pread",
    flush: Literal["async", "sync"] | None = None,
    options: AppendOptions | None = None,
    retention: RetentionOptions | None = None,
    clock: Callable[[], int] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> MessageStore:
    """Opens a RocketMQ store directory.

    Args:
        path: The store's directory (`storePathRootDir`), also as a `file:` URL. An empty string is refused.
        mode: "r" reads. It never writes to or locks the store, and is safe beside a running broker. "a" owns the
            store and appends to it, and creates it if the directory is missing or empty. A store that was not closed,
            or whose parts disagree, is recovered first.
        commit_log_dirs: Directories of the commit log (`storePathCommitLog`) if it is not `commitlog` below `path`;
            for mode "r" only.
        broker_name: Value of the column `broker_name`, which a store does not contain.
        io: "pread" is safe beside any other process, and never maps a file. "auto" scans files that nobody has open for
            writing through maps, each block under a lease: a process that opens such a file for writing waits until
            the block is read. The store keeps the maps, which makes later scans by tag faster; the pages that were read
            count as memory of this process, though the system takes them back when it needs them. All else it reads
            as "pread" does. "mmap" maps every file of the log and is faster for scattered reads, for a store that
            nobody changes meanwhile; what is truncated in spite of that is an error. Mode "a": "auto" is "pread".
        flush: Mode "a": "async" writes before an append returns, so that messages survive the end of the process, and
            flushes every half second. "sync" flushes the commit log before an append returns; threads that append at
            the same time share one flush. Queues and index are flushed later: recovery rebuilds them from the log.
        options: Mode "a": file sizes and limits. Default: RocketMQ's.
        retention: Mode "a": removes old files while the store is open: after one minute, then every ten seconds, as
            RocketMQ does. Default: nothing is removed.
        clock: Mode "a": called once per append for the milliseconds since 1970. Default: the system's clock.
        progress: Mode "a": called by a recovery with bytes done and total bytes.

    Returns:
        The store, which is a context manager; in mode "a" a `WritableStore`.

    Raises:
        StoreNotFoundError: The directory does not exist.
        UnsupportedStoreError: Not a RocketMQ store, or a DLedger store. For mode "a" also a store with RocksDB, batch
            queues or timers, which rmqfast does not write. A broker of 5.x has a timer wheel unless
            `timerWheelEnable=false`. To append, export the store first (`MessageStore.export`).
        StoreBusyError: Mode "a": another process owns the store.
        CorruptError: Mode "a": flushed bytes of the log are damaged or missing, so that recovery would lose
            messages. `find_missing_end` and `rmqfast store repair` show which.
        ArgumentError: An unknown mode, io or flush, an argument of the other mode, an empty path, or the URL of
            another system.
        StoreIOError: A file or directory of the store cannot be read.

    Example:
        >>> import rmqfast
        >>> with rmqfast.open_store(getfixture("golden_store")("basic-4.9.4")) as store:
        ...     store.scan("fx_q1", tags="TagA", columns=["tags"]).to_arrow().num_rows
        105
    """
    directory = local_path(path, "path")
    if mode == "a":
        if commit_log_dirs:
            raise ArgumentError(f"commit_log_dirs: expected none with mode 'a', got {list(commit_log_dirs)!r}")
        # the argument `flush` overrides that of the options
        own = (options or AppendOptions()).with_flush(flush)
        return WritableStore(
            directory, own, retention=retention, broker_name=broker_name, io=io, clock=clock, progress=progress
        )
    if mode != "r":
        raise ArgumentError(f"mode: expected 'r' or 'a', got {mode!r}")
    if any(option is not None for option in (flush, options, retention, clock, progress)):
        raise ArgumentError("flush, options, retention, clock, progress: expected with mode 'a' only, got mode 'r'")
    dirs = tuple(os.fspath(local_path(each, "commit_log_dirs")) for each in commit_log_dirs)
    files = StoreFiles(os.fspath(directory), dirs, io)
    return MessageStore(files.open(), files, broker_name)


class MissingEnd(NamedTuple):
    """The end of a commit log that was flushed but is missing.

    Attributes:
        log_end: Physical offset at which the log ends.
        expected: Smallest physical offset at which it should end.
        file: The file that is too short or missing.
        position: Byte position in the file.
        reason: Expected and actual end, and the file that proves the difference.
    """

    log_end: int
    expected: int
    file: Path
    position: int
    reason: str


def find_missing_end(path: StorePath) -> MissingEnd | None:
    """Returns the end of a commit log that was flushed but is missing. None if nothing is missing.

    Changes nothing. The store must not be open in any process.

    Args:
        path: The store's directory.

    Raises:
        StoreNotFoundError: The directory does not exist.
        CorruptError: The log is damaged in its middle.
    """
    missing = _native.missing_end(os.fspath(local_path(path, "path")))
    return None if missing is None else MissingEnd(*missing)


@suggests_names
def repair(
    path: StorePath,
    *,
    options: AppendOptions | None = None,
    cut_at: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> RecoveryReport:
    """Repairs a store from its log: fixes consume queues, rebuilds the index, removes an incomplete record at the end.

    If flushed bytes are missing at the log's end (`find_missing_end`), it cuts the log there only if `cut_at` is that
    offset. Queues then continue after the lost messages, so that no queue offset is used twice, and
    `config/lostMessages.json` lists the lost offsets.

    Messages are neither changed nor moved. A 5.x store with a timer wheel is refused: a broker of 5.x recovers it when
    it starts, and an export of it needs no repair.

    Args:
        path: The store's directory; no other process may own it.
        options: File sizes, used if the store has no files that show them.
        cut_at: The `log_end` of a missing end, to give up the messages after it.
        progress: Called with bytes done and total bytes.

    Raises:
        StoreNotFoundError: The directory does not exist.
        UnsupportedStoreError: As for `open_store` with mode "a".
        StoreBusyError: Another process owns the store.
        CorruptError: Flushed bytes of the log are damaged or missing: a cut would lose messages.
        ArgumentError: `cut_at` is not the log's end, nothing is missing, the path is empty, or the URL of another
            system.

    Example:
        >>> from rmqfast.store import repair
        >>> repair(getfixture("golden_store_copy")("crash-4.9.4")).unlisted
        0
    """
    own = (options or AppendOptions()).with_system_values()
    native_path = os.fspath(local_path(path, "path"))
    return RecoveryReport(*_native.repair(native_path, own, cut_at=cut_at, progress=progress))
