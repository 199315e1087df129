"""`rmqfast consume`: prints messages as a member of a group."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated

import typer

from rmqfast.cli.cluster_access import Access, reaches_cluster, unknown_topic
from rmqfast.cli.completion import complete_group
from rmqfast.cli.endings import end_on_signals
from rmqfast.cli.output import Form, Row, chosen_columns, write
from rmqfast.cli.shared_options import Output, SqlOption, Tags, Topic
from rmqfast.client.consumer import ConsumeFromWhere, MessageSelector
from rmqfast.client.lite_pull import LitePullConsumer, LitePullOptions
from rmqfast.errors import ClientError, ResponseError
from rmqfast.remoting import ResponseCode

# Short, since the end of `idle` is only checked between two polls.
POLL_SECONDS = 0.5
BATCH = 32
#: Seconds in which a new member gets queues, if there are any for it.
JOIN_SECONDS = 30.0


class Beginning(StrEnum):
    """The position at which a group without offsets starts."""

    FIRST = "first"
    LAST = "last"


BEGINNINGS = {
    Beginning.FIRST: ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    Beginning.LAST: ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
}


@reaches_cluster
def consume(
    topic: Topic,
    *,
    group: Annotated[
        str, typer.Option(help="The consumer group: its members share the messages.", autocompletion=complete_group)
    ],
    tags: Tags = "*",
    sql: SqlOption = None,
    beginning: Annotated[Beginning, typer.Option("--from", help="Start of a new group.")] = Beginning.LAST,
    most: Annotated[int | None, typer.Option("--max", min=1, help="Stop after this many messages.")] = None,
    idle: Annotated[float | None, typer.Option(min=0, help="Stop after this many seconds without a message.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for a topic that does not exist yet.")] = False,
    columns: Annotated[str | None, typer.Option(help="Columns, as topic,tags,body; a table shows a few.")] = None,
    access: Access,
    output: Output = Form.TABLE,
) -> None:
    """Prints messages as they arrive, until Ctrl-C or SIGTERM. The group resumes behind the printed ones."""
    names = chosen_columns(columns, output)
    # If messages are counted, pull them one by one, since a pull is committed as a whole.
    size = BATCH if most is None else 1
    # Without auto-commit, since messages count as consumed only after they were printed.
    options = LitePullOptions(auto_commit=False, pull_batch_size=size, consume_from_where=BEGINNINGS[beginning])
    consumer = LitePullConsumer(group, config=access.config(), options=options)
    consumer.subscribe(topic, tags if sql is None else MessageSelector.by_sql(sql))
    with end_on_signals(), consumer:
        _look_in(consumer, topic, is_awaited=wait)
        write(output, names, _batches(consumer, names, most, idle), whole=columns is not None)


def _look_in(consumer: LitePullConsumer, topic: str, *, is_awaited: bool) -> None:
    """Requests the group's offsets first, so that an error ends the command. The consumer would retry forever.

    Raises:
        RemotingError: A server refuses the account.
        ClientError: The topic does not exist and is not awaited, no name server answers, or a broker does not return
            an offset of the group.
    """
    try:
        queues = consumer.fetch_message_queues(topic)
    except ClientError as error:
        refusal = error.__cause__
        if not isinstance(refusal, ResponseError):
            raise
        if refusal.code != ResponseCode.TOPIC_NOT_EXIST:
            raise refusal from None
        if not is_awaited:
            raise unknown_topic(topic, "--wait waits for it") from None
        return
    # One queue suffices to see whether brokers answer.
    for queue in queues[:1]:
        try:
            consumer.offset_for_timestamp(queue, 0)
        except ClientError as error:
            if error.__cause__ is not None:
                raise
            # The queue has no master now; its slave serves messages and offsets of groups.
        consumer.committed(queue)


def _batches(
    consumer: LitePullConsumer, columns: Sequence[str], most: int | None, idle: float | None
) -> Iterator[list[Row]]:
    """Yields the rows of each pull. They are written before the next pull is taken."""
    count, last = 0, time.monotonic()
    patience = last + JOIN_SECONDS
    while most is None or count < most:
        messages = consumer.poll(POLL_SECONDS)
        if messages:
            rows = [message.to_message_ext() for message in messages]
            yield [[_plain(getattr(row, column)) for column in columns] for row in rows]
            # Commit only now that the rows have been written.
            consumer.commit_sync()
            count, last = count + len(messages), time.monotonic()
        elif not consumer.assignment and time.monotonic() < patience:
            last = time.monotonic()  # without queues there can be no messages
        elif idle is not None and time.monotonic() - last >= idle:
            return


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else value
