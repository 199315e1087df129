"""`rmqfast mirror`: a live copy of a cluster's brokers."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import astuple, fields
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rmqfast.cli.cluster_access import Access, reaches_cluster
from rmqfast.cli.endings import end_on_signals
from rmqfast.cli.output import Form, Row, say_directory, write
from rmqfast.cli.shared_options import PATH, Output
from rmqfast.errors import ArgumentError
from rmqfast.store.retention import RetentionOptions

if TYPE_CHECKING:
    from rmqfast.mirror import Mirror

Copies = Annotated[
    Path, typer.Argument(metavar="DIR", help="Parent directory of the copies, one per broker.", parser=PATH)
]


class IfBroken(StrEnum):
    """Action if the copy of a broker cannot continue."""

    STOP = "stop"
    WITHDRAW = "withdraw"
    ANEW = "anew"


@reaches_cluster
def mirror(
    directory: Copies,
    *,
    broker: Annotated[list[str] | None, typer.Option(help="Only this broker; repeatable.")] = None,
    all_brokers: Annotated[bool, typer.Option("--all-brokers", help="All masters.")] = False,
    topics: Annotated[
        str | None, typer.Option(metavar="A,B", help="Keep only these topics, in a store as of `store export`.")
    ] = None,
    beginning: Annotated[
        str,
        typer.Option(
            "--from",
            help="Start of a new copy, rounded to the start of a log file: earliest, latest, an offset of the log, "
            "or a time, ISO 8601 (UTC).",
        ),
    ] = "earliest",
    if_broken: Annotated[
        IfBroken,
        typer.Option(
            help="Action if the master lost the end of its log, or retention overtook the copy: stop; withdraw the "
            "lost messages from the copy; or begin a new copy beside the old one (anew)."
        ),
    ] = IfBroken.STOP,
    keep_hours: Annotated[
        int | None, typer.Option(min=1, help="Retention of the copy's files. Default: for ever.")
    ] = None,
    cold_rate: Annotated[
        int, typer.Option(min=0, help="MB per second for data older than the last two files; 0: no limit.")
    ] = 200,
    let_sends_time_out: Annotated[
        bool,
        typer.Option(
            "--let-sends-time-out",
            help="Follow a SYNC_MASTER of 4.x without a slave, although each send then waits for slaveTimeout.",
        ),
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="Stop once the copy has caught up.")] = False,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between lines of output.")] = 1.0,
    access: Access,
    output: Output = Form.TABLE,
) -> None:
    """Copies the logs of a cluster's masters into store directories and follows them, until Ctrl-C or SIGTERM.

    Each copy is a store as the broker's: read it with `rmqfast store`, read_store or Spark, while it grows. The master
    does not count a mirror as a slave. A stopped mirror resumes.
    """
    # Imports a whole broker, which would slow down the start of other commands.
    from rmqfast.mirror import Mirror, MirrorOptions, MirrorStatus

    if output is Form.JSON and not once:
        raise ArgumentError("output: expected table, jsonl or csv without --once, got json, an array that never ends")
    options = MirrorOptions(
        topics=() if topics is None else tuple(topics.split(",")),
        start=start_of(beginning),
        retention=None if keep_hours is None else RetentionOptions(file_reserved_hours=keep_hours),
        if_broken=if_broken.value,
        let_sends_time_out=let_sends_time_out,
        cold_rate=cold_rate * 1_000_000,
    )
    copies = Mirror(
        directory, brokers=broker or (), all_brokers=all_brokers, options=options, once=once, config=access.config()
    )
    say_directory("copies", directory)
    with end_on_signals(), copies:
        write(output, [field.name for field in fields(MirrorStatus)], lines(copies, every), whole=True)


def start_of(text: str) -> Literal["earliest", "latest"] | int | datetime:
    """Parses the value of `--from`.

    Example:
        >>> start_of("latest"), start_of("1073741824"), start_of("2026-11-01T06:00").hour
        ('latest', 1073741824, 6)
    """
    if text == "earliest":
        return "earliest"
    if text == "latest":
        return "latest"
    # Tested before the time, since `fromisoformat` takes 20261101 for a date.
    if text.isdecimal():
        return int(text)
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentError(f"--from: expected earliest, latest, an offset or a time, got {text!r}") from None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def lines(copies: Mirror, every: float) -> Iterator[Sequence[Row]]:
    """Yields the status of each copy at regular intervals, until all copies have ended."""
    while True:
        has_ended = copies.wait(every)
        yield [[str(value) if isinstance(value, Path) else value for value in astuple(s)] for s in copies.status()]
        # Show each status at once, even in a pipe.
        sys.stdout.flush()
        if has_ended:
            return
