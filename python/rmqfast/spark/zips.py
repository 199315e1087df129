"""Zip files on a worker's path, which are read anew before each task although they hardly ever change.

Before a task PySpark calls `importlib.invalidate_caches`, older ones each time. In Python 3.10 and 3.11 every importer
of a zip file then reads its directory at once: that of `pyspark.zip` for each package in it, and that of the jar of
Spark itself. This takes a tenth of a second, in which a task of ours reads 100 MiB of log.

Source: `setup_spark_files` of PySpark; CPython issue 103200, which mended this in 3.12.
"""

from __future__ import annotations

import os
import sys
import zipimport

__all__ = ["read_directories_once"]

Stamp = tuple[int, int]
_stamps: dict[str, Stamp] = {}
_read_again = zipimport.zipimporter.invalidate_caches


def read_directories_once() -> None:
    """From now on this process reads a zip file's directory again only if the file has changed.

    Example:
        >>> import importlib
        >>> read_directories_once()
        >>> importlib.invalidate_caches()

    Source: as above.
    """
    # newer ones read a directory again when they next need it
    if sys.version_info < (3, 12):
        zipimport.zipimporter.invalidate_caches = _read_if_changed  # type: ignore[method-assign]


def _read_if_changed(self: zipimport.zipimporter) -> None:
    now = _stamp(self.archive)
    # a package within the zip has an importer of its own, with a directory of its own
    if now is None or _stamps.get(f"{self.archive}\0{self.prefix}") != now:
        _read_again(self)
        if now is not None:
            _stamps[f"{self.archive}\0{self.prefix}"] = now


def _stamp(path: str) -> Stamp | None:
    try:
        status = os.stat(path)  # noqa: PTH116  # once for each importer and task
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
