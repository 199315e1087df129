"""`rmqfast server`, `rmqfast namesrv`, `rmqfast broker`: servers that run until they are stopped."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rmqfast.cli.endings import StopSignals
from rmqfast.cli.options import Option
from rmqfast.cli.output import say, say_directory
from rmqfast.errors import ArgumentError

if TYPE_CHECKING:
    from rmqfast.broker import BrokerConfig, ConfigFile

ConfigPath = Annotated[
    Path | None, Option(names=("--config", "-c"), is_file=True, help="A properties file, as of RocketMQ.")
]
PrintConfig = Annotated[
    bool, Option(names=("--print-config", "-p"), help="Print the effective configuration and exit.")
]
InsecureBind = Annotated[
    bool,
    Option(
        names=("--insecure-bind",),
        help="Listen beyond loopback without access control: everybody who reaches it may use it.",
    ),
]


def server(
    *,
    store: Annotated[
        Path | None,
        Option(help="The broker's store; overrides storePathRootDir. Default: a temporary one."),
    ] = None,
    namesrv_port: Annotated[int, Option(min=0, max=65_535, help="Port of the name server; 0 is any.")] = 9876,
    broker_port: Annotated[
        int | None,
        Option(min=0, max=65_535, help="Port of the broker; overrides listenPort. Default: 10911; 0 is any."),
    ] = None,
    config: ConfigPath = None,
    secure: Annotated[
        Path | None,
        Option(
            is_directory=True,
            help="A directory with certificates, accounts and configuration; created if missing or empty.",
        ),
    ] = None,
    address: Annotated[
        str, Option(help="With --secure: address of the servers for clients on other machines.")
    ] = "127.0.0.1",
    dashboard: Annotated[
        int | None,
        Option(min=0, max=65_535, help="Port of web pages about it, on loopback; 0 is any. Default: no pages."),
    ] = None,
    insecure_bind: InsecureBind = False,
    print_config: PrintConfig = False,
) -> None:
    """Runs a name server and a broker in one process, on loopback, until Ctrl-C or SIGTERM.

    Prints a line with `ready` and the addresses once it serves.
    """
    profiles = None
    if secure is not None:
        config, profiles = _secure_config(secure, config, address, namesrv_port)
    from rmqfast.broker import BrokerConfig, ConfigFile
    from rmqfast.embedded import EmbeddedCluster

    file = None if config is None else ConfigFile(config)
    own = {} if file is None else dict(file.load().explicit)
    if insecure_bind:
        own["insecureBind"] = "true"
    if broker_port is not None:
        own["listenPort"] = str(broker_port)
    store = store or (Path(own["storePathRootDir"]) if "storePathRootDir" in own else None)
    if store is not None:
        own["storePathRootDir"] = str(store)
    if print_config:
        print(BrokerConfig(own).to_text(), end="")
        return
    if store is not None:
        say_directory("store", store)
    # EmbeddedCluster would choose a free port, but a server has RocketMQ's default.
    default_port = BrokerConfig().number("listenPort")
    with _until_stopped() as signals:
        cluster = EmbeddedCluster(
            store,
            name_server_port=namesrv_port,
            broker_port=default_port,
            config=own,
            config_file=file,
            progress=partial(_stop_recovery, signals),
        )
        with cluster, _pages(dashboard, cluster.name_server, profiles) as pages:
            running = cluster.brokers[0]
            _print_ready(running.metrics_address, name_server=cluster.name_server, broker=running.address, **pages)
            _wait(signals)
    say("stopped")


@contextmanager
def _pages(port: int | None, name_server: str, profiles: Path | None) -> Iterator[dict[str, str]]:
    """Serves web pages about a cluster, if a port is given. Yields their address and password."""
    if port is None:
        yield {}
        return
    from rmqfast.cli.cluster_access import Access, load_profile
    from rmqfast.cli.dashboard import PASSWORD_VARIABLE, say_change
    from rmqfast.dashboard import Dashboard

    values = {} if profiles is None else load_profile("administrator", profiles).values
    access = Access({**values, "name_server": name_server}, {})
    password = os.environ.get(PASSWORD_VARIABLE)
    with Dashboard(access.config(), port=port, password=password, on_change=say_change) as running:
        shown = {} if password is not None else {"password": running.password}
        yield {"dashboard": f"http://{running.address}/", **shown}


def _secure_config(directory: Path, config: Path | None, address: str, name_server_port: int) -> tuple[Path, Path]:
    """Returns configuration and profiles of a directory with certificates and accounts. Prints how clients connect."""
    from rmqfast.acl import SecureDirectory

    if config is not None:
        raise ArgumentError("expected --secure or --config, got both: the directory has a broker.conf of its own")
    secured = SecureDirectory.at(directory, address=address, name_server_port=name_server_port)
    say(f"accounts, certificates and configuration are in {secured.path}; docs/security.md says who needs which file")
    say(f"command line: XDG_CONFIG_HOME={secured.path} rmqfast topic list, or with --profile administrator")
    say(f"mqadmin and Java: -Dtls.enable=true -Dtls.config.file={secured.path}/client.properties")
    return secured.config, secured.profiles


def namesrv(
    *,
    config: ConfigPath = None,
    port: Annotated[int | None, Option(min=0, max=65_535, help="Overrides listenPort.")] = None,
    insecure_bind: InsecureBind = False,
    print_config: PrintConfig = False,
) -> None:
    """Runs a name server until Ctrl-C or SIGTERM, configured by `namesrv.conf`."""
    from rmqfast.nameserver import NameServer, NamesrvConfig

    settings = NamesrvConfig() if config is None else NamesrvConfig.from_file(config)
    settings.insecure_bind |= insecure_bind
    if port is not None:
        settings.listen_port = port
    if print_config:
        print(settings.printed(), end="")
        return
    with _until_stopped() as signals, NameServer(settings) as running:
        _print_ready(running.metrics_address, name_server=running.address)
        _wait(signals)
    say("stopped")


def broker(
    *,
    config: ConfigPath = None,
    name_server: Annotated[
        str, Option(names=("--name-server", "-n"), help="`host:port;host:port`; overrides namesrvAddr.")
    ] = "",
    insecure_bind: InsecureBind = False,
    print_config: PrintConfig = False,
) -> None:
    """Runs a broker until Ctrl-C or SIGTERM, configured by `broker.conf`."""
    from rmqfast.broker import Broker, BrokerConfig, ConfigFile

    file = None if config is None else ConfigFile(config)
    settings = BrokerConfig() if file is None else file.load()
    if insecure_bind:
        settings = settings.replaced({"insecureBind": "true"})
    if name_server:
        settings = settings.replaced({"namesrvAddr": name_server})
    if print_config:
        print(settings.to_text(), end="")
        return
    if root := settings.text("storePathRootDir"):  # without a path, the broker reports it as missing
        say_directory("store", root)
    if settings.is_slave:
        _run_slave(settings, file)
        return
    with (
        _until_stopped() as signals,
        Broker(settings, config_file=file, progress=partial(_stop_recovery, signals)) as running,
    ):
        _print_ready(running.metrics_address, broker=running.address)
        _wait(signals)
    say("stopped")


def _run_slave(settings: BrokerConfig, file: ConfigFile | None) -> None:
    from rmqfast.slave import Slave

    with _until_stopped() as signals, Slave(settings, config_file=file) as running:
        _print_ready(running.metrics_address, broker=running.address)
        while not signals.wait():
            if running.error is not None:
                raise running.error
    say("stopped")


def _print_ready(metrics: str | None, **addresses: str) -> None:
    if metrics is not None:
        addresses["metrics"] = f"http://{metrics}/metrics"
    print("ready", *(f"{name}={address}" for name, address in addresses.items()), flush=True)


#: Seconds after which a busy thread lets others run, so that short requests do not wait behind long ones.
_TURN = 0.001


@contextmanager
def _until_stopped() -> Iterator[StopSignals]:
    """Handles SIGTERM and Ctrl-C in the block, and lets Python switch threads more often."""
    turn = sys.getswitchinterval()
    sys.setswitchinterval(_TURN)
    try:
        with StopSignals() as signals:
            yield signals
    finally:
        sys.setswitchinterval(turn)


def _wait(signals: StopSignals) -> None:
    while not signals.wait():
        pass


def _stop_recovery(signals: StopSignals, _read: int, _total: int) -> None:
    """Aborts the recovery of a store after a signal. The next start repeats the recovery."""
    if signals.is_noted:
        say("stopped while the store was recovered")
        raise SystemExit(0)
