"""Parses `namesrv.conf`. Answers the requests that show and change it.

Source: RocketMQ's `NamesrvConfig`, `NettyServerConfig`, `NamesrvStartup`, `MixAll`, `Configuration`,
`DefaultRequestProcessor`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from rmqfast.errors import ArgumentError, ResponseError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.paths import local_path
from rmqfast.remoting import Processor, Request, RequestCode, Response, ResponseCode, properties
from rmqfast.remoting.text_file import read_text, write_text
from rmqfast.remoting.tls import TLS_KEYS
from rmqfast.system import home_directory

_LOG = logger_of("rmqfast.nameserver")
_INT = 1 << 31


def _below_home(name: str) -> str:
    home = home_directory()
    if home is None:
        raise ArgumentError(
            "kvConfigPath, configStorePath: expected paths in a file (--config), as this account has no home, got none"
        )
    return str(home / "namesrv" / name)


@dataclass(kw_only=True)
class NamesrvConfig:
    r"""The properties of `namesrv.conf`. Their names are in `snake_case`.

    Attributes:
        kv_config_path: File of `KVConfigManager`.
        config_store_path: File into which changed properties are written. Default after `from_file`: the file read.
        order_message_enable: Whether routes contain the brokers of ordered topics.
        listen_port: Port to listen at.
        bind_address: Address to listen at; by default only reachable from this machine.
        server_channel_max_idle_time_seconds: Seconds without traffic after which a connection is closed.
        insecure_bind: Whether to allow listening beyond loopback without `aclEnable`. RocketMQ has no such property; it
            is shown only if set.
        acl_enable: Whether to check requests by the accounts below `conf` of `rocketmq_home`, as a broker does.
            RocketMQ has no such property; it is shown only if set.
        metrics_port: Port of the metrics, which are at `/metrics`; 0 chooses a free one, `None` serves none. RocketMQ
            has no such property; it is shown only if set.
        metrics_address: Address at which the metrics are served. Default: only this machine may ask.
        tls: TLS properties, under RocketMQ's names; shown only if set.

    Other properties are kept and shown, but have no effect.

    Example:
        >>> NamesrvConfig.from_text("listenPort=9877\norderMessageEnable=true").listen_port
        9877
    """

    rocketmq_home: str = field(default_factory=lambda: os.environ.get("ROCKETMQ_HOME", ""))
    kv_config_path: str = field(default_factory=lambda: _below_home("kvConfig.json"))
    config_store_path: str = field(default_factory=lambda: _below_home("namesrv.properties"))
    product_env_name: str = "center"
    cluster_test: bool = False
    order_message_enable: bool = False
    listen_port: int = 9876
    bind_address: str = "127.0.0.1"
    server_worker_threads: int = 8
    server_callback_executor_threads: int = 0
    server_selector_threads: int = 3
    server_oneway_semaphore_value: int = 256
    server_async_semaphore_value: int = 64
    server_channel_max_idle_time_seconds: int = 120
    server_socket_snd_buf_size: int = 0
    server_socket_rcv_buf_size: int = 0
    write_buffer_high_water_mark: int = 0
    write_buffer_low_water_mark: int = 0
    server_socket_backlog: int = 1024
    server_pooled_byte_buf_allocator_enable: bool = True
    use_epoll_native_selector: bool = False
    insecure_bind: bool = False
    acl_enable: bool = False
    metrics_port: int | None = None
    metrics_address: str = ""
    tls: Mapping[str, str] = field(default_factory=dict)

    #: Properties that a request may change at run time; none of these names a file, an address or a port.
    CHANGEABLE: ClassVar[frozenset[str]] = frozenset({"orderMessageEnable", "clusterTest", "productEnvName"})

    @classmethod
    def from_file(cls, path: Path) -> NamesrvConfig:
        """Reads a file. Changes will be written to the same file.

        Raises:
            ArgumentError: The file does not exist, or a value has another type than its property.
        """
        text = read_text(path)
        if text is None:
            raise ArgumentError(f"{path}: no such file, or it is empty")
        config = cls.from_text(text)
        # As with RocketMQ's `-c`, the next start finds the changes made by requests.
        config.config_store_path = str(path)
        return config

    @classmethod
    def from_text(cls, text: str) -> NamesrvConfig:
        """Parses properties. Warns about unknown properties.

        Raises:
            ArgumentError: A value has another type than its property.
        """
        config = cls()
        names = {_java_name(name) for name in _NAMES}
        values = properties.loads(text)
        config.tls = {name: values[name] for name in TLS_KEYS & values.keys()}
        for name in values.keys() - names - TLS_KEYS:
            _LOG.warning("namesrv.conf: unknown property %.100s", name)
        config._set({name: value for name, value in values.items() if name in names})
        return config

    def path(self, name: str) -> Path:
        """Returns a property as a path.

        Raises:
            ArgumentError: The path is empty, which would mean the current directory, or a URL.
        """
        return local_path(getattr(self, name), _java_name(name))

    def properties(self) -> dict[str, str]:
        """Returns the properties as strings under RocketMQ's names, in the order of their documentation."""
        names = [name for name in _NAMES if name not in _OWN or getattr(self, name)]
        return {_java_name(name): _text(getattr(self, name)) for name in names} | dict(self.tls)

    def to_text(self) -> str:
        """Returns all properties in the form in which requests get them."""
        return properties.dumps(self.properties())

    def printed(self) -> str:
        """Returns all properties in the form that the option `-p` prints."""
        return "".join(f"{name}={value}\n" for name, value in self.properties().items())

    def update(self, values: Mapping[str, str]) -> None:
        """Changes properties, and writes all properties to `config_store_path`. Ignores unknown properties.

        Raises:
            ArgumentError: A value has another type than its property; nothing is changed.
            StoreIOError: The file could not be written.
        """
        self._set(self.changes_of(values))
        write_text(self.path("config_store_path"), self.to_text())

    def changes_of(self, values: Mapping[str, str]) -> dict[str, str]:
        """Returns the known properties whose new values differ from the current ones."""
        current = self.properties()
        return {name: value for name, value in values.items() if name in current and value != current[name]}

    def _set(self, values: Mapping[str, str]) -> None:
        names = {_java_name(name): name for name in _NAMES}
        own = values.keys() - TLS_KEYS
        # Parse all values before setting one, so that an error changes nothing.
        new_values = {names[name]: _parse(name, values[name], getattr(self, names[name])) for name in own}
        for name, value in new_values.items():
            setattr(self, name, value)


_NAMES = tuple(each.name for each in fields(NamesrvConfig) if each.name != "tls")
#: Properties that RocketMQ lacks.
_OWN = frozenset({"acl_enable", "insecure_bind", "metrics_port", "metrics_address"})


def _parse(name: str, text: str, old: Any) -> Any:
    if not (text.isprintable() or not text):
        raise ArgumentError(f"{name}: no text of one line: {text[:40]!r}")
    if isinstance(old, bool):
        # Like Java's Boolean.parseBoolean.
        return text.strip().lower() == "true"
    if isinstance(old, int) or old is None:
        try:
            number = int(text)
        except ValueError:
            number = _INT
        if not 0 <= number < _INT:
            raise ArgumentError(f"{name}: expected a number from 0, got {text[:40]!r}")
        return number
    return text


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _java_name(name: str) -> str:
    first, *words = name.split("_")
    return first + "".join(word.capitalize() for word in words)


class ConfigProcessor:
    def __init__(self, config: NamesrvConfig) -> None:
        self._config = config
        self._lock = QuietLock()

    def processors(self) -> dict[int, Processor]:
        return {RequestCode.UPDATE_NAMESRV_CONFIG: self.update, RequestCode.GET_NAMESRV_CONFIG: self.get}

    def update(self, request: Request) -> Response:
        if not request.body:
            return Response()
        values = properties.loads_body(request.body)
        with self._lock:
            # Refuses `configStorePath`, by which a client could have any file overwritten.
            fixed_names = self._config.changes_of(values).keys() - self._config.CHANGEABLE
            if fixed_names:
                remark = f"a request does not change {', '.join(sorted(fixed_names))}"
                raise ResponseError(ResponseCode.NO_PERMISSION, remark)
            self._update(values)
        return Response()

    def get(self, _request: Request) -> Response:
        with self._lock:
            return Response(body=self._config.to_text().encode())

    def _update(self, values: Mapping[str, str]) -> None:
        try:
            self._config.update(values)
        except ArgumentError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from None
