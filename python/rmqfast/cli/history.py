"""`rmqfast watch`: the history of a cluster whose brokers keep none."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rmqfast.cells import time_text
from rmqfast.cli.cluster_access import Access, reaches_cluster
from rmqfast.cli.endings import StopSignals
from rmqfast.cli.shared_options import PATH


@reaches_cluster
def watch(
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file; one that is there is continued.", parser=PATH)],
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 1.0,
    group: Annotated[list[str] | None, typer.Option(help="Only this group; repeatable. Default: all.")] = None,
    max_age: Annotated[float, typer.Option(min=0, metavar="HOURS", help="Older rows are removed.")] = 168.0,
    max_rows: Annotated[int, typer.Option(min=1, help="Of more rows, the oldest are removed.")] = 1_000_000,
    access: Access,
) -> None:
    """Watches a cluster until Ctrl-C or SIGTERM, and keeps what changes, so that `rmqfast explain` can decide by it.

    For brokers of RocketMQ: those of rmqfast keep a ledger. Samples offsets, and members of groups with their
    subscriptions and queues. Each broker gets four requests a look, and groups and members at most 20 a second. Prints
    a line with `ready` after the first look, and at the end what it has kept. Standard error tells what it could not
    get, of which the file then says nothing.
    """
    # Imported here, since other commands need no database.
    from rmqfast.admin.history import HistoryWatcher
    from rmqfast.admin.history.history_file import extent_of

    watcher = HistoryWatcher(
        access.config(), out, interval=interval, groups=group or (), max_age=max_age * 3600, max_rows=max_rows
    )
    with StopSignals() as signals, watcher:
        print(f"ready history={out}", flush=True)
        while not signals.wait():
            pass
    kept = extent_of(out)
    times = "" if kept.since is None or kept.until is None else f", {time_text(kept.since)} to {time_text(kept.until)}"
    print(f"{out}: {kept.groups} groups, {kept.rows} rows{times}")
