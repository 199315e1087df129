"""Retention of a store that this process owns: what is removed, when, and what was.

Source: RocketMQ's `MessageStoreConfig`, `DefaultMessageStore`, `CleanCommitLogService`, `MappedFileQueue`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rmqfast import _native
from rmqfast.arguments import check_fields, suggests_names
from rmqfast.paths import local_path

__all__ = ["CleanReport", "CleanedFile", "RetentionOptions", "plan_clean"]


@suggests_names
@dataclass(frozen=True, kw_only=True)
class RetentionOptions:
    """The age and disk usage at which files of a store are removed.

    Args:
        file_reserved_hours: Hours that a commit-log file is kept after its last write (`fileReservedTime`).
        delete_when: Hours of the day, local time, at which old files are deleted (`deleteWhen`): "04" or "04;16".
        disk_max_used_ratio: Percent of the disk in use above which old files are deleted at any hour
            (`diskMaxUsedSpaceRatio`); limited to 10 to 95.
        force_ratio: Percent above which the oldest files are deleted whatever their age
            (`diskSpaceCleanForciblyRatio`).
        warning_ratio: Percent above which appends are refused (`diskSpaceWarningLevelRatio`).
        clean_forcibly: Whether files younger than their retention may be deleted at all (`cleanFileForciblyEnable`).

    Example:
        >>> RetentionOptions(file_reserved_hours=24, delete_when="03;15").disk_max_used_ratio
        75
    """

    file_reserved_hours: int = 72
    delete_when: str = "04"
    disk_max_used_ratio: int = 75
    force_ratio: int = 85
    warning_ratio: int = 90
    clean_forcibly: bool = True

    def __post_init__(self) -> None:
        check_fields(self)


class CleanReport(NamedTuple):
    """The report of a run of retention.

    Attributes:
        log_files: Files of the commit log that were removed.
        queue_files: Files of consume queues.
        index_files: Files of the index.
        bytes: Bytes of all of them.
        min_offset: Where the commit log begins now.
        used_ratio: Percent of the disk that were used; None where nobody knows.
        is_writable: Whether messages can be appended: not while more than `warning_ratio` is used.
        clock_jump_ms: By how many milliseconds the time of day jumped, so that nothing went by age; 0 where it was
            believed.

    Example:
        >>> import rmqfast
        >>> keep = rmqfast.RetentionOptions(file_reserved_hours=72)
        >>> with rmqfast.open_store(getfixture("tmp_path") / "store", mode="a", retention=keep) as store:
        ...     store.clean().log_files
        0
    """

    log_files: int
    queue_files: int
    index_files: int
    bytes: int
    min_offset: int
    used_ratio: int | None
    is_writable: bool
    clock_jump_ms: int


class CleanedFile(NamedTuple):
    """A file that retention would remove.

    Attributes:
        kind: "commit log", "consume queue" or "index".
        file: Its path.
        bytes: Its size.

    Example:
        >>> from rmqfast.store import RetentionOptions, plan_clean
        >>> keep = RetentionOptions(file_reserved_hours=0)
        >>> files, _ = plan_clean(getfixture("golden_store")("basic-4.9.4"), keep, now=1_900_000_000_000)
        >>> files[0].kind, files[0].bytes
        ('commit log', 1048576)
    """

    kind: str
    file: str
    bytes: int


def plan_clean(
    path: str | os.PathLike[str], retention: RetentionOptions | None = None, *, now: int | None = None
) -> tuple[list[CleanedFile], int]:
    """Lists the files that retention would remove at any hour if it ran to its end. Changes nothing.

    Args:
        path: The store's directory; anybody may own it.
        retention: How long files stay; RocketMQ's 72 hours unless given.
        now: Milliseconds since 1970; the system's clock unless given.

    Returns:
        The files in the order in which they would go, and the offset at which the commit log would begin.

    Raises:
        StoreNotFoundError: No such directory.
        UnsupportedStoreError: A store of a kind that cannot be appended to.
        ArgumentError: An option out of range, an empty path, the URL of another system.

    Example:
        >>> from rmqfast.store import plan_clean
        >>> keep = RetentionOptions(file_reserved_hours=1_000_000, clean_forcibly=False)
        >>> plan_clean(getfixture("golden_store")("basic-4.9.4"), keep)
        ([], 0)
    """
    files, min_offset = _native.plan_clean(
        os.fspath(local_path(path, "path")), retention or RetentionOptions(), now=now
    )
    return [CleanedFile(kind, str(Path(file)), size) for kind, file, size in files], min_offset
