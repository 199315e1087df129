"""`rmqfast dashboard`: web pages about a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rmqfast.cells import one_line, time_text
from rmqfast.cli.cluster_access import Access, reaches_cluster
from rmqfast.cli.endings import StopSignals
from rmqfast.cli.output import say

if TYPE_CHECKING:
    from rmqfast.dashboard import ChangeEntry

#: Variable with the password of the pages.
PASSWORD_VARIABLE = "RMQFAST_DASHBOARD_PASSWORD"  # noqa: S105


@reaches_cluster
def dashboard(
    *,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port of the pages; 0 is any.")] = 8080,
    host: Annotated[
        str, typer.Option(help="Address to listen at. By default only this machine may ask.")
    ] = "127.0.0.1",
    password: Annotated[
        str | None,
        typer.Option(envvar=PASSWORD_VARIABLE, help="Default: a new one, which is printed."),
    ] = None,
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="Name by which browsers may reach it; repeatable. Default: any.")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="The pages change nothing.")] = False,
    interval: Annotated[float, typer.Option(min=1, help="Seconds between two looks at the cluster.")] = 5.0,
    access: Access,
) -> None:
    """Serves web pages about a cluster until Ctrl-C or SIGTERM: what is wrong, groups, topics, messages; and changes.

    Prints a line with `ready`, the address and the password once it serves, and each change to standard error. Beyond
    this machine, put it behind a proxy with TLS: passwords and sessions go over plain HTTP.
    """
    from rmqfast.dashboard import Dashboard  # other commands need no web server

    made = Dashboard(
        access.config(),
        port=port,
        host=host,
        password=password,
        allowed_hosts=allowed_host,
        interval=interval,
        read_only=read_only,
        on_change=say_change,
    )
    with StopSignals() as signals, made as running:
        shown = f" password={running.password}" if password is None else ""
        print(f"ready dashboard=http://{running.address}/{shown}", flush=True)
        while not signals.wait():
            pass
    say("stopped")


def say_change(entry: ChangeEntry) -> None:
    """Prints a change that was made on the pages, with its time."""
    say(f"{time_text(entry.timestamp)} {one_line(str(entry))}")
