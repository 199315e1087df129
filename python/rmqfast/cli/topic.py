"""`rmqfast topic`: topics of a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from rmqfast.admin import TopicSummary
from rmqfast.cli.cluster_access import (
    CONNECTION_COLUMNS,
    Access,
    Cluster,
    Yes,
    administration,
    reaches_cluster,
    say_problems,
    write_values,
)
from rmqfast.cli.group_rows import write_groups
from rmqfast.cli.output import Form, Row, say, write
from rmqfast.cli.shared_options import Output, Topic
from rmqfast.cli.watch import watchable

LIST_COLUMNS = ("topic", "brokers", "read_queues", "write_queues", "perm")
OFFSET_COLUMNS = ("topic", "broker_name", "queue_id", "min_offset", "max_offset", "last_update_timestamp")

app: typer.Typer = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Topics of a cluster.")


@app.command("list")
@watchable
@reaches_cluster
def list_topics(
    *,
    access: Access,
    cluster: Cluster = None,
    every: Annotated[bool, typer.Option("--all", help="Include retry and dead-letter topics.")] = False,
    output: Output = Form.TABLE,
) -> None:
    """Prints the topics with their brokers and queues."""
    with administration(access) as admin:
        # Name servers also know the topics of brokers that do not answer.
        names = admin.topics.all(cluster=cluster)
        snapshot = admin.snapshot(cluster=cluster, tables=("topics",))
    by_name = {topic.topic: topic for topic in snapshot.topics}
    topics = [by_name.get(name, name) for name in names if every or not name.startswith("%")]
    write(output, LIST_COLUMNS, [[_topic_row(topic) for topic in topics]])
    say_problems(snapshot)


def _topic_row(topic: TopicSummary | str) -> Row:
    """Returns the columns of a topic. Of one of which no broker tells, only its name is known."""
    if isinstance(topic, str):
        return [topic, *[None] * (len(LIST_COLUMNS) - 1)]
    return [topic.topic, list(topic.brokers), topic.read_queues, topic.write_queues, topic.perm]


@app.command()
@watchable
@reaches_cluster
def show(topic: Topic, *, access: Access, output: Output = Form.TABLE) -> None:
    """Prints the queues of a topic with their offsets."""
    with administration(access) as admin:
        write_values(output, OFFSET_COLUMNS, admin.topics.status(topic))


@app.command()
@watchable
@reaches_cluster
def groups(topic: Topic, *, access: Access, output: Output = Form.TABLE) -> None:
    """Prints the groups that consume a topic or have consumed it, with their backlog in it."""
    with administration(access) as admin:
        admin.topics.route(topic)  # an error for a topic that does not exist
        snapshot = admin.snapshot(tables=("topics", "groups", "progress"), members=True, unread=True)
    write_groups(output, snapshot.groups_of(topic))
    say_problems(snapshot)


@app.command()
@reaches_cluster
def producers(
    topic: Topic,
    *,
    group: Annotated[str, typer.Option(help="The producer group.")],
    access: Access,
    output: Output = Form.TABLE,
) -> None:
    """Prints the online producers of a group, as one of the topic's brokers knows them."""
    with administration(access) as admin:
        write_values(output, CONNECTION_COLUMNS, admin.groups.producer_connections(group, topic))


@app.command()
@reaches_cluster
def create(
    topic: Topic,
    *,
    queues: Annotated[int, typer.Option(min=1, help="Queues per broker.")] = 4,
    read_queues: Annotated[
        int | None, typer.Option(min=1, help="Queues that consumers see. Default: --queues.")
    ] = None,
    perm: Annotated[int, typer.Option(min=0, max=7, help="Sum of 4 (read), 2 (write), 1 (inherit).")] = 6,
    broker: Annotated[list[str] | None, typer.Option(help="Only on this broker; repeatable.")] = None,
    access: Access,
    cluster: Cluster = None,
) -> None:
    """Creates a topic on all masters, or sets its queues and permissions."""
    with administration(access) as admin:
        admin.create_topic(
            topic, queues, read_queues=read_queues, perm=perm, cluster=cluster, broker_names=broker or None
        )


@app.command()
@reaches_cluster
def delete(topic: Topic, *, access: Access, cluster: Cluster = None, yes: Yes = False) -> None:
    """Deletes a topic with its messages. Exit code 1: not deleted without --yes."""
    with administration(access) as admin:
        # First, since brokers report success when they delete a topic that does not exist.
        stats = admin.topics.status(topic)
        if yes:
            admin.topics.delete(topic, cluster=cluster)
            return
    messages = sum(row.max_offset - row.min_offset for row in stats)
    say(f"nothing was changed: {topic} has {messages} messages in {len(stats)} queues; --yes removes it")
    raise typer.Exit(1)
