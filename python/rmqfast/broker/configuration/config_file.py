"""Reads `broker.conf`, and writes what is changed while the broker runs.

Source: `Configuration.persist`, `MixAll.string2File`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.errors import ArgumentError, RmqError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.remoting import properties
from rmqfast.remoting.text_file import read_text, write_text

__all__ = ["ConfigFile"]

_log = logger_of(__name__)


class ConfigFile:
    r"""A `broker.conf`; what is changed while the broker runs is written to it.

    Example:
        >>> path = getfixture("tmp_path") / "broker.conf"
        >>> _ = path.write_text("brokerName=a\n")
        >>> ConfigFile(path).update({"brokerPermission": "4"})
        >>> sorted(path.read_text().splitlines())
        ['brokerName=a', 'brokerPermission=4']

    Source: `Configuration`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = QuietLock()

    def load(self) -> BrokerConfig:
        """What the file says.

        Raises:
            ArgumentError: It cannot be read, or a value is not of its key's kind.
        """
        try:
            return BrokerConfig.parse(self.path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ArgumentError(f"{self.path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ArgumentError(f"{self.path}: expected UTF-8, got {error}") from error
        except ArgumentError as error:
            raise ArgumentError(f"{self.path}: {error}") from error

    def update(self, values: Mapping[str, str]) -> None:
        """Writes values into the file, whose other keys stay; comments go, as with RocketMQ, and stay in its `.bak`.

        Where the operating system refuses the log says so: the broker runs with the values all the same.
        """
        if not values:
            return
        with self._lock:
            try:
                current = properties.loads(read_text(self.path) or "")
                write_text(self.path, _escaped(current | dict(values)))
            except RmqError as error:
                _log.error("the configuration was not saved: %s", error)


def _escaped(values: Mapping[str, str]) -> str:
    """The text of properties that are read as they are again: a backslash would be an escape."""
    return properties.dumps({key: value.replace("\\", "\\\\") for key, value in values.items()})
