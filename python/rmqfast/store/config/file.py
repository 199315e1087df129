"""A file below `config/`: read with its backup, written so that it is the old one or the new one.

Source: RocketMQ's `ConfigManager`, `MixAll`.
"""

from __future__ import annotations

import json
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from rmqfast._native import config_text, load_config, save_config
from rmqfast.errors import ArgumentError
from rmqfast.paths import local_path

__all__ = ["ConfigFile"]

_LOG = logging.getLogger("rmqfast.store")
StorePath = str | os.PathLike[str]


class ConfigFile(ABC):
    """Base of the configuration files below `config/`.

    Attributes:
        FILE_NAME: Name of the file below `config/`.
        MEMBER: Its member that is a map of entries.
        other: Members of the file that are not known here; they are written as they were read.
    """

    FILE_NAME: ClassVar[str]
    MEMBER: ClassVar[str]
    other: dict[str, Any]

    @classmethod
    def read(cls, root: StorePath) -> dict[str, Any]:
        """The members of the file below `root`, or of its backup; empty if neither exists."""
        text, notes, _ = load_config(os.fspath(local_path(root, "root")), cls.FILE_NAME)
        for note in notes:
            _LOG.warning("%s", note)
        members: dict[str, Any] = {} if text is None else json.loads(text)
        return members

    @classmethod
    def fault(cls, root: StorePath) -> str | None:
        """Why the file below `root` cannot be read, though its backup can; None otherwise.

        Raises:
            CorruptError: Neither it nor its `.bak` can be read.
        """
        return load_config(os.fspath(local_path(root, "root")), cls.FILE_NAME)[2]

    @classmethod
    def load(cls, root: StorePath) -> Self:
        """Reads the file of the store below `root`.

        Raises:
            CorruptError: The file is there, and neither it nor its `.bak` can be read.
            UnsupportedStoreError: Neither is there, as a broker of 5.x keeps the configuration in RocksDB.
        """
        return cls.of_members(cls.read(root))

    @classmethod
    def of_members(cls, members: dict[str, Any]) -> Self:
        table = cls()
        table.take(members)
        table.other = members
        return table

    def save(self, root: StorePath) -> None:
        """Writes the file; the previous one, if it can be read, becomes its `.bak`.

        It is on the disk when this returns. A process that is killed, a disk that is full, a loss of power leave the
        old file or the new one. The store must be the caller's own: nothing keeps a broker away that runs on it.

        Raises:
            ArgumentError: A value that RocketMQ's type does not hold, or more than 2 GiB, which Java does not read.
            StoreIOError: The operating system refused, also to read the file that would be replaced.
            CorruptError: What has its name is no file, or a link that leads nowhere.
        """
        members = dict(sorted((self.other | self.to_json()).items()))
        save_config(
            os.fspath(local_path(root, "root")), self.FILE_NAME, config_text(self.FILE_NAME, json.dumps(members))
        )

    @abstractmethod
    def take(self, members: dict[str, Any]) -> None: ...

    @abstractmethod
    def to_json(self) -> dict[str, Any]: ...


def by_number(table: Mapping[str, int]) -> dict[int, int]:
    return {int(number): value for number, value in table.items()}


def checked_name(kind: str, name: str) -> str:
    """A name of a topic or a group that RocketMQ allows."""
    if not name or not all(c.isascii() and (c.isalnum() or c in "%|-_") for c in name):
        raise ArgumentError(f"{kind}: expected letters, digits, '%', '|', '-', '_', got {name!r}")
    return name
