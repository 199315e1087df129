"""`rmqfast message` and `rmqfast explain`: single messages of a cluster, and their fate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from rmqfast.admin import Admin, Explanation
from rmqfast.cells import one_line
from rmqfast.cli.cluster_access import Access, administration, reaches_cluster, write_values
from rmqfast.cli.completion import complete_group, complete_topic
from rmqfast.cli.output import Form, Row, print_json, say, write, write_messages
from rmqfast.cli.shared_options import PATH, Output
from rmqfast.client.trace import TRACE_TOPIC
from rmqfast.errors import ArgumentError
from rmqfast.message import MessageQueue

Id = Annotated[str | None, typer.Option("--id", help="The broker's id, or with --topic the producer's.")]
Topic = Annotated[str | None, typer.Option(help="The topic.", autocompletion=complete_topic)]
Broker = Annotated[str | None, typer.Option(help="Name of the broker, if the topic has several.")]
Queue = Annotated[int | None, typer.Option(help="The queue, with --topic.")]
Offset = Annotated[int | None, typer.Option(help="Queue offset of the message, with --queue.")]

app: typer.Typer = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Single messages of a cluster.")


@app.command()
@reaches_cluster
def show(
    *,
    message_id: Id = None,
    topic: Topic = None,
    key: Annotated[str | None, typer.Option(help="A key, with --topic.")] = None,
    broker: Broker = None,
    queue: Queue = None,
    offset: Offset = None,
    access: Access,
    output: Output = Form.TABLE,
) -> None:
    """Prints messages in full: by id, by key, or by place. Exit code 1: there is none."""
    with administration(access) as admin:
        if key is not None and topic is not None:
            messages = admin.messages.by_key(topic, key)
        else:
            messages = [_message(admin, message_id, topic, (broker, queue, offset))]
    if not messages:
        say(f"no message of {topic} has the key {key}")
        raise typer.Exit(1)
    write_messages(output, [message.to_message_ext() for message in messages])


@app.command()
@reaches_cluster
def track(
    *,
    message_id: Id = None,
    topic: Topic = None,
    broker: Broker = None,
    queue: Queue = None,
    offset: Offset = None,
    access: Access,
    output: Output = Form.TABLE,
) -> None:
    """Prints the fate of a message in each group, as mqadmin does; `rmqfast explain` tells more."""
    with administration(access) as admin:
        tracks = admin.messages.track(_message(admin, message_id, topic, (broker, queue, offset)))
    write_values(output, ("group", "track_type", "description"), tracks)


@app.command()
@reaches_cluster
def trace(
    message_id: Annotated[str, typer.Argument(metavar="ID", help="The producer's id of the message.")],
    *,
    trace_topic: Annotated[str, typer.Option(help="The trace topic.")] = TRACE_TOPIC,
    access: Access,
    output: Output = Form.TABLE,
) -> None:
    """Prints the traces of a message: sent, consumed, durations. Exit code 1: there are none."""
    with administration(access) as admin:
        traces = admin.messages.trace(message_id, trace_topic=trace_topic)
    if not traces:
        say(f"no trace in {trace_topic} tells of the message {message_id}")
        raise typer.Exit(1)
    columns = ("trace_type", "group", "client_host", "timestamp", "cost_time", "status", "store_host", "return_type")
    write_values(output, columns, traces)


@app.command()
@reaches_cluster
def timeline(
    *,
    message_id: Id = None,
    topic: Topic = None,
    broker: Broker = None,
    queue: Queue = None,
    offset: Offset = None,
    group: Annotated[
        str | None, typer.Option(help="Only this group. Default: all groups.", autocompletion=complete_group)
    ] = None,
    access: Access,
    output: Output = Form.TABLE,
) -> None:
    """Prints what happened to a message, in order: sent, stored, handed out, sent back, dead; and its traces.

    Only our brokers tell who was handed a message; of RocketMQ's, traces do, where members write them.
    """
    with administration(access) as admin:
        message = _message(admin, message_id, topic, (broker, queue, offset))
        events = admin.messages.timeline(message, admin.explain(message, group))
    columns = ("event_timestamp", "kind", "group", "client", "text")
    write(output, columns, [[[each.timestamp, each.kind.value, each.group, each.client, each.text] for each in events]])


@reaches_cluster
def explain(
    *,
    message_id: Id = None,
    topic: Topic = None,
    broker: Broker = None,
    queue: Queue = None,
    offset: Offset = None,
    group: Annotated[
        str | None,
        typer.Option(help="Only this group; alone, the group is explained.", autocompletion=complete_group),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What `rmqfast watch` has kept, for a message.", parser=PATH),
    ] = None,
    access: Access,
    output: Output = Form.TABLE,
) -> None:
    """Explains the fate of a message, or the state of a queue or a group.

    A message: --id, or --topic, --queue and --offset. A queue: --topic and --queue. A group: --group. JSON has all
    facts; JSON lines and CSV have the outcomes. An outcome "as sampled" comes from --history, and is no proof. Exit
    code 1: something is wrong, as a message that is lost, skipped, expired or a dead letter, members that subscribe
    differently, or it is unknown whether a message was processed.
    """
    with administration(access) as admin:
        what = _subject(admin, message_id, topic, (broker, queue, offset), group)
        explanation = admin.explain(what, group, history=history)
    _write(output, explanation)
    if explanation.has_problem:
        raise typer.Exit(1)


Place = tuple[str | None, int | None, int | None]


def _subject(admin: Admin, message_id: str | None, topic: str | None, place: Place, group: str | None) -> Any:
    broker, queue, offset = place
    if message_id is None and topic is None and group is not None:
        return group
    if message_id is None and topic is not None and queue is not None and offset is None:
        return _queue(admin, topic, broker, queue)
    return _message(admin, message_id, topic, (broker, queue, offset))


def _message(admin: Admin, message_id: str | None, topic: str | None, place: Place) -> Any:
    broker, queue, offset = place
    if message_id is not None:
        return admin.view_message(message_id, topic)
    if topic is None or queue is None or offset is None:
        raise ArgumentError("expected --id, or --topic, --queue and --offset")
    return admin.messages.by_offset(_queue(admin, topic, broker, queue), offset)


def _queue(admin: Admin, topic: str, broker: str | None, queue_id: int) -> MessageQueue:
    names = sorted(data.broker_name for data in admin.topics.route(topic).queue_datas)
    if broker is None and len(names) != 1:
        raise ArgumentError(f"expected --broker, as the topic {topic} is on {', '.join(names)}")
    return MessageQueue(topic, broker or names[0], queue_id)


def _write(form: Form, explanation: Explanation) -> None:
    if form is Form.TABLE:
        for line in str(explanation).splitlines():
            # Keep the indentation, but escape control characters in names.
            print(line[: len(line) - len(line.lstrip())] + one_line(line.lstrip()))
    elif form is Form.JSON:
        print_json(_plain(explanation))
    else:
        rows: list[Row] = [
            [
                part.subject,
                part.group and part.group.group,
                part.outcome and part.outcome.value,
                list(part.sentences),
                part.next_step,
                part.sampled is not None,
            ]
            for part in (explanation.parts or (explanation,))
        ]
        write(form, ("subject", "group", "outcome", "sentences", "next_step", "is_sampled"), [rows])


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    return value
