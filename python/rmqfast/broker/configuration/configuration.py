"""Holds the configuration of a running broker and its version, for all parts that ask for values.

Source: RocketMQ's `Configuration`.
"""

from __future__ import annotations

from collections.abc import Mapping

from rmqfast.broker.configuration.config import BrokerConfig, may_change
from rmqfast.logs import QuietLock, logger_of
from rmqfast.store.config import DataVersion

_log = logger_of(__name__)


class Configuration:
    """The current configuration and its version; thread-safe.

    Example:
        >>> configuration = Configuration(BrokerConfig({"brokerName": "b"}), now=1_700_000_000_000)
        >>> configuration.update({"brokerPermission": "4", "listenPort": "1"}, now=1_700_000_000_001)
        {'brokerPermission': '4'}
        >>> configuration.current.number("brokerPermission"), configuration.data_version.counter
        (4, 1)
    """

    def __init__(self, config: BrokerConfig, *, now: int) -> None:
        self._lock = QuietLock()
        self._current = config
        self._data_version = DataVersion(timestamp=now)

    @property
    def current(self) -> BrokerConfig:
        return self._current

    @property
    def data_version(self) -> DataVersion:
        return self._data_version

    def update(self, values: Mapping[str, str], *, now: int) -> dict[str, str]:
        """Takes and returns the values of keys that may change while the broker runs; ignores the others."""
        changes = {key: value for key, value in values.items() if may_change(key)}
        # RocketMQ passes over keys that it does not know in silence; here the log names what is not taken
        fixed_keys = sorted(values.keys() - changes.keys())
        if fixed_keys:
            _log.warning(
                "configuration: these cannot be changed while the broker runs: %s", ", ".join(fixed_keys)[:400]
            )
        with self._lock:
            self._current = self._current.replaced(changes)
            self._data_version = self._data_version.next(now)
        return changes
