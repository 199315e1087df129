"""Digests of files in `config/`, by which changes of other programs are detected."""

from __future__ import annotations

import hashlib
from pathlib import Path

from rmqfast.errors import StoreIOError


def digest_of(path: Path) -> str | None:
    """Returns the digest of a file. None if the file does not exist."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreIOError(error.errno, str(error.strerror).lower(), str(path)) from error
