"""The configuration of a client.

Source: RocketMQ's `ClientConfig`, `LocalFileOffsetStore`, `AclClientRPCHook`, `StreamTypeRPCHook`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict

from rmqfast._native import namespace_of_endpoint, parse_name_servers
from rmqfast.arguments import check_fields, suggests_names
from rmqfast.client.instance.ids import build_client_id, pid_instance_name
from rmqfast.errors import ArgumentError, ArgumentTypeError
from rmqfast.paths import local_path
from rmqfast.remoting import RequestCode, TlsOptions
from rmqfast.remoting.connections import Sign
from rmqfast.remoting.credentials import STREAM_FIELDS, Credentials
from rmqfast.system import home_directory

DEFAULT_INSTANCE_NAME = "DEFAULT"
#: The environment variable of the default name servers.
NAME_SERVER_VARIABLE = "NAMESRV_ADDR"


@suggests_names
@dataclass(frozen=True, kw_only=True, slots=True)
class ClientConfig:
    """Addresses, accounts, intervals and timeouts of a client.

    Intervals and timeouts are seconds or timedeltas. Unlike Java's clients, it never looks up name servers by HTTP.

    Attributes:
        name_server: `host:port`; several as a sequence or separated by `;`. Default: the environment variable
            `NAMESRV_ADDR`.
        instance_name: Distinguishes clients of one process; most clients replace `DEFAULT` by a unique name.
        client_ip: The address in client ids. Default: the address of a network interface.
        unit_name: Name of the unit, a part of client ids.
        namespace: Prefix of topics and groups. Default: the namespace of an endpoint `http://MQ_INST_...`.
        tls: TLS options; None for plain connections.
        access_key: Account name, if brokers require an account.
        secret_key: The account's secret, which signs requests.
        security_token: A token that is sent with the signature.
        heartbeat_interval: Time between heartbeats.
        poll_name_server_interval: Time between updates of routes.
        missing_route_interval: Time between lookups of subscribed topics that do not exist yet; ten times as long after
            a minute.
        persist_offset_interval: Time between commits of consumers' offsets.
        rebalance_interval: Time between regular rebalances.
        request_timeout: Longest wait for an answer.
        connect_timeout: Longest wait for a connection.
        start_timeout: Longest wait of `start` for a name server's first answer before it fails. None: start anyway,
            and warn if no name server answers.
        translate_address: Maps a broker's address in a route to an address that is reachable from here.
        local_offset_dir: Directory of broadcasting consumers' offsets.
        callback_threads: Threads that run the callbacks of asynchronous requests.
        is_unit_mode: Whether the client belongs to a unit.
        verify_crc: Whether consumers check each body's CRC; brokers and Java's consumers do not. A damaged body
            raises `CorruptError` on access, and is null in Arrow.

    Raises:
        ArgumentError: An address has no port, an interval is not positive, or an account is incomplete.

    Example:
        >>> config = ClientConfig(name_server="10.0.0.1:9876;10.0.0.2:9876", access_key="a", secret_key="hidden")
        >>> config.name_servers
        ('10.0.0.1:9876', '10.0.0.2:9876')
        >>> "hidden" in repr(config)
        False
    """

    name_server: str | Sequence[str] | None = None
    instance_name: str = DEFAULT_INSTANCE_NAME
    client_ip: str | None = None
    unit_name: str | None = None
    namespace: str = ""
    tls: TlsOptions | None = None
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    security_token: str | None = field(default=None, repr=False)
    heartbeat_interval: float = 30.0
    poll_name_server_interval: float = 30.0
    missing_route_interval: float = 0.1
    persist_offset_interval: float = 5.0
    rebalance_interval: float = 20.0
    request_timeout: float = 3.0
    connect_timeout: float = 3.0
    start_timeout: float | None = None
    translate_address: Callable[[str], str] | None = None
    local_offset_dir: str | os.PathLike[str] | None = None
    callback_threads: int = 2
    is_unit_mode: bool = False
    verify_crc: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        servers = os.environ.get(NAME_SERVER_VARIABLE, "") if self.name_server is None else self.name_server
        several: object = servers
        if not isinstance(several, Sequence) or not all(isinstance(each, str) for each in several):
            got = f"got {several!r} ({type(several).__name__})"
            raise ArgumentTypeError(
                f"name_server: expected 'host:port', several separated by ;, or a list of them, {got}"
            )
        text = servers if isinstance(servers, str) else ";".join(servers)
        object.__setattr__(self, "namespace", self.namespace or namespace_of_endpoint(text) or "")
        object.__setattr__(self, "name_server", ";".join(parse_name_servers(text)))
        for name in _INTERVALS if self.start_timeout is None else (*_INTERVALS, "start_timeout"):
            if not 0 < getattr(self, name) < _LONGEST:
                raise ArgumentError(f"{name}: expected seconds above 0, got {getattr(self, name)}")
        if (self.access_key is None) != (self.secret_key is None):
            raise ArgumentError("expected access_key and secret_key, got one of them")
        if self.tls is not None:
            self.tls.check_trust()
        if self.local_offset_dir is not None:
            object.__setattr__(self, "local_offset_dir", local_path(self.local_offset_dir, "local_offset_dir"))

    @classmethod
    def of(
        cls,
        config: ClientConfig | None = None,
        name_server: str | Sequence[str] | None = None,
        instance_name: str = DEFAULT_INSTANCE_NAME,
        namespace: str = "",
    ) -> ClientConfig:
        """Returns a copy of `config`, or of the defaults, with the values of the other arguments that were given."""
        arguments = {"name_server": name_server, "namespace": namespace or None}
        changed: dict[str, Any] = {name: value for name, value in arguments.items() if value is not None}
        if instance_name != DEFAULT_INSTANCE_NAME:
            changed["instance_name"] = instance_name
        return cls(**changed) if config is None else replace(config, **changed)

    @property
    def name_servers(self) -> tuple[str, ...]:
        """The addresses of the name servers, in the order given."""
        return tuple(str(self.name_server).split(";")) if self.name_server else ()

    def client_id(self, *, is_stream: bool = False) -> str:
        """Returns the client id, by which brokers know the client.

        Args:
            is_stream: Whether the client is a pull or lite pull consumer.
        """
        return build_client_id(self.client_ip, self.instance_name, self.unit_name, is_stream=is_stream)

    def with_pid_instance_name(self) -> ClientConfig:
        """Returns a copy with a unique instance name, unless one is set.

        Broadcasting consumers do not use it, because their offset files are named by client id.
        """
        if self.instance_name != DEFAULT_INSTANCE_NAME:
            return self
        return replace(self, instance_name=pid_instance_name())

    def offset_dir(self) -> Path:
        """Returns the directory in which broadcasting consumers store offsets.

        Raises:
            ArgumentError: No directory is configured, and the account has no home directory.
        """
        if self.local_offset_dir:
            return Path(self.local_offset_dir)
        home = home_directory()
        if home is None:
            raise ArgumentError("local_offset_dir: expected a directory, as this account has no home, got none")
        return home / ".rocketmq_offsets"

    def signer(self, *, is_stream: bool = False) -> Sign | None:
        """Returns a function that adds signature and, with `is_stream`, a mark to requests. None if it adds neither."""
        stream = STREAM_FIELDS if is_stream else {}
        if self.access_key is None or self.secret_key is None:
            return (lambda _code, _fields, _body: stream) if stream else None
        credentials = Credentials(self.access_key, self.secret_key, self.security_token)

        def sign(code: RequestCode | int, ext_fields: Mapping[str, str], body: bytes) -> Mapping[str, str]:
            return {**stream, **credentials.sign(code, {**ext_fields, **stream}, body)}

        return sign

    def translated(self, address: str) -> str:
        """Maps an address in a route or a message id to an address that this machine can reach."""
        return address if self.translate_address is None else self.translate_address(address)


_INTERVALS = (
    "heartbeat_interval",
    "poll_name_server_interval",
    "missing_route_interval",
    "persist_offset_interval",
    "rebalance_interval",
    "request_timeout",
    "connect_timeout",
)
#: One year in seconds: the sum of larger times could overflow.
_LONGEST = 366 * 86_400.0


class ClientArguments(TypedDict, total=False):
    """Keyword arguments of all clients.

    Attributes:
        name_server: `host:port`; several as a sequence or separated by `;`. Default: that of `config`, else the
            environment variable `NAMESRV_ADDR`.
        instance_name: Distinguishes clients of one process.
        namespace: Prefix of topics and groups.
        config: All other settings: TLS, accounts, intervals.

    Example:
        >>> from rmqfast import PullConsumer
        >>> from rmqfast.client.instance import ClientArguments
        >>> cluster: ClientArguments = {"name_server": "127.0.0.1:9876", "namespace": "test"}
        >>> PullConsumer("books", **cluster).group
        'test%books'
    """

    name_server: str | Sequence[str] | None
    instance_name: str
    namespace: str
    config: ClientConfig | None


class TracedClientArguments(ClientArguments, total=False):
    """Keyword arguments of clients that can send traces.

    Attributes:
        enable_msg_trace: Whether to send message traces, which `Admin.messages.trace` reads.
        customized_trace_topic: The topic of traces. Default: `RMQ_SYS_TRACE_TOPIC`.
    """

    enable_msg_trace: bool
    customized_trace_topic: str | None
