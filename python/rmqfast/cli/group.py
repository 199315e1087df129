"""`rmqfast group`: consumer groups of a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from rmqfast.admin import Admin, Explanation
from rmqfast.cli.cluster_access import (
    CONNECTION_COLUMNS,
    Access,
    Cluster,
    Yes,
    administration,
    reaches_cluster,
    write_values,
)
from rmqfast.cli.options import Group, Output
from rmqfast.cli.output import Form, Row, say, write
from rmqfast.errors import ClientError, ResponseError
from rmqfast.remoting import ResponseCode
from rmqfast.store import built_in_groups

__all__ = ["app"]

LIST_COLUMNS = ("group", "members", "consume_type", "message_model", "consume_tps", "diff_total")
SHOW_COLUMNS = (
    "topic",
    "broker_name",
    "queue_id",
    "broker_offset",
    "consumer_offset",
    "diff",
    "last_timestamp",
    "owner",
)

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Consumer groups of a cluster.")


@app.command("list")
@reaches_cluster
def list_groups(*, access: Access, output: Output = Form.TABLE) -> None:
    """Prints the groups, who is online, and how far they are behind."""
    with administration(access) as admin:
        prefix = "%RETRY%"
        began = {topic.removeprefix(prefix) for topic in admin.topics() if topic.startswith(prefix)}
        made = admin.groups().keys() - {group.group_name for group in built_in_groups()}
        groups = sorted(began | made)
        write(output, LIST_COLUMNS, ([_group_row(admin, group)] for group in groups))


@app.command()
@reaches_cluster
def show(group: Group, *, access: Access, output: Output = Form.TABLE) -> None:
    """Prints how far a group is, queue by queue, and who has it. Exit code 1: members subscribe differently."""
    with administration(access) as admin:
        try:
            told = admin.explain(group)
        except ResponseError as error:
            if error.code != ResponseCode.TOPIC_NOT_EXIST or group not in admin.groups():
                raise
            write(output, SHOW_COLUMNS, [])
            say(f"group {group} is there, and no member of it has come yet: it has no offsets, and no topic of retries")
            return
        stats = admin.consume_stats(group)
        conflicts = admin.subscription_conflicts(group)
    owners = {part.queue.queue: part.queue.owner for part in told.parts if part.queue is not None}
    write(
        output,
        SHOW_COLUMNS,
        [[[*(getattr(row, column) for column in SHOW_COLUMNS[:-1]), owners.get(row.queue)] for row in stats]],
    )
    _say(told)
    if conflicts:
        raise typer.Exit(1)


@app.command()
@reaches_cluster
def create(
    group: Group,
    *,
    retry_max_times: Annotated[int, typer.Option(min=-1, help="Tries before a message is a dead letter.")] = 16,
    retry_queues: Annotated[int, typer.Option(min=0, help="Queues of its topic of retries.")] = 1,
    access: Access,
    cluster: Cluster = None,
) -> None:
    """Makes a group on all masters."""
    with administration(access) as admin:
        admin.create_group(group, cluster=cluster, retry_max_times=retry_max_times, retry_queue_nums=retry_queues)


@app.command()
@reaches_cluster
def delete(
    group: Group,
    *,
    offsets: Annotated[bool, typer.Option("--offsets", help="Its offsets, too.")] = False,
    access: Access,
    cluster: Cluster = None,
    yes: Yes = False,
) -> None:
    """Removes a group, its retries and its dead letters. Exit code 1: without --yes, it would be removed."""
    with administration(access) as admin:
        if yes:
            admin.delete_group(group, cluster=cluster, remove_offsets=offsets)
            return
    say(f"nothing was changed: --yes removes {group}, its retries and its dead letters")
    raise typer.Exit(1)


@app.command()
@reaches_cluster
def connections(group: Group, *, access: Access, output: Output = Form.TABLE) -> None:
    """Prints the members of a group that are online, as one of its brokers knows them."""
    with administration(access) as admin:
        write_values(output, CONNECTION_COLUMNS, admin.consumer_connections(group).connections)


def _group_row(admin: Admin, group: str) -> Row:
    """What mqadmin's consumerProgress prints of a group; what is not known is left out."""
    members, kind, model, tps, behind = 0, None, None, None, None
    try:
        known = admin.consumer_connections(group)
        members, kind, model = len(known.connections), known.consume_type, known.message_model
    except (ResponseError, ClientError):
        pass  # nobody is online
    try:
        stats = admin.consume_stats(group)
        tps, behind = stats.consume_tps, stats.diff_total
    except (ResponseError, ClientError):
        pass  # it has no offsets
    return [group, members, kind, model, tps, behind]


def _say(told: Explanation) -> None:
    for sentence in told.sentences:
        say(sentence)
