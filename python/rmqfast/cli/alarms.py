"""`rmqfast alarms`: what goes wrong in a cluster, as it happens."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rmqfast.cells import one_line, time_text
from rmqfast.cli.cluster_access import Access, reaches_cluster
from rmqfast.cli.endings import StopSignals
from rmqfast.cli.output import Form, print_json, say
from rmqfast.cli.shared_options import Output, pairs
from rmqfast.errors import ArgumentError

if TYPE_CHECKING:
    from rmqfast.doctor import AlarmChange

_FORMS = (Form.TABLE, Form.JSONL)


@reaches_cluster
def alarms(
    *,
    interval: Annotated[float, typer.Option(min=1, help="Seconds between two looks.")] = 10.0,
    lag: Annotated[int | None, typer.Option(min=0, help="Messages that a group may be behind in a topic.")] = None,
    lag_seconds: Annotated[
        float | None, typer.Option(min=0, help="Age that the oldest unread message of a group may have.")
    ] = None,
    stalled_seconds: Annotated[
        float, typer.Option(min=0, help="Time for which a group with a backlog may consume nothing.")
    ] = 120.0,
    silent: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC=SECONDS", help="Time for which a topic may get no message; repeatable."),
    ] = None,
    webhook: Annotated[str | None, typer.Option(help="URL to which each change is posted as JSON.")] = None,
    access: Access,
    output: Output = Form.TABLE,
) -> None:
    """Watches a cluster until Ctrl-C or SIGTERM, and prints each alarm that is raised or cleared.

    Alarms without a limit: members that subscribe differently, duplicate client ids, backlogs that expire, groups
    offline with a backlog, groups that do not move, dead letters, full disks, brokers that do not answer.
    """
    # A whole broker, which slows down the start of other commands.
    from rmqfast.doctor import AlarmMonitor, AlarmRules
    from rmqfast.doctor.webhook import json_of

    if output not in _FORMS:
        raise ArgumentError(f"-o: expected table or jsonl, got {output.value}")
    rules = AlarmRules(
        lag=lag,
        lag_seconds=lag_seconds,
        stalled_seconds=stalled_seconds,
        silent_seconds={topic: _seconds(topic, text) for topic, text in pairs("TOPIC=SECONDS", silent or []).items()},
    )

    def show(change: AlarmChange) -> None:
        if output is Form.JSONL:
            print_json(json_of(change))
        else:
            print(f"{time_text(change.at)} {change}")
            if change.is_raised:
                print(f"  next: {one_line(change.alarm.finding.next_step)}")
        sys.stdout.flush()

    # They are printed here.
    logging.getLogger("rmqfast.alarms").disabled = True
    with (
        StopSignals() as signals,
        AlarmMonitor(access.config(), rules=rules, interval=interval, webhook=webhook, on_change=show) as monitor,
    ):
        say(f"ready: {len(monitor.alarms)} alarms; looks again every {interval:g} s")
        while not signals.wait():
            pass
    say("stopped")


def _seconds(topic: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentError(f"--silent {topic}: expected seconds, got {text!r}") from None
