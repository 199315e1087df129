"""`rmqfast group`: consumer groups of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NoReturn

import typer

from rmqfast.admin import Admin, Explanation, OffsetChange, SubscriptionFacts
from rmqfast.admin.offsets import END
from rmqfast.cells import time_text
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
from rmqfast.cli.completion import complete_group
from rmqfast.cli.group_rows import write_groups
from rmqfast.cli.output import Form, Row, print_json, say, write
from rmqfast.cli.shared_options import EndTime, Group, Output, StartTime, Topic
from rmqfast.cli.watch import watchable
from rmqfast.errors import ArgumentError, ClientError, RemotingError, ResponseError, UnknownMessageError
from rmqfast.message import MessageQueue
from rmqfast.store import milliseconds

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
    """Prints the groups with their online members, their backlog in messages and in time, and conflicts.

    A conflict is a topic to which members subscribe differently, which loses messages.
    """
    with administration(access) as admin:
        snapshot = admin.snapshot(tables=("topics", "groups", "progress"), members=True, unread=True)
    write_groups(output, snapshot.groups)
    say_problems(snapshot)


@app.command()
@watchable
@reaches_cluster
def show(group: Group, *, access: Access, output: Output = Form.TABLE) -> None:
    """Prints progress, owner and subscriptions of a group, queue by queue.

    JSON has all of it, JSON lines and CSV have the queues. Exit code 1: members subscribe differently, or messages
    expired before the group had passed them.
    """
    with administration(access) as admin:
        # Before members are asked: those that do not answer keep threads of RocketMQ's brokers busy.
        times = _times(admin, group)
        explanation = admin.explain(group)
        queues = _queue_rows(explanation, times)
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
    if explanation.next_step is not None:
        say(f"next: {explanation.next_step}")
    if explanation.has_problem:
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


@app.command("stacks")
@reaches_cluster
def stacks_of_members(
    group: Group,
    *,
    member: Annotated[str | None, typer.Option(help="Only of this client id.")] = None,
    access: Access,
    output: Output = Form.TABLE,
) -> None:
    """Prints what the threads of a group's members do right now, as the members tell it.

    Exit code 1: a member does not answer.
    """
    with administration(access) as admin:
        infos = admin.groups.running_infos(group, jstack=True)
    if member is not None:
        if member not in infos:
            raise ClientError(f"no member {member} of {group} is online", next_step=f"online are {', '.join(infos)}")
        infos = {member: infos[member]}
    stacks = {name: None if isinstance(info, RemotingError) else info.jstack for name, info in infos.items()}
    if output is Form.TABLE:
        for name, stack in stacks.items():
            print(f"{name}\n{stack.strip()}\n" if stack else f"{name}: tells no stack\n")
    else:
        write(output, ("member", "stack"), [[list(row) for row in stacks.items()]])
    for name, info in infos.items():
        if isinstance(info, RemotingError):
            say(f"{name}: {info}")
    if not all(stacks.values()):
        raise typer.Exit(1)


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


@app.command()
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
        # nothing records the old offsets: show them before they are gone
        changes = admin.offsets.preview(group, topic, when)
    time = to if position is not None else time_text(when)
    _refuse(output, changes, f"{group} is {_behind(changes)} messages behind in {topic}; --yes sets it to {time}")


@app.command()
@reaches_cluster
def skip(group: Group, topic: Topic, *, access: Access, yes: Yes = False, output: Output = Form.TABLE) -> None:
    """Skips the backlog of a group in a topic. Online members switch within ten seconds.

    Exit code 1: not changed without --yes.
    """
    with administration(access) as admin:
        if yes:
            _write(output, admin.offsets.reset_to_end(group, topic))
            return
        changes = admin.offsets.preview(group, topic, END)
    _refuse(output, changes, f"{group} is {_behind(changes)} messages behind in {topic}; --yes leaves them out")


@app.command()
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
        changes = admin.offsets.preview_clone(source, target, topic)
    _refuse(output, changes, f"--yes sets {target} to the offsets of {source} in {len(changes)} queues of {topic}")


CHANGE_COLUMNS = ("topic", "broker_name", "queue_id", "before", "after", "again", "skipped")


def _refuse(output: Form, changes: Sequence[OffsetChange], what: str) -> NoReturn:
    """Prints what a change would do, queue by queue, and ends with exit code 1."""
    rows = [
        [*_place(each.queue), each.before, each.after, each.again, each.skipped]
        for each in sorted(changes, key=lambda each: each.queue)
    ]
    write(output, CHANGE_COLUMNS, [rows])
    say(f"nothing was changed: {what}")
    raise typer.Exit(1)


def _place(queue: MessageQueue) -> Row:
    return [queue.topic, queue.broker_name, queue.queue_id]


def _behind(changes: Sequence[OffsetChange]) -> int:
    return sum(each.behind for each in changes)


def _write(output: Form, offsets: Mapping[MessageQueue, int]) -> None:
    rows = [[*_place(queue), offset] for queue, offset in sorted(offsets.items())]
    write(output, ("topic", "broker_name", "queue_id", "consumer_offset"), [rows])


LETTER_COLUMNS = (
    "origin_topic",
    "msg_id",
    "reconsume_times",
    "store_timestamp",
    "broker_name",
    "queue_id",
    "queue_offset",
    "tags",
    "keys",
    "body",
)
RESENT_COLUMNS = ("origin_topic", "msg_id", "topic", "broker_name", "queue_id", "queue_offset")


@app.command("dead-letters")
@reaches_cluster
def dead_letters(
    group: Group,
    *,
    most: Annotated[int, typer.Option("--max", min=1, help="Limit.")] = 64,
    start_time: StartTime = None,
    end_time: EndTime = None,
    access: Access,
    output: Output = Form.TABLE,
) -> None:
    """Prints the dead letters of a group, the oldest of each broker first, with those already resent."""
    with administration(access) as admin:
        messages = _letters_of(admin, group, most, start_time, end_time)
    letters = [each.to_message_ext() for each in messages]  # the body of such a message may be None
    rows = [[_origin(each), *(getattr(each, column) for column in LETTER_COLUMNS[1:])] for each in letters]
    write(output, LETTER_COLUMNS, [rows])


@app.command()
@reaches_cluster
def resend(
    group: Group,
    *,
    message_id: Annotated[list[str] | None, typer.Option("--id", help="Only this message; repeatable.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All dead letters.")] = False,
    start_time: StartTime = None,
    end_time: EndTime = None,
    access: Access,
    yes: Yes = False,
    output: Output = Form.TABLE,
) -> None:
    """Resends dead letters to their group only, through its retry topic.

    Dead letters stay where they are: if you resend all of them twice, they are consumed twice. Exit code 1: not resent
    without --yes.
    """
    # Exactly one of the two options is allowed.
    if every == bool(message_id):
        raise ArgumentError("expected --id or --all, got both or neither of them")
    with administration(access) as admin:
        letters = _letters_of(admin, group, None, start_time, end_time)
        if message_id:
            letters = _with_ids(letters, group, message_id)
        if yes:
            write(output, RESENT_COLUMNS, _resend_each(admin, letters))
            return
    say(f"nothing was changed: --yes has {group} consume {len(letters)} dead letters once more")
    raise typer.Exit(1)


def _letters_of(admin: Admin, group: str, most: int | None, start_time: str | None, end_time: str | None) -> list[Any]:
    times = {"begin_timestamp": milliseconds(start_time)}
    end = milliseconds(end_time)
    # RocketMQ's end is inclusive, but --end-time is exclusive, as in `store scan`.
    times["end_timestamp"] = None if end is None else end - 1
    bounds = {name: time for name, time in times.items() if time is not None}
    return admin.dead_letters.of_group(group, max_messages=most, **bounds)


def _with_ids(letters: list[Any], group: str, ids: list[str]) -> list[Any]:
    # An id may be the producer's or the broker's.
    selection = [each for each in letters if each.msg_id in ids or each.offset_msg_id in ids]
    unknown = set(ids) - {name for each in selection for name in (each.msg_id, each.offset_msg_id)}
    if unknown:
        names = ", ".join(sorted(unknown))
        step = "`rmqfast group dead-letters` lists them"
        raise UnknownMessageError(f"no dead letter of {group} has the id {names}: {step}")
    return selection


def _resend_each(admin: Admin, letters: list[Any]) -> Iterator[list[Row]]:
    """Yields a row for each letter after sending it, so that the rows before an error are printed."""
    for letter in letters:
        result = admin.dead_letters.resend(letter)
        queue = result.queue
        yield [[_origin(letter), result.msg_id, queue.topic, queue.broker_name, queue.queue_id, result.queue_offset]]


def _origin(letter: Any) -> str | None:
    topic: str | None = letter.properties.get("RETRY_TOPIC")
    return topic
