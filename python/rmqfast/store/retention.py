"""Retention of a store: its options and reports, and a preview of the files that it would remove.

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


@suggests_names
@dataclass(frozen=True, kw_only=True)
class RetentionOptions:
    """The age and the disk usage at which retention removes files of a store.

    Args:
        file_reserved_hours: Hours that a commit-log file is kept after its last write (`fileReservedTime`).
        delete_when: Hours of the day, local time, at which old files are deleted (`deleteWhen`): "04" or "04;16".
        disk_max_used_ratio: Percentage of disk usage above which old files are deleted at any hour
            (`diskMaxUsedSpaceRatio`), from 10 to 95.
        force_ratio: Percentage above which the oldest files are deleted regardless of age
            (`diskSpaceCleanForciblyRatio`).
        warning_ratio: Percentage above which appends are refused (`diskSpaceWarningLevelRatio`).
        clean_forcibly: Whether files may be deleted before their retention time (`cleanFileForciblyEnable`).
    """

    file_reserved_hours: int = 72
    # four in the morning, RocketMQ's default
    delete_when: str = "04"
    disk_max_used_ratio: int = 75
    force_ratio: int = 85
    warning_ratio: int = 90
    clean_forcibly: bool = True

    def __post_init__(self) -> None:
        check_fields(self)


class CleanReport(NamedTuple):
    """The result of one run of retention.

    Attributes:
        log_files: Number of commit-log files removed.
        queue_files: Number of consume-queue files removed.
        index_files: Number of index files removed.
        bytes: Total bytes removed.
        min_offset: Physical offset at which the commit log now begins.
        used_ratio: Disk usage in percent; None if unknown.
        is_writable: Whether appends are accepted; False while more than `warning_ratio` is used.
        clock_jump_ms: Milliseconds by which the system's clock jumped, so that no file was removed by age; 0 if the
            clock was trusted.
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
        file: The path.
        bytes: Size in bytes.
    """

    kind: str
    file: str
    bytes: int


def plan_clean(
    path: str | os.PathLike[str], retention: RetentionOptions | None = None, *, now: int | None = None
) -> tuple[list[CleanedFile], int]:
    """Returns the files that a complete run of retention would remove, whatever the hour. Changes nothing.

    Args:
        path: The store's directory; another process may own it.
        retention: When files are removed. Default: RocketMQ's 72 hours.
        now: Milliseconds since 1970. Default: the system's clock.

    Returns:
        The files in the order of removal, and the physical offset at which the commit log would begin.

    Raises:
        StoreNotFoundError: The directory does not exist.
        UnsupportedStoreError: The store is of a kind that cannot be appended to.
        ArgumentError: An option is out of range, the path is empty, or the URL of another system.

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
