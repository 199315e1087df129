"""`rmqfast group reset`, `skip` and `clone`: offsets of a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from rmqfast.admin.offsets import END
from rmqfast.cells import time_text
from rmqfast.cli.cluster_access import Access, Yes, administration, reaches_cluster
from rmqfast.cli.completion import complete_group
from rmqfast.cli.output import Form, say, write
from rmqfast.cli.shared_options import Group, Output, Topic
from rmqfast.message import MessageQueue
from rmqfast.store import milliseconds


@reaches_cluster
def reset(
    group: Group,
    topic: Topic,
    *,
    to: Annotated[str, typer.Option(help="begin, end, or a time: ISO 8601 (UTC) or ms.")],
    access: Access,
    yes: Yes = False,
    output: Output = Form.TABLE,
) -> None:
    """Resets a group's offsets for a topic. Online members switch within ten seconds.

    Exit code 1: not changed without --yes.
    """
    position = {"begin": 0, "end": END}.get(to)
    when = (milliseconds(to) or 0) if position is None else position
    with administration(access) as admin:
        if yes:
            _write(output, admin.offsets.reset_by_time(group, topic, when))
            return
        # nothing records the old offsets: show the backlog before it is gone
        behind = admin.groups.progress(group, topic).diff_total
    time = to if position is not None else time_text(when)
    say(f"nothing was changed: {group} is {behind} messages behind in {topic}; --yes sets it to {time}")
    raise typer.Exit(1)


@reaches_cluster
def skip(group: Group, topic: Topic, *, access: Access, yes: Yes = False, output: Output = Form.TABLE) -> None:
    """Skips the backlog of a group in a topic. Online members switch within ten seconds.

    Exit code 1: not changed without --yes.
    """
    with administration(access) as admin:
        if yes:
            _write(output, admin.offsets.reset_to_end(group, topic))
            return
        behind = admin.groups.progress(group, topic).diff_total
    say(f"nothing was changed: {group} is {behind} messages behind in {topic}; --yes leaves them out")
    raise typer.Exit(1)


@reaches_cluster
def clone(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="Group whose offsets are copied.", autocompletion=complete_group)
    ],
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET", help="Group that receives them; it should be offline.", autocompletion=complete_group
        ),
    ],
    topic: Topic,
    *,
    access: Access,
    yes: Yes = False,
    output: Output = Form.TABLE,
) -> None:
    """Copies a group's offsets for a topic to another group. Exit code 1: not changed without --yes."""
    with administration(access) as admin:
        if yes:
            _write(output, admin.offsets.clone(source, target, topic))
            return
        queues = len(admin.groups.progress(source, topic))
    say(f"nothing was changed: --yes sets {target} to the offsets of {source} in {queues} queues of {topic}")
    raise typer.Exit(1)


def _write(output: Form, offsets: Mapping[MessageQueue, int]) -> None:
    rows = [[queue.topic, queue.broker_name, queue.queue_id, offset] for queue, offset in sorted(offsets.items())]
    write(output, ("topic", "broker_name", "queue_id", "consumer_offset"), [rows])
