"""`rmqfast group dead-letters` and `resend`: dead letters of a group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from rmqfast.admin import Admin
from rmqfast.cli.cluster_access import Access, Yes, administration, reaches_cluster
from rmqfast.cli.output import Form, Row, say, write
from rmqfast.cli.shared_options import EndTime, Group, Output, StartTime
from rmqfast.errors import ArgumentError, UnknownMessageError
from rmqfast.store import milliseconds

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
