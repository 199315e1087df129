"""Runs a slave: a copy of the master's store that is kept up to date, and a broker that gives out what is in it.

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
from rmqfast.remoting.tls_properties import client_tls
from rmqfast.store import AppendOptions
from rmqfast.store.config import ConsumerOffsetTable, DelayOffsetTable, SubscriptionGroupTable, TopicConfigTable
from rmqfast.store.config.file import ConfigFile as ConfigTable
from rmqfast.store.replica import Replica

__all__ = ["ServedCopy", "Slave"]


@suggests_names
@not_picklable("make one in each process")
class Slave:
    """A broker with `brokerRole=SLAVE`: follows the master of its name, RocketMQ's or ours, and serves its messages.

    It takes no messages. While its master is gone it serves what it has, and follows on when it is back. Where the
    master has lost the end of its log, what the slave has of that is withdrawn: a slave of RocketMQ keeps it, and goes
    on with other messages than its master. To promote it, start a `Broker` with `brokerRole=ASYNC_MASTER` on its store.

    Args:
        config: How it is set up; `broker.conf` says the same. `brokerName` is the master's, `brokerId` is 1 or more,
            and `namesrvAddr` leads to a name server that knows the master. `listenPort` 0 is any port that is free.
        config_file: Where the configuration comes from: what is changed while it runs is written there.
        check: Is asked before a request is answered; raises `ResponseError` for one that is not allowed.
        credentials: The account with which it asks name servers and master; that of `nameServerAclFile` unless given.

    Raises:
        ArgumentError: It is no slave by its configuration, has no name server, or properties of TLS that contradict
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
        # a slave that lags costs more than a master that reads from its disk
        options = MirrorOptions(retention=retention_options(config), if_broken="withdraw", cold_rate=0)
        self._copy = CopyDirectory(Path(config.text("storePathRootDir")), options, self._served)
        name = config.text("brokerName")
        self._mirror = BrokerMirror(self._client, name, self._copy, options, as_slave=True, tls=tls)
        self._lock = QuietLock()
        self._is_begun = False

    def start(self) -> str:
        """Opens the copy, serves it, and starts to follow the master.

        Returns:
            Its address, as clients are told.

        Raises:
            StoreError: The copy cannot be opened.
            RemotingError: A port cannot be had.
            ClientError: It was started before.
        """
        with self._lock:
            self._client.start()
            try:
                # first what it has: its master may be gone
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
        """Unregisters from the name servers and closes the copy. Idempotent."""
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
        """The configuration; once it runs, with its port."""
        return self._served.config

    @property
    def address(self) -> str:
        """The address of the broker, as `ip:port`."""
        return self.config.broker_address

    @property
    def status(self) -> MirrorStatus:
        """The progress of the copy."""
        return self._mirror.status

    @property
    def error(self) -> RmqError | None:
        """The reason why it ended by itself, as file sizes that differ from the master's; None while it runs."""
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
    """The user of a slave's copy: see `CopyUser`.

    Attributes:
        config: How the broker is set up; from its first start on with the port that it has.
        sizes: Of the files of the copy.
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

    def on_open(self, replica: Replica) -> None:
        """Starts a broker that serves it."""
        broker = Broker(
            self.config,
            config_file=self._config_file,
            check=self._check,
            signer=self._signer,
            store=replica.store,
        )
        # a start that fails leaves nothing behind
        broker.start()
        self.config, self._broker = broker.config, broker

    def on_close(self) -> None:
        broker, self._broker = self._broker, None
        if broker is not None:
            # what was changed while it ran, and its port
            self.config = broker.state.config()
            broker.stop()

    def take(self, table: ConfigTable) -> None:
        """Gives the broker its master's tables in place of its own."""
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
