"""`rmqfast exporter`: the metrics of a cluster for Prometheus."""

from __future__ import annotations

from typing import Annotated

import typer

from rmqfast.cli.cluster_access import Access, reaches_cluster
from rmqfast.cli.endings import StopSignals
from rmqfast.cli.output import say


@reaches_cluster
def exporter(
    *,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port of the metrics; 0 is any.")] = 5557,
    host: Annotated[
        str, typer.Option(help="Address to listen at. By default only this machine may ask.")
    ] = "127.0.0.1",
    interval: Annotated[float, typer.Option(min=1, help="Seconds between two snapshots of the cluster.")] = 15.0,
    access: Access,
) -> None:
    """Serves the metrics of a cluster at `/metrics`, until Ctrl-C or SIGTERM.

    Names and labels are those of RocketMQ's exporter, besides `rmqfast_*` of its own. Each broker gets five requests an
    interval, and at most ten more a second. Prints a line with `ready` and the address once it serves.
    """
    # Imported here, since other commands need no HTTP server.
    from rmqfast.exporter import Exporter

    with StopSignals() as signals, Exporter(access.config(), port=port, host=host, interval=interval) as running:
        print(f"ready metrics=http://{running.address}/metrics", flush=True)
        while not signals.wait():
            pass
    say("stopped")
