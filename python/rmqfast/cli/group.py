"""`rmqfast group`: consumer groups of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from rmqfast.admin import Admin, Explanation, SubscriptionFacts
from rmqfast.cli.cluster_access import (
    CONNECTION_COLUMNS,
    Access,
    Cluster,
    Yes,
    administration,
    group_names,
    reaches_cluster,
    write_values,
)
from rmqfast.cli.output import Form, Row, print_json, say, write
from rmqfast.cli.shared_options import Group, Output
from rmqfast.cli.watch import watchable
from rmqfast.errors import ClientError, RemotingError, ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting import ResponseCode

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

SUBSCRIPTION_COLUMNS = ("topic", "member", "expression", "type", "version_timestamp", "queues", "differs")
#: Shown instead of a client id for the subscription that brokers store for the whole group.
KEPT_BY_BROKER = "(kept by the broker)"

app: typer.Typer = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Consumer groups of a cluster.")


@app.command("list")
@watchable
@reaches_cluster
def list_groups(*, access: Access, output: Output = Form.TABLE) -> None:
    """Prints the groups with their online members and backlog."""
    with administration(access) as admin:
        write(output, LIST_COLUMNS, ([_group_row(admin, group)] for group in group_names(admin)))


@app.command()
@watchable
@reaches_cluster
def show(group: Group, *, access: Access, output: Output = Form.TABLE) -> None:
    """Prints progress, owner and subscriptions of a group, queue by queue.

    JSON has all of it, JSON lines and CSV have the queues. Exit code 1: members subscribe differently.
    """
    with administration(access) as admin:
        explanation = admin.explain(group)
        queues = _queue_rows(explanation, _times(admin, group))
    subscriptions = [_subscription_row(each) for each in explanation.subscriptions]
    if output is Form.JSON:
        facts = {"group": group, "queues": _records(SHOW_COLUMNS, queues)}
        facts |= {
            "subscriptions": _records(SUBSCRIPTION_COLUMNS, subscriptions),
            "sentences": list(explanation.sentences),
        }
        print_json(facts)
    else:
        write(output, SHOW_COLUMNS, [queues])
        if output is Form.TABLE and subscriptions:
            print()
            write(output, SUBSCRIPTION_COLUMNS, [subscriptions])
    for sentence in explanation.sentences:
        say(sentence)
    if explanation.conflicts:
        raise typer.Exit(1)


@app.command()
@reaches_cluster
def create(
    group: Group,
    *,
    retry_max_times: Annotated[int, typer.Option(min=-1, help="Attempts before a message becomes a dead letter.")] = 16,
    retry_queues: Annotated[int, typer.Option(min=0, help="Queues of its retry topic.")] = 1,
    access: Access,
    cluster: Cluster = None,
) -> None:
    """Creates a group on all masters."""
    with administration(access) as admin:
        admin.create_group(group, cluster=cluster, retry_max_times=retry_max_times, retry_queue_nums=retry_queues)


@app.command()
@reaches_cluster
def delete(
    group: Group,
    *,
    offsets: Annotated[bool, typer.Option("--offsets", help="Delete its offsets, too.")] = False,
    access: Access,
    cluster: Cluster = None,
    yes: Yes = False,
) -> None:
    """Deletes a group with its retry and dead-letter topics. Exit code 1: not deleted without --yes."""
    with administration(access) as admin:
        if yes:
            admin.groups.delete(group, cluster=cluster, remove_offsets=offsets)
            return
    say(f"nothing was changed: --yes removes {group}, its retries and its dead letters")
    raise typer.Exit(1)


@app.command()
@watchable
@reaches_cluster
def connections(group: Group, *, access: Access, output: Output = Form.TABLE) -> None:
    """Prints the online members of a group, as one of its brokers knows them."""
    with administration(access) as admin:
        write_values(output, CONNECTION_COLUMNS, admin.groups.connections(group).connections)


def _group_row(admin: Admin, group: str) -> Row:
    """Returns the columns of mqadmin's consumerProgress for a group. Unknown values are None."""
    members, kind, model, tps, behind = 0, None, None, None, None
    try:
        connection = admin.groups.connections(group)
        members, kind, model = len(connection.connections), connection.consume_type, connection.message_model
    except (RemotingError, ClientError) as error:
        _say_unless(error, group)  # no member is online
    try:
        stats = admin.groups.progress(group)
        tps, behind = stats.consume_tps, stats.diff_total
    except (RemotingError, ClientError) as error:
        _say_unless(error, group)  # the group has no offsets
    return [group, members, kind, model, tps, behind]


def _say_unless(error: RemotingError | ClientError, group: str) -> None:
    """Reports an error. Does nothing if the error only means that the group has no members or offsets."""
    code = error.code if isinstance(error, ResponseError) else None
    # These codes are normal for a group without online members or offsets.
    if isinstance(error, RemotingError) and code not in {
        ResponseCode.CONSUMER_NOT_ONLINE,
        ResponseCode.TOPIC_NOT_EXIST,
    }:
        say(f"group {group}: {error}")


def _times(admin: Admin, group: str) -> dict[MessageQueue, int]:
    """Returns for each queue the store time of the last consumed message. Empty without offsets."""
    try:
        return {row.queue: row.last_timestamp for row in admin.groups.progress(group)}
    except (ResponseError, ClientError):
        # The other columns can be shown without these times.
        return {}


def _queue_rows(explanation: Explanation, times: Mapping[MessageQueue, int]) -> list[Row]:
    """Returns the rows of the queues. Without an offset they have no backlog: the group may start at either end."""
    rows: list[Row] = []
    for part in explanation.parts:
        if (facts := part.queue) is not None:
            behind = None if facts.consumer_offset is None else facts.max_offset - facts.consumer_offset
            place = (facts.queue.topic, facts.queue.broker_name, facts.queue.queue_id)
            rows.append([*place, facts.max_offset, facts.consumer_offset, behind, times.get(facts.queue), facts.owner])
    return rows


def _subscription_row(facts: SubscriptionFacts) -> Row:
    subscription, queues = facts.subscription, facts.queues
    return [
        facts.topic,
        facts.client_id or KEPT_BY_BROKER,
        None if subscription is None else subscription.sub_string,
        None if subscription is None else subscription.expression_type,
        None if subscription is None else subscription.sub_version,
        None if queues is None else [f"{queue.broker_name}:{queue.queue_id}" for queue in queues],
        facts.differs,
    ]


def _records(columns: Sequence[str], rows: Sequence[Row]) -> list[dict[str, object]]:
    return [dict(zip(columns, row, strict=True)) for row in rows]
