"""`rmqfast cluster`: the brokers of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from rmqfast.admin import BrokerRow
from rmqfast.admin.clusters import log_end_of
from rmqfast.cli.cluster_access import Access, Yes, administration, reaches_cluster
from rmqfast.cli.output import Form, Row, say, write
from rmqfast.cli.shared_options import Output, pairs
from rmqfast.cli.watch import watchable
from rmqfast.errors import RemotingError

COLUMNS = ("cluster", "broker_name", "broker_id", "address", "version", "in_tps", "out_tps", "log_end", "behind")

#: Settings that two brokers of a cluster cannot share, or that need not be alike.
OF_ONE_BROKER = frozenset(
    {
        "brokerId",
        "brokerIP1",
        "brokerIP2",
        "brokerName",
        "brokerRole",
        "haListenPort",
        "haMasterAddress",
        "listenPort",
        "metricsPort",
        "rocketmqHome",
        "storePathAbortFile",
        "storePathCommitLog",
        "storePathConsumeQueue",
        "storePathIndex",
        "storePathRootDir",
        "storeCheckpoint",
    }
)

app: typer.Typer = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The brokers of a cluster.")


@app.command()
@watchable
@reaches_cluster
def show(*, access: Access, output: Output = Form.TABLE) -> None:
    """Prints the brokers with their releases, their rates of the last ten seconds, and the ends of their logs.

    A slave is so many bytes of the log behind its master.
    """
    with administration(access) as admin:
        brokers = admin.clusters.brokers()
        statuses = dict(zip(brokers, map(_told, brokers, admin.brokers.statuses(brokers)), strict=True))
    ends = {broker.broker_name: log_end_of(status) for broker, status in statuses.items() if broker.is_master}
    write(output, COLUMNS, [[_row(broker, status, ends) for broker, status in statuses.items()]])


@app.command()
@reaches_cluster
def config(
    broker: Annotated[str, typer.Argument(metavar="BROKER", help="Name, or host:port.")],
    *,
    access: Access,
    output: Output = Form.TABLE,
) -> None:
    """Prints the configuration of a broker."""
    with administration(access) as admin:
        write(output, ("key", "value"), [[list(item) for item in sorted(admin.brokers.config(broker).items())]])


@app.command()
@reaches_cluster
def diff(
    broker: Annotated[
        list[str] | None, typer.Argument(metavar="[BROKER]...", help="Names, or host:port. Default: all brokers.")
    ] = None,
    *,
    access: Access,
    output: Output = Form.TABLE,
) -> None:
    """Prints the settings that differ between brokers, or of a single one from the defaults of 4.9.4.

    Names, addresses and paths differ always, and are left out; so are settings whose default rmqfast does not know.
    Exit code 1: brokers differ.
    """
    with administration(access) as admin:
        rows = admin.clusters.brokers()
        addresses = {
            row.broker_name if row.is_master else f"{row.broker_name}:{row.broker_id}": row.address for row in rows
        }
        configs = {name: admin.brokers.config(addresses.get(name, name)) for name in broker or addresses}
    is_alone = len(configs) == 1
    if is_alone:
        from rmqfast.broker import BrokerConfig  # a whole broker, which slows down the start of other commands

        configs = {"default": dict(BrokerConfig()), **configs}
    shared = set.intersection(*map(set, configs.values())) if is_alone else set().union(*configs.values())
    table = {key: [config.get(key) for config in configs.values()] for key in sorted(shared - OF_ONE_BROKER)}
    differing = [[key, *values] for key, values in table.items() if len(set(values)) > 1]
    write(output, ("key", *configs), [differing])
    if differing and not is_alone:
        raise typer.Exit(1)


@app.command("set-config")
@reaches_cluster
def set_config(
    broker: Annotated[str, typer.Argument(metavar="BROKER", help="Name, or host:port.")],
    change: Annotated[list[str], typer.Argument(metavar="KEY=VALUE...", help="Key and new value; repeatable.")],
    *,
    force: Annotated[bool, typer.Option("--force", help="Allow keys that may break a running broker.")] = False,
    access: Access,
    yes: Yes = False,
    output: Output = Form.TABLE,
) -> None:
    """Changes the configuration of a running broker. Exit code 1: not changed without --yes."""
    changes = pairs("KEY=VALUE", change)
    with administration(access) as admin:
        # Read before the change, to show the replaced values.
        before = admin.brokers.config(broker)
        if yes:
            admin.brokers.update_config(broker, changes, force=force)
    rows = [[key, before.get(key), value] for key, value in changes.items()]
    write(output, ("key", "before", "value"), [rows])
    if not yes:
        say("nothing was changed: --yes does it")
        raise typer.Exit(1)


@app.command()
@watchable
@reaches_cluster
def stats(
    broker: Annotated[str, typer.Argument(metavar="BROKER", help="Name, or host:port.")],
    *,
    access: Access,
    output: Output = Form.TABLE,
) -> None:
    """Prints runtime statistics of a broker: rates, request queues, offsets, disks."""
    with administration(access) as admin:
        write(output, ("key", "value"), [[list(item) for item in sorted(admin.brokers.status(broker).items())]])


def _told(broker: BrokerRow, status: dict[str, str] | RemotingError) -> dict[str, str]:
    if isinstance(status, RemotingError):
        # One broker that does not answer must not hide the others.
        say(f"{broker.broker_name} at {broker.address} tells nothing of itself: {status}")
        return {}
    return status


def _row(broker: BrokerRow, status: Mapping[str, str], master_ends: Mapping[str, int | None]) -> Row:
    # The key is misspelled in 4.9 and corrected in 5.x.
    rates = (_first(status.get("putTps")), _first(status.get("getTransferedTps") or status.get("getTransferredTps")))
    end, master_end = log_end_of(status), master_ends.get(broker.broker_name)
    behind = None if broker.is_master or end is None or master_end is None else master_end - end
    place = (broker.cluster, broker.broker_name, broker.broker_id, broker.address)
    return [*place, status.get("brokerVersionDesc"), *rates, end, behind]


def _first(rates: str | None) -> float | None:
    # The first of the three rates is that of the last ten seconds.
    return float(rates.split()[0]) if rates and rates.split() else None
