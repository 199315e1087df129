"""Reads a file in `config/` or its backup. Writes the file atomically.

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

_LOG = logging.getLogger("rmqfast.store")
StorePath = str | os.PathLike[str]


class ConfigFile(ABC):
    """Base class of the configuration files in `config/`.

    Attributes:
        FILE_NAME: Name of the file below `config/`.
        MEMBER: Name of the JSON member that maps names to entries.
        other: Unknown members of the file, which are written back unchanged.
    """

    FILE_NAME: ClassVar[str]
    MEMBER: ClassVar[str]
    other: dict[str, Any]

    @classmethod
    def read(cls, root: StorePath) -> dict[str, Any]:
        """Returns the fields of the file below `root`, or of its backup. Empty if neither exists."""
        text, notes, _ = load_config(os.fspath(local_path(root, "root")), cls.FILE_NAME)
        # such as that the backup was read
        for note in notes:
            _LOG.warning("%s", note)
        members: dict[str, Any] = {} if text is None else json.loads(text)
        return members

    @classmethod
    def fault(cls, root: StorePath) -> str | None:
        """Returns the reason why the file cannot be read, although its backup can. Otherwise None.

        Raises:
            CorruptError: Neither the file nor its `.bak` can be read.
        """
        return load_config(os.fspath(local_path(root, "root")), cls.FILE_NAME)[2]

    @classmethod
    def load(cls, root: StorePath) -> Self:
        """Reads the file of the store below `root`.

        Raises:
            CorruptError: The file exists, but neither it nor its `.bak` can be read.
            UnsupportedStoreError: Neither exists, because a broker of 5.x keeps the configuration in RocksDB.
        """
        return cls.of_members(cls.read(root))

    @classmethod
    def of_members(cls, members: dict[str, Any]) -> Self:
        table = cls()
        table.take(members)
        # `take` has removed the members that it knows
        table.other = members
        return table

    def save(self, root: StorePath) -> None:
        """Writes the file atomically and flushes it. The previous file becomes its `.bak`, if it can be read.

        The caller must own the store: nothing stops a running broker from writing the same file.

        Raises:
            ArgumentError: A value does not fit RocketMQ's type, or the file would exceed 2 GiB, which Java does not
                read.
            StoreIOError: The operating system refused to read the old file or to write the new one.
            CorruptError: The path is not a file, or a broken link.
        """
        # sorted by name, as fastjson writes them
        members = dict(sorted((self.other | self.to_json()).items()))
        save_config(
            os.fspath(local_path(root, "root")), self.FILE_NAME, config_text(self.FILE_NAME, json.dumps(members))
        )

    @abstractmethod
    def take(self, members: dict[str, Any]) -> None: ...

    @abstractmethod
    def to_json(self) -> dict[str, Any]: ...


def by_number(table: Mapping[str, int]) -> dict[int, int]:
    # JSON has only strings as keys; Java's maps have integers
    return {int(number): value for number, value in table.items()}


def checked_name(kind: str, name: str) -> str:
    """Returns the name of a topic or group. Raises an error if RocketMQ does not allow the name."""
    if not name or not all(c.isascii() and (c.isalnum() or c in "%|-_") for c in name):
        raise ArgumentError(f"{kind}: expected letters, digits, '%', '|', '-', '_', got {name!r}")
    return name
