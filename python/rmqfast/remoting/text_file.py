"""Reads a small configuration file or its backup. Replaces it atomically.

Source: `MixAll.string2File`, `MixAll.file2String`, `ConfigManager.load`.
"""

from __future__ import annotations

import stat
from pathlib import Path

from rmqfast.errors import CorruptError, StoreIOError
from rmqfast.paths import exists
from rmqfast.system import set_mode, sync_directory, sync_file

#: Largest readable file, in bytes.
MAX_SIZE = 64 << 20


def read_text(path: Path) -> str | None:
    """Returns the content of a file, or of its `.bak` if the file is missing or blank. `None` if the `.bak` is, too.

    `CorruptError` if the file is larger than 64 MiB or not UTF-8, `StoreIOError` if the operating system refuses.
    """
    for file in (path, _beside(path, ".bak")):
        try:
            with file.open("rb") as opened:
                # One byte more than allowed, to notice larger files.
                data = opened.read(MAX_SIZE + 1)
        except FileNotFoundError:
            if exists(file):
                raise StoreIOError(f"{file}: a symbolic link that leads nowhere") from None
            continue
        except OSError as error:
            raise StoreIOError(f"{file}: {error.strerror}") from error
        # A blank file counts as missing, so that its backup is read.
        if data.strip():
            return _text(file, data)
    return None


def write_text(path: Path, text: str) -> None:
    """Replaces a file and keeps its mode. The old content becomes `.bak`. Returns when the new file is on disk.

    Raises `StoreIOError` if the operating system refuses; the file is then unchanged.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(path.stat().st_mode) if exists(path) else None
        _write_file(_beside(path, ".tmp"), text.encode(), mode)
        if mode is not None:
            _write_file(_beside(path, ".bak"), path.read_bytes(), mode)
        # RocketMQ deletes the file before renaming, so a kill can leave only the `.bak`.
        _beside(path, ".tmp").replace(path)
        # Sync the directory, or the old file may come back after a power loss.
        sync_directory(path.parent)
    except OSError as error:
        raise StoreIOError(f"{path}: {error.strerror}") from error


def _text(file: Path, data: bytes) -> str:
    if len(data) > MAX_SIZE:
        raise CorruptError(f"{file}: expected at most {MAX_SIZE} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CorruptError(f"{file}: no UTF-8 at byte {error.start}") from error


def _write_file(file: Path, data: bytes, mode: int | None) -> None:
    with file.open("wb") as opened:
        if mode is not None:
            set_mode(opened.fileno(), mode)  # before writing, so that secrets are never readable for others
        opened.write(data)
        opened.flush()
        sync_file(opened.fileno())


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
