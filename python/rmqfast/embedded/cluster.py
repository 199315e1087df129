"""Runs a whole cluster in one process.

Source: RocketMQ's `NamesrvStartup`, `BrokerStartup`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from rmqfast.arguments import suggests_names
from rmqfast.broker import Broker, BrokerConfig, ConfigFile
from rmqfast.client.instance.exits import warn_unclosed
from rmqfast.errors import ArgumentError, ForkError
from rmqfast.html import facts
from rmqfast.nameserver import NameServer, NamesrvConfig
from rmqfast.paths import local_path
from rmqfast.pickling import not_picklable
from rmqfast.remoting import Request
from rmqfast.remoting.tls import TLS_KEYS

if TYPE_CHECKING:
    from rmqfast.acl import Administrator
    from rmqfast.slave import Slave

#: A temporary store needs no files of a gigabyte, and accepts messages until the disk is full.
_SMALL = {
    "mappedFileSizeCommitLog": str(64 << 20),
    "mappedFileSizeConsumeQueue": str(50_000 * 20),
    "maxHashSlotNum": "100000",
    "maxIndexNum": "400000",
    "rocketmq.broker.diskSpaceWarningLevelRatio": "1.0",
    "rocketmq.broker.diskSpaceCleanForciblyRatio": "1.0",
}


@suggests_names
@not_picklable("hand on its name_server")
class EmbeddedCluster:
    """A name server and one or more brokers on loopback. Any client of RocketMQ 4.9 or 5.x can use them.

    Args:
        store_dir: Directory of the brokers' stores: for one broker its store, for several brokers one store per broker
            name. Default: temporary stores with small files, deleted by `stop`.
        brokers: Number of brokers.
        replicas: Number of slaves per broker.
        name_servers: Number of name servers; every broker registers at all of them.
        name_server_port: Port of the first name server; each further one adds 1. Default: free ports.
        broker_port: Port of the first broker; each further one adds 10. Default: free ports.
        config: Properties of `broker.conf` for all brokers; those of TLS and access control apply to the name servers,
            too. With several brokers, each still gets its own name, port and store. All brokers use the cluster's name
            servers, with an administrator's account if `aclEnable=true`.
        config_file: File of the properties, into which changes at run time are written.
        progress: Called with the progress of recovering a store that was not closed; see `Broker`.
        check: Called before a request is answered; raises `ResponseError` for a forbidden request.

    Attributes:
        name_server: Address of the name server for clients, `ip:port`; several are separated by `;`.
        brokers: The brokers, all of them masters.
        slaves: The slaves, those of the first broker first.

    Example:
        >>> from rmqfast import EmbeddedCluster
        >>> with EmbeddedCluster() as cluster:
        ...     cluster.name_server.startswith("127.0.0.1:")
        True
    """

    def __init__(
        self,
        store_dir: str | os.PathLike[str] | None = None,
        *,
        brokers: int = 1,
        replicas: int = 0,
        name_servers: int = 1,
        name_server_port: int = 0,
        broker_port: int = 0,
        config: Mapping[str, str] | None = None,
        config_file: ConfigFile | None = None,
        progress: Callable[[int, int], object] | None = None,
        check: Callable[[Request], None] | None = None,
    ) -> None:
        if min(brokers, name_servers) < 1:
            raise ArgumentError(f"brokers, name_servers: expected at least 1, got {brokers}, {name_servers}")
        self._root = None if store_dir is None else local_path(store_dir, "store_dir")
        if replicas < 0:
            raise ArgumentError(f"replicas: expected 0 or more, got {replicas}")
        shared = BrokerConfig(config or {})
        is_checked = check is not None or shared.flag("aclEnable")
        if replicas and is_checked and not shared.text("haSlaveAddresses"):
            # Clients at these addresses get all topics without an account, so the addresses must be explicit.
            raise ArgumentError("replicas: where requests are checked, expected haSlaveAddresses=127.0.0.1, got none")
        self._counts, self._replicas = (name_servers, brokers), replicas
        self._ports = (name_server_port, broker_port)
        self._config = dict(config or {})
        self._config_file = config_file
        self._progress = progress
        self._check = check
        self._pid = os.getpid()
        self._is_started = False
        self._scratch: Scratch | None = None
        self._name_servers: list[NameServer] = []
        self.brokers: list[Broker] = []
        self.slaves: list[Slave] = []
        self.name_server: str = ""

    def _repr_html_(self) -> str:
        brokers = [broker.address for broker in self.brokers] if self._is_started else []
        return facts("EmbeddedCluster", {"name_server": self.name_server or None, "brokers": brokers})

    def start(self) -> Self:
        """Starts the name servers and then the brokers. If a server fails to start, all are stopped.

        Raises:
            StoreError: A store cannot be opened for appending.
            RemotingError: A port is not available.
            ArgumentError: The cluster was started before, or a value of the configuration is illegal.
            ForkError: The cluster was created before a fork.
        """
        self._refuse_fork()
        if self._is_started:
            raise ArgumentError("a cluster is started once")
        # Set first, since a failed start cannot be repeated.
        self._is_started = True
        self._scratch = Scratch() if self._root is None else None
        root = self._scratch.path if self._scratch else self._root or Path()
        try:
            for number in range(self._counts[0]):
                self._start_name_server(number, root)
            for number in range(self._counts[1]):
                self._start_broker(number, root)
            for number in range(self._counts[1]):
                for replica in range(1, self._replicas + 1):
                    self._start_slave(number, replica, root)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stops the brokers and then the name servers. May be called twice.

        Raises:
            StoreIOError: A store could not be closed; everything else is stopped.
            ForkError: The cluster was started before a fork.
        """
        self._refuse_fork()
        scratch, self._scratch = self._scratch, None
        with ExitStack() as stack:  # in reverse order, and each one even if others raise
            if scratch is not None:
                stack.callback(scratch.remove)
            for name_server in self._name_servers:
                stack.callback(name_server.stop)
            for broker in self.brokers:
                stack.callback(broker.stop)
            for slave in self.slaves:
                stack.callback(slave.stop)
            self._name_servers, self.brokers, self.slaves = [], [], []

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __del__(self) -> None:
        if getattr(self, "_name_servers", None):
            warn_unclosed(self, self._pid, "EmbeddedCluster", "stop()")

    def _refuse_fork(self) -> None:
        if os.getpid() != self._pid:
            message = "the cluster is of the process before a fork: make one in this process"
            raise ForkError(message)

    def _start_name_server(self, number: int, root: Path) -> None:
        shared = BrokerConfig(self._config)
        names = root / ("namesrv" if self._counts[0] == 1 else f"namesrv-{number}")
        config = NamesrvConfig(
            listen_port=self._ports[0] + number if self._ports[0] else 0,
            rocketmq_home=shared.text("rocketmqHome"),
            acl_enable=shared.flag("aclEnable"),
            bind_address=shared.text("bindAddress"),
            insecure_bind=shared.flag("insecureBind"),
            kv_config_path=str(names / "kvConfig.json"),
            config_store_path=str(names / "namesrv.properties"),
            tls={key: value for key, value in self._config.items() if key in TLS_KEYS},
        )
        self._name_servers.append(NameServer(config))
        self._name_servers[-1].start()
        self.name_server = ";".join(self._client_address(name_server.address) for name_server in self._name_servers)

    def _client_address(self, address: str) -> str:
        """Returns a name server's address for clients: with the broker's host if it listens on all interfaces."""
        host, _, port = address.rpartition(":")
        config = BrokerConfig(self._config)
        return f"{config.text('brokerIP1')}:{port}" if host in {"0.0.0.0", "[::]"} else address  # noqa: S104

    def _start_broker(self, number: int, root: Path) -> None:
        config = self._config_of(number, root)
        broker = Broker(
            config,
            config_file=self._config_file,
            check=self._check,
            signer=self._administrator(config),
            progress=self._progress,
        )
        self.brokers.append(broker)
        broker.start()

    def _start_slave(self, number: int, replica: int, root: Path) -> None:
        from rmqfast.slave import Slave  # imported only if needed, for a faster start

        config = self._config_of(number, root)
        port = config.number("listenPort")
        own = {
            "brokerRole": "SLAVE",
            "brokerId": str(replica),
            # After the ports of all masters.
            "listenPort": str(port + 10 * self._counts[1] * replica if port else 0),
            "storePathRootDir": str(root / f"{config.text('brokerName')}-slave-{replica}"),
        }
        administrator = self._administrator(config)
        slave = Slave(
            config.replaced(own),
            check=self._check,
            credentials=None if administrator is None else administrator.credentials(),
        )
        self.slaves.append(slave)
        slave.start()

    def _administrator(self, config: BrokerConfig) -> Administrator | None:
        """Returns the signer of requests to this cluster's name servers, and of a slave's requests to its master."""
        access = self._name_servers[0].access
        if access is None or config.text("nameServerAclFile"):
            return None
        from rmqfast.acl import Administrator

        return Administrator(access)

    def _config_of(self, number: int, root: Path) -> BrokerConfig:
        letter = chr(ord("a") + number) if number < 26 else str(number)
        is_one_of_many = self._counts[1] > 1
        # Ten ports apart: each broker has a VIP port two below and a HA port one above.
        port = self._ports[1] + 10 * number if self._ports[1] else 0
        own = {
            "brokerName": f"broker-{letter}",
            "listenPort": str(port),
            "storePathRootDir": str(root / f"broker-{letter}" if is_one_of_many or self._scratch else root),
        }
        # A single broker may override its name, port and store; several would collide.
        values = self._config | own if is_one_of_many else own | self._config
        return BrokerConfig((_SMALL if self._scratch else {}) | values | {"namesrvAddr": self.name_server})


class Scratch:
    """A temporary directory. It is removed by `remove`, or when its process ends, but not by forks of this process."""

    def __init__(self) -> None:
        self.path: Final = Path(tempfile.mkdtemp(prefix="rmqfast-"))
        self._finalizer = weakref.finalize(self, _remove, self.path, os.getpid())

    def remove(self) -> None:
        self._finalizer()


def _remove(path: Path, pid: int) -> None:
    if os.getpid() == pid:
        shutil.rmtree(path, ignore_errors=True)
