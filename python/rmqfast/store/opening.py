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
from rmqfast.store.reader import MessageStore
from rmqfast.store.retention import RetentionOptions
from rmqfast.store.writer import AppendOptions, RecoveryReport, WritableStore

__all__ = ["MissingEnd", "find_missing_end", "open_store", "repair"]

StorePath = str | os.PathLike[str]


@overload
def open_store(
    path: StorePath,
    mode: Literal["r"] = "r",
    *,
    commit_log_dirs: Sequence[StorePath] = (),
    broker_name: str | None = None,
    io: Literal["pread", "mmap"] = "pread",
) -> MessageStore: ...


@overload
def open_store(
    path: StorePath,
    mode: Literal["a"],
    *,
    broker_name: str | None = None,
    io: Literal["pread", "mmap"] = "pread",
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
    io: Literal["pread", "mmap"] = "pread",
    flush: Literal["async", "sync"] | None = None,
    options: AppendOptions | None = None,
    retention: RetentionOptions | None = None,
    clock: Callable[[], int] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> MessageStore:
    """Opens a RocketMQ store directory.

    Args:
        path: The store's directory (`storePathRootDir`); a `file:` URL names one, too. An empty text is refused; of
            `Path("")` nobody can tell, as Python makes it the current directory.
        mode: "r" reads; it never writes to, locks or slows the store, and is safe beside a live broker. "a" owns the
            store and appends to it; where there is nothing, or an empty directory, it makes a new store. One that was
            not closed, or whose parts disagree, is recovered first.
        commit_log_dirs: Directories of the commit log, where it is not `commitlog` below `path` (`storePathCommitLog`);
            for mode "r" only.
        broker_name: What the column `broker_name` shall say; a store does not know it.
        io: "pread" is safe beside any other process; "mmap" is faster for scattered reads of a store that nobody
            truncates meanwhile: a file that is shortened under a map ends the process.
        flush: Mode "a": "async" hands messages to the operating system before an append returns, so that they survive
            the end of the process; every half second they are brought to the disk. "sync" brings the commit log to the
            disk before it returns, for all threads that append at once with one wait; recovery makes queues and index
            from that.
        options: Mode "a": sizes and limits; RocketMQ's unless given.
        retention: Mode "a": removes old files while the store is open: first after a minute, then every ten seconds,
            as RocketMQ does. Without it nothing is ever removed.
        clock: Mode "a": milliseconds since 1970, called once per append; the system's clock unless given.
        progress: Mode "a": called by a recovery with bytes done and bytes in all.

    Returns:
        The store, which is a context manager; in mode "a" a `WritableStore`.

    Raises:
        StoreNotFoundError: No such directory.
        UnsupportedStoreError: No RocketMQ store, or a DLedger one; for mode "a" also one that is kept in files, too,
            that are not written here: RocksDB, batch queues, timers. A broker of 5.x has a timer wheel unless
            `timerWheelEnable=false`; an export of such a store (`MessageStore.export`) can be appended to.
        StoreBusyError: Mode "a": another process owns the store.
        CorruptError: Mode "a": the log is damaged where it had been flushed, or ends before that: recovery would lose
            messages. `find_missing_end` and `rmqfast store repair` say which.
        ArgumentError: A mode, io or flush that does not exist, an argument of the other mode, an empty path, the URL of
            another system.
        StoreIOError: A file or a directory of it cannot be looked at.

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
        own = (options or AppendOptions()).with_flush(flush)
        return WritableStore(
            directory, own, retention=retention, broker_name=broker_name, io=io, clock=clock, progress=progress
        )
    if mode != "r":
        raise ArgumentError(f"mode: expected 'r' or 'a', got {mode!r}")
    if any(option is not None for option in (flush, options, retention, clock, progress)):
        raise ArgumentError("flush, options, retention, clock, progress: expected with mode 'a' only, got mode 'r'")
    dirs = [os.fspath(local_path(each, "commit_log_dirs")) for each in commit_log_dirs]
    native = _native.Store.open(os.fspath(directory), commit_log_dirs=dirs, io=io, pinned=True)
    return MessageStore(native, directory, broker_name)


class MissingEnd(NamedTuple):
    """A flushed end of the commit log that is missing.

    Attributes:
        log_end: Offset at which the log ends.
        expected: Offset at which it ended, or behind.
        file: The file that ends too early, or should be there.
        position: Where in the file.
        reason: Expected and got, in words, with what says so.

    Example:
        >>> import rmqfast
        >>> from rmqfast.store import find_missing_end
        >>> directory = getfixture("tmp_path") / "cut"
        >>> small = rmqfast.AppendOptions(file_size=1 << 20, index_slots=1000, index_entries=4000)
        >>> with rmqfast.open_store(directory, mode="a", options=small) as store:
        ...     end = store.append(rmqfast.Message("orders", b"paid")).physical_offset
        >>> (directory / "commitlog" / ("0" * 20)).write_bytes(b"")
        0
        >>> find_missing_end(directory).log_end
        0
    """

    log_end: int
    expected: int
    file: Path
    position: int
    reason: str


def find_missing_end(path: StorePath) -> MissingEnd | None:
    """Returns the missing end of a store's commit log; None if the log has all that was flushed.

    Nothing is changed. Nobody may have the store open.

    Args:
        path: The store's directory.

    Raises:
        StoreNotFoundError: No such directory.
        CorruptError: The log is damaged in its middle.

    Example:
        >>> from rmqfast.store import find_missing_end
        >>> find_missing_end(getfixture("golden_store")("basic-4.9.4"))
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
    """Repairs a store from its log: fixes the consume queues, builds the index, cuts half a record at the end.

    Where the log ends before what was flushed, messages are lost: `find_missing_end` says where. It is cut there only
    if `cut_at` is that offset. Each queue then goes on behind what it had listed, so that no queue offset is given
    twice; `config/lostMessages.json` lists what is left out.

    Messages are neither changed nor moved. A store that a broker of 5.x made with its defaults is refused, as its timer
    wheel would be left behind: a broker of 5.x recovers it when it starts, and an export of it needs no repair.

    Args:
        path: The store's directory; nobody else may own it.
        options: Sizes of files, where the store has none to tell them.
        cut_at: The `log_end` of a missing end, to give up what stood behind.
        progress: Called with bytes done and bytes in all.

    Raises:
        StoreNotFoundError: No such directory.
        UnsupportedStoreError: As `open_store` with mode "a".
        StoreBusyError: Another process owns the store.
        CorruptError: The log is damaged where it had been flushed, or ends before that: a cut would lose messages.
        ArgumentError: `cut_at` is not where the log ends, or nothing is missing; an empty path, the URL of another
            system.

    Example:
        >>> from rmqfast.store import repair
        >>> repair(getfixture("golden_store_copy")("crash-4.9.4")).unlisted
        0
    """
    own = (options or AppendOptions()).with_system_values()
    native_path = os.fspath(local_path(path, "path"))
    return RecoveryReport(*_native.repair(native_path, own, cut_at=cut_at, progress=progress))
