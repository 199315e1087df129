"""Parses `broker.conf`, adds the defaults of RocketMQ, and keeps the configuration of a running broker.

Source: RocketMQ's `BrokerConfig`, `NettyServerConfig`, `NettyClientConfig`, `MessageStoreConfig`, `BrokerStartup`,
`MixAll`, `Configuration`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

from rmqfast.broker.configuration.config_keys import CONFIG_KEYS, OWN_KEYS, UNUSED_KEYS, Effect
from rmqfast.broker.ports import HA_DISTANCE
from rmqfast.errors import ArgumentError, RmqError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.remoting import properties
from rmqfast.remoting.text_file import read_text, write_text
from rmqfast.remoting.tls import TLS_KEYS
from rmqfast.store.config import DataVersion

_log = logger_of(__name__)


class BrokerConfig(Mapping[str, str]):
    r"""The configuration of a broker, as strings by key.

    Unknown keys are kept and shown, as in RocketMQ; a warning names them. Configurations with equal values are equal.

    Example:
        >>> config = BrokerConfig.parse("brokerName=broker-a\nlistenPort = 20911")
        >>> config.text("brokerName"), config.number("listenPort"), config.flag("autoCreateTopicEnable")
        ('broker-a', 20911, True)
        >>> config.number("haListenPort")
        20912
        >>> BrokerConfig.parse("listenPort=many")
        Traceback (most recent call last):
            ...
        rmqfast.errors.ArgumentError: listenPort: expected a whole number of 32 bits, got 'many'
    """

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        """Takes values by key. Raises `ArgumentError` for a value that does not have the type of its key."""
        self._set = {key: _check_value(key, value) for key, value in (values or {}).items()}
        # Keys unknown to RocketMQ are shown only if set.
        defaults = {key: config_key.default for key, config_key in CONFIG_KEYS.items() if key not in OWN_KEYS}
        # The order matters: explicit values override derived ones, which override defaults.
        table = defaults | self._derive() | self._set
        self._table = {key: value for key, value in table.items() if value is not None}

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses a properties file. Logs keys that have no effect.

        Raises:
            ArgumentError: A value has another type than its key, or the file is malformed.
        """
        values = properties.loads(text)
        unknown = sorted(values.keys() - CONFIG_KEYS.keys() - TLS_KEYS - UNUSED_KEYS)
        if unknown:
            _log.warning("broker configuration: unknown keys, which have no effect: %s", ", ".join(unknown))
        unused = sorted(values.keys() & UNUSED_KEYS)
        if unused:
            _log.warning("broker configuration: keys of RocketMQ that have no effect here: %s", ", ".join(unused))
        return cls(values)

    def replaced(self, values: Mapping[str, str]) -> Self:
        """Returns a copy with new values for some keys. Raises `ArgumentError` for a value of the wrong type."""
        return type(self)(self._set | dict(values))

    @property
    def explicit(self) -> Mapping[str, str]:
        """Values that were set explicitly, by key."""
        return self._set

    def text(self, key: str) -> str:
        """Returns the value of a key, or an empty string if it has no value."""
        config_key = CONFIG_KEYS.get(key)
        return self._table.get(key, (config_key and config_key.default) or "")

    def number(self, key: str) -> int:
        """Returns the value of a numeric key."""
        return int(self._table.get(key) or CONFIG_KEYS[key].default or 0)

    def percent(self, key: str, default: int) -> int:
        """Returns the value of a ratio key in percent, or `default` if it has no value."""
        return round(float(self._table[key]) * 100) if key in self._table else default

    def flag(self, key: str) -> bool:
        """Returns the value of a boolean key."""
        return (self._table.get(key) or CONFIG_KEYS[key].default) == "true"

    @property
    def broker_address(self) -> str:
        """The address that the broker registers: `brokerIP1:listenPort`."""
        return f"{self.text('brokerIP1')}:{self.text('listenPort')}"

    @property
    def is_slave(self) -> bool:
        """Whether the broker follows a master (`brokerRole=SLAVE`)."""
        return self.text("brokerRole") == "SLAVE"

    @property
    def is_sync_master(self) -> bool:
        """Whether sends wait for a slave (`brokerRole=SYNC_MASTER`)."""
        return self.text("brokerRole") == "SYNC_MASTER"

    @property
    def broker_id(self) -> int:
        """Id of the broker. A master always has 0, as in RocketMQ; a slave has 1 or more.

        Raises:
            ArgumentError: The configuration of a slave has no positive `brokerId`.
        """
        if not self.is_slave:
            return 0
        broker_id = self.number("brokerId")
        if broker_id <= 0:
            raise ArgumentError(f"brokerId: expected 1 or more for brokerRole=SLAVE, got {broker_id}")
        return broker_id

    def to_text(self) -> str:
        """Returns all values as sorted lines `key=value`, which the option `-p` prints."""
        return "".join(f"{key}={self[key]}\n" for key in sorted(self))

    def to_body(self) -> bytes:
        """Returns all values as lines `key=value`, in the form of RocketMQ's answers."""
        return properties.dumps(self).encode()

    def _derive(self) -> dict[str, str]:
        port = self._set.get("listenPort") or CONFIG_KEYS["listenPort"].default or "0"
        derived = {"haListenPort": str(int(port) + HA_DISTANCE)}
        if "brokerIP1" in self._set:
            # Slaves on other machines reach the HA port at the same IP as clients reach the broker.
            derived["brokerIP2"] = self._set["brokerIP1"]
        return derived

    def __getitem__(self, key: str) -> str:
        return self._table[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return f"BrokerConfig({self._set})"


def may_change(key: str) -> bool:
    """Whether a change of the key has an effect while the broker runs."""
    config_key = CONFIG_KEYS.get(key)
    return config_key is not None and config_key.effect is Effect.LIVE


def _check_value(key: str, value: str) -> str:
    if any(end in key or end in value for end in "\r\n"):
        raise ArgumentError(f"{key[:40]!r}: expected one line, got {value[:40]!r}")
    config_key = CONFIG_KEYS.get(key)
    return value if config_key is None else config_key.check(value)


class ConfigFile:
    r"""A `broker.conf`, which also stores changes that were made at run time.

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
        """Parses the file. Raises `ArgumentError` if it cannot be read, or if a value has the wrong type."""
        try:
            return BrokerConfig.parse(self.path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ArgumentError(f"{self.path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ArgumentError(f"{self.path}: expected UTF-8, got {error}") from error
        except ArgumentError as error:
            raise ArgumentError(f"{self.path}: {error}") from error

    def update(self, values: Mapping[str, str]) -> None:
        """Writes values into the file and keeps its other keys. Comments are lost, as in RocketMQ, but `.bak` has them.

        If the operating system refuses, the error is only logged, since the values are in effect already.
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


class Configuration:
    """The current configuration and its version. Thread-safe."""

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
        """Applies the values of keys that may change at run time, and returns them. Ignores other keys."""
        changes = {key: value for key, value in values.items() if may_change(key)}
        # RocketMQ silently ignores such keys; here a warning names them.
        fixed_keys = sorted(values.keys() - changes.keys())
        if fixed_keys:
            _log.warning(
                "configuration: these cannot be changed while the broker runs: %s", ", ".join(fixed_keys)[:400]
            )
        with self._lock:
            self._current = self._current.replaced(changes)
            self._data_version = self._data_version.next(now)
        return changes
