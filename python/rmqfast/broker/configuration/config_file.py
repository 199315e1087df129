"""Reads `broker.conf`, and writes what is changed while the broker runs.

Source: RocketMQ's `Configuration`, `MixAll`.
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
    r"""A `broker.conf`, into which changes at run time are written.

    Example:
        >>> path = getfixture("tmp_path") / "broker.conf"
        >>> _ = path.write_text("brokerName=a\n")
        >>> ConfigFile(path).update({"brokerPermission": "4"})
        >>> sorted(path.read_text().splitlines())
        ['brokerName=a', 'brokerPermission=4']
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = QuietLock()

    def load(self) -> BrokerConfig:
        """Parses the file.

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
        """Writes values into the file and keeps its other keys. Comments are lost, as with RocketMQ; `.bak` has them.

        Where the operating system refuses the log says so: the broker runs with the values all the same.
        """
        if not values:
            return
        with self._lock:
            try:
                current = properties.loads(read_text(self.path) or "")
                write_text(self.path, _escape(current | dict(values)))
            except RmqError as error:
                _log.error("the configuration was not saved: %s", error)


def _escape(values: Mapping[str, str]) -> str:
    return properties.dumps({key: value.replace("\\", "\\\\") for key, value in values.items()})
