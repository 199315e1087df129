"""Starts and stops a name server, and scans for silent brokers.

Source: RocketMQ's `NamesrvController`, `DefaultRequestProcessor`, `RouteInfoManager`, `BrokerHousekeepingService`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from rmqfast.errors import ArgumentError
from rmqfast.logs import logger_of
from rmqfast.nameserver.config import ConfigProcessor, NamesrvConfig
from rmqfast.nameserver.kv_config import KVConfigManager, KVConfigProcessor
from rmqfast.nameserver.processors import RegistrationProcessor, RouteProcessor
from rmqfast.nameserver.route_info import RouteInfoManager
from rmqfast.pickling import not_picklable
from rmqfast.remoting import Channel, Processor, RemotingServer, Request, RequestCode, Response, ServerOptions, process
from rmqfast.remoting.loopback import is_loopback, with_brackets
from rmqfast.remoting.processor import Check, all_of
from rmqfast.remoting.protocol.json_object import MAX_BODY_BYTES
from rmqfast.remoting.tls import server_tls
from rmqfast.threads import new_event, new_thread

if TYPE_CHECKING:
    from rmqfast.acl import AccessValidator
    from rmqfast.metrics.server import MetricsServer

_LOG = logger_of("rmqfast.nameserver")
_SIGNAL_INTERVAL = 1.0
# Ten years in seconds, since `ServerOptions` cannot express "no limit".
_NEVER = 10 * 365 * 86_400

#: Seconds between two scans for silent brokers, and before the first scan.
SCAN_INTERVAL, FIRST_SCAN = 10.0, 5.0
#: Seconds between checks of the account files for changes.
_ACCOUNTS_INTERVAL = 5.0


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000


@not_picklable("make one in each process")
class NameServer:
    """Answers requests of clients and brokers. Removes brokers that are silent for too long.

    Args:
        config: The configuration, with the properties of `namesrv.conf`.
        now: Returns milliseconds since 1970.
        check: Called before a processor, after the checks of `aclEnable`; raises `ResponseError` for a forbidden
            request.

    Attributes:
        routes: Brokers and topics.
        access: Checks requests if `aclEnable=true`; otherwise None.
        kv_configs: Strings by namespace and key.
        processors: Processors by request code; all other codes are answered with 3.

    Raises:
        CorruptError: The file of `kv_configs` cannot be read.
        ArgumentError: `aclEnable=true` without valid accounts; `bindAddress` beyond loopback without `aclEnable`,
            `check` or `insecureBind`; or a `kvConfigPath` or `configStorePath` that is empty or a URL.
        MissingExtraError: `aclEnable=true` without PyYAML.

    Example:
        >>> from rmqfast.remoting import RemotingClient
        >>> path = str(getfixture("tmp_path") / "kvConfig.json")
        >>> with NameServer(NamesrvConfig(kv_config_path=path, listen_port=0)) as server:
        ...     with RemotingClient(server.address) as client:
        ...         client.request(206).body
        b'{"topicList":[]}'
    """

    def __init__(
        self,
        config: NamesrvConfig | None = None,
        *,
        now: Callable[[], int] = _milliseconds,
        check: Check | None = None,
    ) -> None:
        self.config: Final = config or NamesrvConfig()
        self.config.path("config_store_path")  # checked now, not only when a request changes something
        self.routes: Final = RouteInfoManager()
        self._now = now
        self.access: Final = _access_of(self.config, now)
        checked = all_of(None if self.access is None else self.access.check, check)
        self._check = checked if checked is not None else _exposure_of(self.config)
        self._server: RemotingServer | None = None
        self._address = ""
        self._metrics: MetricsServer | None = None
        self._stopped = new_event()
        self.kv_configs: Final = KVConfigManager.load(self.config.path("kv_config_path"))
        self.processors: dict[int, Processor] = {
            **RouteProcessor(self.routes, self.kv_configs, self.config).processors(),
            **RegistrationProcessor(self.routes, self.kv_configs, now).processors(),
            **KVConfigProcessor(self.kv_configs).processors(),
            **ConfigProcessor(self.config).processors(),
        }

    def start(self) -> str:
        """Listens at `bindAddress` and `listenPort`. With port 0, the system chooses a free port.

        Returns:
            The address, `ip:port`.

        Raises:
            RemotingError: The address is not available, or that of the metrics is not.
            TlsFileError: A certificate or a key cannot be used.
            ArgumentError: The server was started before, or TLS properties contradict each other.
        """
        if self._server is not None:
            raise ArgumentError("a name server is started once")
        # As in Netty's idle handler, 0 means no limit.
        idle = float(self.config.server_channel_max_idle_time_seconds or _NEVER)
        options = ServerOptions(max_idle=idle, tls=server_tls(self.config.tls))
        self._server = RemotingServer(
            self.processors,
            check=self._check,
            closed=self.channel_closed,
            # Only registrations need larger bodies; other requests must not fill the memory.
            max_body=MAX_BODY_BYTES,
            unlimited=[RequestCode.REGISTER_BROKER],
            options=options,
        )
        try:
            self._address = self._server.listen(f"{with_brackets(self.config.bind_address)}:{self.config.listen_port}")
            self._metrics = self._serve_metrics()
        except BaseException:
            self.stop()
            raise
        self._now_and_then("rmqfast-scan", lambda: self.scan(self._now()), FIRST_SCAN, SCAN_INTERVAL)
        if self.access is not None:
            reload = self.access.reload_if_changed
            self._now_and_then("rmqfast-accounts", reload, _ACCOUNTS_INTERVAL, _ACCOUNTS_INTERVAL)
        return self._address

    def stop(self) -> None:
        """Stops listening, closes all connections, and makes `serve_forever` return."""
        self._stopped.set()
        if self._metrics is not None:
            self._metrics.close()
        if self._server is not None:
            self._server.close()

    def serve_forever(self) -> None:
        """Starts the server if needed, then waits for `stop`.

        A signal handler must raise an exception instead of calling `stop`: it may interrupt this wait, which holds a
        lock.
        """
        if self._server is None:
            self.start()
        while not self._stopped.wait(_SIGNAL_INTERVAL):
            pass  # Python handles signals between two waits

    @property
    def address(self) -> str:
        """The address at which the server listens, `ip:port`. Empty before `start`."""
        return self._address

    @property
    def metrics_address(self) -> str | None:
        """Address of the metrics in the form `ip:port`, which are at `/metrics`; None without `metricsPort`."""
        return None if self._metrics is None else self._metrics.address

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def process(self, request: Request) -> Response:
        """Answers a request with its processor. Does not check access."""
        answer = process(self.processors, request)
        assert isinstance(answer, Response)  # noqa: S101  # processors of a name server never answer later
        return answer

    def scan(self, now: int) -> int:
        """Removes brokers that were silent for over 120 seconds. Closes their connections and returns their number."""
        channels = self.routes.scan(now)
        for channel in channels:
            channel.close()
        return len(channels)

    def channel_closed(self, channel: Channel) -> None:
        """Removes the brokers of a connection that was closed."""
        self.routes.channel_closed(channel)

    def _serve_metrics(self) -> MetricsServer | None:
        port = self.config.metrics_port
        if port is None:
            return None
        # Imported only if needed, for a faster start.
        from rmqfast.metrics.server import MetricsServer
        from rmqfast.nameserver.metrics import metrics_text

        text = partial(metrics_text, self.routes, self._now)
        return MetricsServer(text, port=port, host=self.config.metrics_address or "127.0.0.1")

    def _now_and_then(self, name: str, work: Callable[[], object], first: float, interval: float) -> None:
        """Starts a thread that calls `work` at intervals until `stop`."""

        def run() -> None:
            wait = first
            while not self._stopped.wait(wait):
                try:
                    work()
                except Exception:  # noqa: BLE001  # the next attempt may succeed
                    _LOG.exception("%s failed", name)
                wait = interval

        new_thread(run, name=name).start()


def _exposure_of(config: NamesrvConfig) -> Check | None:
    if is_loopback(config.bind_address):
        return None
    from rmqfast.acl.access_validator import exposure_check  # imported only if needed, for a faster start

    return exposure_check(config.bind_address, is_checked=False, is_allowed=config.insecure_bind)


def _access_of(config: NamesrvConfig, now: Callable[[], int]) -> AccessValidator | None:
    if not config.acl_enable:
        return None
    from rmqfast.acl import validator_of  # imported only if needed, for a faster start

    return validator_of(config.rocketmq_home, now)
