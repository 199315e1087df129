"""`rmqfast produce`: sends messages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Annotated

import typer

from rmqfast.cli.cluster_access import Access, administration, reaches_cluster, unknown_topic
from rmqfast.cli.output import Form, Row, say, write
from rmqfast.cli.shared_options import Output, Topic, pairs
from rmqfast.client.instance.namespaces import wrap
from rmqfast.client.producer import Producer
from rmqfast.errors import ArgumentError, ResponseError, RmqError
from rmqfast.message import Message, MessageQueue
from rmqfast.remoting import ResponseCode

COLUMNS = ("topic", "broker_name", "queue_id", "queue_offset", "msg_id", "offset_msg_id", "status")


@reaches_cluster
def produce(
    topic: Topic,
    body: Annotated[list[str] | None, typer.Argument(metavar="BODY", help="One message each; - reads lines.")] = None,
    *,
    tags: Annotated[str | None, typer.Option(help="Tag of the messages.")] = None,
    key: Annotated[list[str] | None, typer.Option(help="Key of the messages; repeatable.")] = None,
    prop: Annotated[list[str] | None, typer.Option("--property", help="name=value; repeatable.")] = None,
    delay_level: Annotated[int, typer.Option(min=0, help="1 for one second, 2 for five, and so on.")] = 0,
    delay: Annotated[float | None, typer.Option(help="Seconds until delivery; brokers of 5.x only.")] = None,
    deliver_at: Annotated[str | None, typer.Option(help="Time of delivery, ISO 8601 (UTC); 5.x.")] = None,
    ordered: Annotated[str | None, typer.Option(help="Messages with the same text go to one queue.")] = None,
    broker: Annotated[str | None, typer.Option(help="Name of the broker, with --queue.")] = None,
    queue: Annotated[int | None, typer.Option(min=0, help="The queue, with --broker.")] = None,
    skip_blank: Annotated[
        bool, typer.Option("--skip-blank", help="Skip and count blank lines; otherwise each is an error.")
    ] = False,
    group: Annotated[str, typer.Option(help="The producer group.")] = "rmqfast_produce",
    create: Annotated[bool, typer.Option("--create", help="Create the topic if it does not exist.")] = False,
    access: Access,
    output: Output = Form.TABLE,
) -> None:
    """Sends messages, and prints where they are stored. If BODY is - or missing, each line of input is a message.

    A blank line is an error, which gives its number: a message of RocketMQ is never empty.
    """
    if (broker is None) != (queue is None):
        raise ArgumentError("expected --broker and --queue, got one of them")
    target = None if broker is None or queue is None else MessageQueue(topic, broker, queue)
    shape = {
        "tags": tags,
        "keys": key or None,
        "delay_level": delay_level,
        "delay": delay,
        "deliver_at": None if deliver_at is None else _moment(deliver_at),
        "properties": pairs("--property", prop or []),
    }

    def rows(producer: Producer) -> Iterator[list[Row]]:
        for where, text in _bodies(body, skip_blank=skip_blank):
            with _note_place(where):
                message = Message(topic, text, **shape)  # type: ignore[arg-type]
                result = producer.send(message, target) if ordered is None else producer.send_ordered(message, ordered)
            place = result.queue
            ids = (result.msg_id, result.offset_msg_id, result.status.value)
            yield [[place.topic, place.broker_name, place.queue_id, result.queue_offset, *ids]]

    with Producer(group, config=access.config()) as producer:
        _look_for_topic(producer, topic, access, create=create)
        chunks = rows(producer)
        try:
            write(output, COLUMNS, chunks)
        except BrokenPipeError:
            for _ in chunks:  # the reader stopped, but all given messages must be sent
                pass
            raise


def _look_for_topic(producer: Producer, topic: str, access: Access, *, create: bool) -> None:
    """Checks that the topic exists. A broker would create a topic even for a mistyped name. With --create, creates it.

    Raises:
        ClientError: The topic does not exist, and --create is missing.
        RemotingError: The name server does not answer.
    """
    instance = producer.member.instance
    try:
        instance.api.topic_route(wrap(instance.config.namespace, topic))
    except ResponseError as error:
        if error.code != ResponseCode.TOPIC_NOT_EXIST:
            raise
        if not create:
            raise unknown_topic(topic, "--create makes it") from None
        # An account may send but not create topics; then the first message creates the topic, if brokers allow it.
        with administration(access) as admin, suppress(ResponseError):
            admin.create_topic(topic)


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentError(f"--deliver-at: expected a time as 2026-01-31T12:00:00, got {text}") from None


def _input_lines() -> Iterator[bytes]:
    lines = iter(sys.stdin.buffer)
    while True:
        try:
            line = next(lines, None)
        except OSError as error:
            raise ArgumentError(f"standard input: expected lines, got {error.strerror}") from error
        if line is None:
            return
        yield line


def _bodies(texts: list[str] | None, *, skip_blank: bool) -> Iterator[tuple[str, bytes]]:
    """Yields the bodies. Each comes with its position, for error messages."""
    for number, text in enumerate(texts or ["-"], start=1):
        if text == "-":
            yield from _lines(skip_blank=skip_blank)
        else:
            # Bytes of the command line that are not UTF-8 are sent unchanged.
            yield f"BODY {number}", text.encode("utf-8", "surrogateescape")


def _lines(*, skip_blank: bool) -> Iterator[tuple[str, bytes]]:
    blank = 0
    for number, line in enumerate(_input_lines(), start=1):
        body = line.rstrip(b"\r\n")
        if not body and not skip_blank:
            error = ArgumentError(f"line {number} of standard input: expected a message, got a blank line")
            error.add_note("all lines before it were sent; --skip-blank passes over blank lines")
            raise error
        if not body:
            blank += 1
            continue
        yield f"line {number} of standard input", body
    if blank:
        say(f"{blank:,} blank lines were passed over")


@contextmanager
def _note_place(where: str) -> Iterator[None]:
    """Adds the position of the message to an error."""
    try:
        yield
    except RmqError as error:
        error.add_note(f"{where}; all messages before it were sent")
        raise
