"""Runs a slave: keeps a copy of the master's store up to date, and runs a broker that serves the copy.

Source: RocketMQ's `BrokerController`, `SlaveSynchronize`, `HAClient`, `brokerRole=SLAVE`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Self

from rmqfast.admin.admin_client import TIMEOUT, AdminClient
from rmqfast.arguments import suggests_names
from rmqfast.broker import Broker, BrokerConfig, ConfigFile
from rmqfast.broker.access import credentials_of
from rmqfast.broker.options_of_config import retention_options
from rmqfast.client.instance import ClientConfig
from rmqfast.errors import ArgumentError, RmqError
from rmqfast.logs import QuietLock
from rmqfast.mirror.broker_mirror import BrokerMirror
from rmqfast.mirror.copy_directory import CopyDirectory, copy_options
from rmqfast.mirror.options import MirrorOptions
from rmqfast.mirror.status import MirrorStatus
from rmqfast.pickling import not_picklable
from rmqfast.remoting import Request
from rmqfast.remoting.credentials import Credentials, Signer
from rmqfast.remoting.tls import client_tls
from rmqfast.store import AppendOptions
from rmqfast.store.config import ConsumerOffsetTable, DelayOffsetTable, SubscriptionGroupTable, TopicConfigTable
from rmqfast.store.config.file import ConfigFile as ConfigTable
from rmqfast.store.replica import Replica


@suggests_names
@not_picklable("make one in each process")
class Slave:
    """A broker with `brokerRole=SLAVE`. It follows a master of RocketMQ or rmqfast, and serves its messages.

    It accepts no sends. While its master is down, it serves its copy, and resumes following afterwards. If the master
    lost the end of its log, the slave removes its copy of that end; a slave of RocketMQ keeps it and then differs from
    its master. To promote a slave, start a `Broker` with `brokerRole=ASYNC_MASTER` on its store.

    Args:
        config: The configuration, with the keys of `broker.conf`. `brokerName` is the master's, `brokerId` is 1 or
            more, and a name server in `namesrvAddr` knows the master. `listenPort` 0 chooses a free port.
        config_file: File of the configuration, into which changes at run time are written.
        check: Called before a request is answered; raises `ResponseError` for a forbidden request.
        credentials: Account for requests to name servers and master. Default: that of `nameServerAclFile`.

    Raises:
        ArgumentError: The configuration is not a slave's, names no name server, or has TLS properties that contradict
            each other.

    Example:
        >>> from rmqfast import EmbeddedCluster
        >>> with EmbeddedCluster(replicas=1) as cluster:
        ...     slave = cluster.slaves[0]
        ...     slave.config.broker_id, slave.status.broker_name
        (1, 'broker-a')
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        config_file: ConfigFile | None = None,
        check: Callable[[Request], None] | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        # `broker_id` is 0 unless `brokerRole` is SLAVE.
        if not config.broker_id:
            raise ArgumentError(f"brokerRole: expected SLAVE, got {config.text('brokerRole')}")
        name_server = config.text("namesrvAddr").strip()
        if not name_server:
            raise ArgumentError("namesrvAddr: expected a name server that knows the master, got none")
        credentials = credentials or credentials_of(config)
        self._served = ServedCopy(config, config_file, check, credentials)
        self._client = AdminClient(_client_config(config, name_server, credentials), TIMEOUT)
        tls = client_tls(config, use_tls=True) if config.flag("haUseTLS") else None
        if config.flag("haUseTLS") and tls is None:
            raise ArgumentError("haUseTLS=true: expected no tls.enable=false, which forbids this side TLS")
        # No limit, since a slave that lags costs more than a master that reads from its disk.
        options = MirrorOptions(retention=retention_options(config), if_broken="withdraw", cold_rate=0)
        self._copy = CopyDirectory(Path(config.text("storePathRootDir")), options, self._served)
        name = config.text("brokerName")
        self._mirror = BrokerMirror(self._client, name, self._copy, options, as_slave=True, tls=tls)
        self._lock = QuietLock()
        self._is_begun = False

    def start(self) -> str:
        """Opens the copy, serves it, and starts to follow the master.

        Returns:
            The address for clients, `ip:port`.

        Raises:
            StoreError: The copy cannot be opened.
            RemotingError: A port is not available.
            ClientError: The slave was started before.
        """
        with self._lock:
            self._client.start()
            try:
                # Serve the existing copy first, since the master may be down.
                self._copy.open_alone(self._served.sizes)
                self._is_begun = True
                self._mirror.start()
            except BaseException:
                self._is_begun = False
                self._copy.close()
                self._client.shutdown()
                raise
        return self.address

    def stop(self) -> None:
        """Unregisters from the name servers and closes the copy. May be called twice."""
        with self._lock:
            if not self._is_begun:
                return
            try:
                self._mirror.stop()
            finally:
                self._client.shutdown()
            self._is_begun = False

    @property
    def config(self) -> BrokerConfig:
        """The configuration. While the slave runs, it has the port that the slave listens on, not port 0."""
        return self._served.config

    @property
    def address(self) -> str:
        """Address of the broker in the form `ip:port`."""
        return self.config.broker_address

    @property
    def metrics_address(self) -> str | None:
        """Address of the metrics in the form `ip:port`, which are at `/metrics`; None without `metricsPort`."""
        return self._served.metrics_address()

    @property
    def status(self) -> MirrorStatus:
        """The progress of the copy."""
        return self._mirror.status

    @property
    def error(self) -> RmqError | None:
        """Reason why the slave ended by itself, for example other file sizes than the master's. None while it runs."""
        return self._mirror.error

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _client_config(config: BrokerConfig, name_server: str, credentials: Credentials | None) -> ClientConfig:
    own = ClientConfig(name_server=name_server, tls=client_tls(config, use_tls=config.flag("useTLS")))
    if credentials is None:
        return own
    return replace(own, access_key=credentials.access_key, secret_key=credentials.secret_key)


class ServedCopy:
    """Serves a slave's copy with a broker; see `CopyUser`.

    `config` is the broker's configuration, with the actual port after its first start; `sizes` are the copy's file
    sizes.
    """

    def __init__(
        self,
        config: BrokerConfig,
        config_file: ConfigFile | None,
        check: Callable[[Request], None] | None,
        signer: Signer | None,
    ) -> None:
        self.config: BrokerConfig = config
        self.sizes: AppendOptions = copy_options(config)
        self._config_file, self._check, self._signer = config_file, check, signer
        self._broker: Broker | None = None

    def metrics_address(self) -> str | None:
        return None if self._broker is None else self._broker.metrics_address

    def on_open(self, replica: Replica) -> None:
        """Starts a broker that serves the copy."""
        broker = Broker(
            self.config,
            config_file=self._config_file,
            check=self._check,
            signer=self._signer,
            store=replica.store,
        )
        # A broker whose start fails cleans up after itself.
        broker.start()
        self.config, self._broker = broker.config, broker

    def on_close(self) -> None:
        broker, self._broker = self._broker, None
        if broker is not None:
            # Keep changes made at run time, and the port.
            self.config = broker.state.config()
            broker.stop()

    def take(self, table: ConfigTable) -> None:
        """Replaces a table of the slave's broker by the table of its master."""
        if self._broker is None:
            return
        state = self._broker.state
        match table:
            case TopicConfigTable():
                state.topics.take(table)
            case SubscriptionGroupTable():
                state.groups.take(table)
            case ConsumerOffsetTable():
                state.offsets.take(table)
            case DelayOffsetTable():
                state.schedule.take(table)
