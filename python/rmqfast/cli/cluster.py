"""`rmqfast cluster`: the brokers of a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from rmqfast.admin import Admin, BrokerRow
from rmqfast.cli.cluster_access import Access, Yes, administration, reaches_cluster
from rmqfast.cli.output import Form, Row, say, write
from rmqfast.cli.shared_options import Output, pairs
from rmqfast.cli.watch import watchable
from rmqfast.errors import RemotingError

COLUMNS = ("cluster", "broker_name", "broker_id", "address", "version", "in_tps", "out_tps")

app: typer.Typer = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The brokers of a cluster.")


@app.command()
@watchable
@reaches_cluster
def show(*, access: Access, output: Output = Form.TABLE) -> None:
    """Prints the brokers with their releases, and their rates of the last ten seconds."""
    with administration(access) as admin:
        write(output, COLUMNS, ([_row(admin, broker)] for broker in admin.clusters.brokers()))


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


def _row(admin: Admin, broker: BrokerRow) -> Row:
    try:
        status = admin.brokers.status(broker.address)
    except RemotingError as error:
        # One broker that does not answer must not hide the others.
        say(f"{broker.broker_name} at {broker.address} tells nothing of itself: {error}")
        status = {}
    # The key is misspelled in 4.9 and corrected in 5.x.
    rates = (_first(status.get("putTps")), _first(status.get("getTransferedTps") or status.get("getTransferredTps")))
    return [
        broker.cluster,
        broker.broker_name,
        broker.broker_id,
        broker.address,
        status.get("brokerVersionDesc"),
        *rates,
    ]


def _first(rates: str | None) -> float | None:
    # The first of the three rates is that of the last ten seconds.
    return float(rates.split()[0]) if rates and rates.split() else None
