"""Starts and stops a broker: its state, its request processors and its ports.

Source: RocketMQ's `BrokerController`, `BrokerStartup`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Self

from rmqfast._native import Call
from rmqfast._native import RemotingServer as Listener
from rmqfast.broker.access import access_of, credentials_of, exposure_of, find_topics
from rmqfast.broker.configuration.config import BrokerConfig, ConfigFile
from rmqfast.broker.housekeeping import Timer, timers_of
from rmqfast.broker.options_of_config import ha_options, request_ages
from rmqfast.broker.ports import VIP_DISTANCE, ReservedPorts, check_port_is_free
from rmqfast.broker.processors import processors_of
from rmqfast.broker.registration.registrar import NameServers, Registrar
from rmqfast.broker.state import BrokerState
from rmqfast.errors import ArgumentError, ForkError, RemotingError
from rmqfast.logs import logger_of
from rmqfast.pickling import not_picklable
from rmqfast.remoting import Channel, Processor, RemotingServer, ServerOptions
from rmqfast.remoting.credentials import Signer
from rmqfast.remoting.loopback import with_brackets
from rmqfast.remoting.processor import Check, all_of
from rmqfast.remoting.tls import server_tls
from rmqfast.store.config import TopicConfig
from rmqfast.store.writer import WritableStore
from rmqfast.system import milliseconds_since_boot
from rmqfast.threads import new_event

if TYPE_CHECKING:
    from rmqfast.metrics.server import MetricsServer

_log = logger_of(__name__)
#: Threads that answer requests from the data plane; none waits for a client, since `Later` has its own thread.
_WORKERS = 8
_SIGNAL_INTERVAL = 1.0


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000


@not_picklable("make one in each process")
class Broker:
    """Serves sends and pulls as a broker of RocketMQ 4.9 does. Owns its store while it runs.

    Args:
        config: The configuration, with the keys of `broker.conf`. `listenPort` 0 chooses a free port.
        config_file: File of the configuration, into which changes at run time are written.
        check: Called before a request is answered, after the checks of `aclEnable`; raises `ResponseError` for a
            forbidden request.
        signer: Signs requests to name servers. Default: the account of `nameServerAclFile`.
        progress: Called with bytes done and bytes in all while a store that was not closed is recovered; may raise
            to stop the recovery.
        now: Returns milliseconds since 1970, from a clock that never jumps. Default: the machine's clock.
        store: An open store to serve, which stays open; for the copy of a `Slave`.

    Attributes:
        config: The configuration; while the broker runs, with its actual port.

    Example:
        >>> from rmqfast.remoting import RemotingClient, RequestCode
        >>> store = str(getfixture("tmp_path") / "store")
        >>> sizes = {"mappedFileSizeCommitLog": "1048576", "maxHashSlotNum": "1000", "maxIndexNum": "4000"}
        >>> with Broker(BrokerConfig({"storePathRootDir": store, "listenPort": "0"} | sizes)) as broker:
        ...     with RemotingClient(broker.address) as client:
        ...         client.request(RequestCode.GET_MAX_OFFSET, {"topic": "t", "queueId": "0"}).ext_fields
        {'offset': '0'}
    """

    def __init__(
        self,
        config: BrokerConfig | None = None,
        *,
        config_file: ConfigFile | None = None,
        check: Check | None = None,
        signer: Signer | None = None,
        progress: Callable[[int, int], object] | None = None,
        now: Callable[[], int] | None = None,
        store: WritableStore | None = None,
    ) -> None:
        self.config: BrokerConfig = config or BrokerConfig()
        self._store = store
        self._config_file = config_file
        self._check = check
        self._signer = signer
        self._progress = progress
        self._now = now or _milliseconds
        # A clock given by tests serves as both clocks.
        self._steady = now or milliseconds_since_boot
        self._pid = os.getpid()
        self._state: BrokerState | None = None
        self._server: RemotingServer | None = None
        self._registrar: Registrar | None = None
        self._listeners: list[Listener] = []
        self._timers: list[Timer] = []
        self._metrics: MetricsServer | None = None
        self._stopped = new_event()

    def start(self) -> str:
        """Opens the store, listens, and registers at the name servers.

        A name server that is down delays the start by at most `registerBrokerTimeoutMills`, and is registered at later.

        Returns:
            The address for clients, `ip:port`.

        Raises:
            StoreError: The store cannot be opened for appending.
            RemotingError: The port is not available, or that of the metrics is not.
            TlsFileError: A certificate or a key cannot be used.
            ArgumentError: The broker was started before, a value of the configuration is illegal, or TLS properties
                contradict each other.
            MissingExtraError: `aclEnable=true` without PyYAML.
            ForkError: The broker was created before a fork.
        """
        self._refuse_fork()
        if self._server is not None or self._stopped.is_set():
            raise ArgumentError("a broker is started once")
        if self.config.broker_id and self._store is None:
            raise ArgumentError("brokerRole=SLAVE: expected rmqfast.Slave, which follows a master, got a broker alone")
        # Before the port is reserved, so that an error leaves nothing to clean up, and a port in use does not hide it.
        self._access = access_of(self.config, self._now)
        check = self._request_check()
        signer = self._signer or credentials_of(self.config)
        reserved = self._take_port()
        try:
            self._open(check)
            self._listen()
            self._serve_log()
            self._register(NameServers(self._name_servers(), self.config, signer))
            self._metrics = self._serve_metrics()
            self._timers = timers_of(self.state, self._clients, self._access, self._stopped.is_set)
        except BaseException:
            self.stop()
            raise
        finally:
            if reserved is not None:
                reserved.release()
        return self.address

    @property
    def address(self) -> str:
        """Address of the broker in the form `ip:port`."""
        return self.config.broker_address

    @property
    def metrics_address(self) -> str | None:
        """Address of the metrics in the form `ip:port`, which are at `/metrics`; None without `metricsPort`."""
        return None if self._metrics is None else self._metrics.address

    @property
    def state(self) -> BrokerState:
        """State of the running broker.

        Raises:
            ArgumentError: The broker is not running.
            ForkError: The broker was started before a fork.
        """
        self._refuse_fork()
        if self._state is None:
            raise ArgumentError("the broker does not run")
        return self._state

    def stop(self) -> None:
        """Unregisters from the name servers, closes connections, saves all data, closes the store. May be called twice.

        Raises:
            StoreIOError: The operating system refused; the file `abort` stays, so that the next start recovers the
                store.
            ForkError: The broker was started before a fork.
        """
        self._refuse_fork()
        self._stopped.set()
        # Jobs first, since they use the parts closed below.
        for timer in self._timers:
            timer.stop()
        if self._metrics is not None:
            self._metrics.close()
        if self._registrar is not None:
            self._registrar.stop()
        for listener in self._listeners:
            listener.close()
        if self._server is not None:
            self._server.close()
        state, self._state = self._state, None
        if state is not None:
            state.close()

    def serve_forever(self) -> None:
        """Starts the broker if needed, then waits for `stop`.

        A signal handler must raise an exception instead of calling `stop`: it may interrupt this wait, which holds a
        lock.
        """
        if self._server is None:
            self.start()
        while not self._stopped.wait(_SIGNAL_INTERVAL):
            pass  # Python handles signals between two waits

    def register(self) -> None:
        """Registers the broker and all its topics at the name servers again."""
        self._refuse_fork()
        self._topic_changed(None)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _refuse_fork(self) -> None:
        if os.getpid() != self._pid:
            message = "the broker is of the process before a fork: make one in this process"
            raise ForkError(message)

    def _take_port(self) -> ReservedPorts | None:
        host = self.config.text("bindAddress")
        if self.config.number("listenPort") == 0:
            reserved = ReservedPorts(host)
            self.config = self.config.replaced({"listenPort": str(reserved.port)})
            return reserved
        check_port_is_free(host, self.config.number("listenPort"))
        return None

    @property
    def _checks_rights(self) -> bool:
        return self._access is not None or self._check is not None

    def _request_check(self) -> Check | None:
        rights = None if self._access is None else self._access.check
        return all_of(all_of(rights, self._check), exposure_of(self.config, is_checked=self._checks_rights))

    def _open(self, check: Check | None) -> None:
        # Filled later: the processors need the state, the state needs the server's mailbox, the server needs this dict.
        processors: dict[int, Processor] = {}
        self._server = RemotingServer(
            processors,
            check=check,
            closed=self._on_closed,
            again=self._again,
            max_ages=request_ages(self.config),
            workers=_WORKERS,
            options=self._options(),
        )
        self._state = BrokerState(
            self.config,
            self._server.mailbox,
            vip_port=self._vip_port,
            checks_rights=self._checks_rights,
            now=self._now,
            steady=self._steady,
            on_topic_change=self._topic_changed,
            progress=self._progress,
            store=self._store,
        )
        if self._access is not None:
            self._access.topics_at = partial(find_topics, self._state.live)
        answers, self._clients = processors_of(self.state, on_update=self._config_changed, access=self._access)
        processors.update(answers)

    def _listen(self) -> None:
        # The data plane receives each request first, and passes on requests that it does not answer.
        host, plane = with_brackets(self.config.text("bindAddress")), self.state.data_plane
        options = self._options()
        self._listeners.append(Listener.bind(f"{host}:{self.config.text('listenPort')}", plane, options))
        if self._vip_port is None:
            return
        try:
            self._listeners.append(Listener.bind(f"{host}:{self._vip_port}", plane, options))
        except RemotingError as error:
            # Only very old clients, and clients configured for it, use this port.
            _log.warning("no second listener: %s", error)

    def _serve_log(self) -> None:
        """Serves the log to slaves at the HA port, unless `haListenPort=0`."""
        config, port = self.config, self.config.number("haListenPort")
        if port <= 0:
            if config.is_sync_master:
                raise ArgumentError("haListenPort: expected a port for brokerRole=SYNC_MASTER, got 0")
            return
        address = f"{with_brackets(config.text('bindAddress'))}:{port}"
        try:
            self.state.data_plane.serve_log(address, **ha_options(config, is_checked=self._checks_rights))
        except RemotingError as error:
            # A SYNC_MASTER without a HA port would never find a slave for its sends.
            if config.is_sync_master:
                raise
            _log.warning("no listener for slaves: %s", error)

    def _serve_metrics(self) -> MetricsServer | None:
        port = self.config.text("metricsPort")
        if not port:
            return None
        # Imported only if needed, for a faster start.
        from rmqfast.broker.metrics import metrics_text
        from rmqfast.metrics.server import MetricsServer

        return MetricsServer(partial(metrics_text, self.state), port=int(port), host=self.config.text("metricsAddress"))

    def _options(self) -> ServerOptions:
        idle = float(self.config.number("serverChannelMaxIdleTimeSeconds"))
        return ServerOptions(max_idle=idle, tls=server_tls(self.config))

    @property
    def _vip_port(self) -> int | None:
        port = self.config.number("listenPort") - VIP_DISTANCE
        return port if port > 0 else None

    def _name_servers(self) -> list[str]:
        return [address.strip() for address in self.config.text("namesrvAddr").split(";") if address.strip()]

    def _register(self, name_servers: NameServers) -> None:
        self._registrar = Registrar(name_servers, self.state.topics, self.state.config)
        self._registrar.start()

    def _topic_changed(self, topics: Sequence[TopicConfig] | None) -> None:
        if self._registrar is not None:
            self._registrar.register_changes(topics)

    def _config_changed(self, changes: Mapping[str, str]) -> None:
        self.state.take(self.state.config())
        if self._config_file is not None:
            self._config_file.update(changes)

    def _again(self, call: Call, target: tuple[str, int] | None) -> None:
        state = self._state
        if state is not None:
            state.data_plane.handle_again(call, target)

    def _on_closed(self, channel: Channel) -> None:
        self._clients.on_closed(channel)
