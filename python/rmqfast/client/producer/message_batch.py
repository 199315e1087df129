"""Encodes several messages, or rows of Arrow batches, as one request.

Source: `MessageBatch.generateFromList`, `DefaultMQProducer.batch`, `Validators`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rmqfast._native import MessageEncoder, Outgoing, is_timed, name_problem
from rmqfast.client.instance.namespaces import wrap
from rmqfast.client.instance.validators import check_message
from rmqfast.client.producer.options import ProducerOptions
from rmqfast.errors import ArgumentTypeError, ClientError
from rmqfast.message import Message
from rmqfast.remoting import ResponseCode
from rmqfast.store.frames import Frame, arrow_rows, index_explained, messages_of

#: Default number of messages per batch.
BATCH_SIZE = 256
#: Upper bound of the bytes of a message in a batch besides its body and its own properties.
_GUESSED = 128
_RETRY_PREFIX = "%RETRY%"


class Batches:
    def __init__(self, encoder: MessageEncoder, namespace: str, options: ProducerOptions) -> None:
        self._encoder, self._namespace, self._options = encoder, namespace, options

    def one(self, messages: Sequence[Message] | Frame, topic: str | None) -> Outgoing:
        """Encodes all messages or rows into one batch."""
        if not isinstance(messages, Sequence):
            return one_batch_of(self.of_rows(messages, topic, sys.maxsize))
        self._check(messages)
        # the size is only known after encoding
        batch = self._encode(messages)
        check_batch_size(len(batch), self._options.max_message_size)
        return batch

    def many(
        self, messages: Sequence[Message] | Frame, topic: str | None, batch_size: int
    ) -> list[tuple[Outgoing, Sequence[Message]]]:
        """Encodes messages or rows as batches of up to `batch_size`. Returns each with its messages, or () for rows."""
        if not isinstance(messages, Sequence):
            return [(rows, ()) for rows in self.of_rows(messages, topic, batch_size)]
        self._check(messages)
        parts = parts_of(messages, self._options.max_message_size, batch_size)
        return [(self._encode(part), part) for part in parts]

    def of_rows(self, rows: Frame, topic: str | None, batch_size: int) -> list[Outgoing]:
        """Encodes rows as batches of one topic each, limited to `batch_size` messages and the maximum message size."""
        most = self._options.max_message_size
        batches = arrow_rows(rows)
        if batches is None:
            # raises for anything but messages
            messages_of(rows)
            got = type(rows).__name__
            raise ArgumentTypeError(f"messages: expected a sequence or a frame, got a {got}: write list(messages)")
        with index_explained(rows):
            return self._encoder.encode_rows(
                batches, topic, self._sendable_topic, most_bytes=most, most_count=batch_size
            )

    def _encode(self, messages: Sequence[Message]) -> Outgoing:
        first = messages[0]
        return self._encoder.encode_batch(list(messages), wrap(self._namespace, first.topic), first.wait_store)

    def _check(self, messages: Sequence[Message]) -> None:
        messages_of(messages)
        check_batch(messages)
        most = self._options.max_message_size
        for index, message in enumerate(messages):
            # all messages have the topic of the first
            if index == 0 or not 0 < len(message.body or b"") <= most:
                check_message(message, max_message_size=most)

    def _sendable_topic(self, topic: str) -> str:
        check_sendable_topic(topic)
        return wrap(self._namespace, topic)


def check_batch(messages: Sequence[Message]) -> None:
    """Raises an error unless all messages have the same topic and no message is delayed."""
    if not messages:
        raise _batch_error("expected messages, got none")
    first = messages[0]
    # the checks and their texts are Java's
    for message in messages:
        if message.delay_level > 0 or "DELAY" in message.properties:
            raise _batch_error("TimeDelayLevel is not supported for batching")
        # Java sends such a batch, and the broker delivers it without the delay
        if is_timed(message):
            raise _batch_error("a delay is not supported for batching, send each message by itself")
        if message.topic.startswith(_RETRY_PREFIX):
            raise _batch_error("Retry Group is not supported for batching")
        if message.topic != first.topic:
            raise _batch_error("The topic of the messages in one batch should be the same")
        if message.wait_store != first.wait_store:
            raise _batch_error("The waitStoreMsgOK of the messages in one batch should the same")


def check_batch_size(size: int, most: int) -> None:
    """Raises an error if a batch is too large."""
    if size > most:
        raise ClientError(
            f"the message body size over max value, MAX: {most}",
            response_code=ResponseCode.MESSAGE_ILLEGAL,
            next_step=f"the batch has {size} bytes: send it in several",
        )


def check_sendable_topic(topic: str) -> None:
    """Raises an error if the topic does not accept batches."""
    problem = name_problem("batch topic", topic)
    if problem is not None:
        raise ClientError(problem)


def one_batch_of(batches: Sequence[Outgoing]) -> Outgoing:
    """Returns the only batch. Raises an error if there is none, or more than one."""
    if not batches:
        raise _batch_error("expected messages, got none")
    if len({each.topic for each in batches}) > 1:
        raise _batch_error("The topic of the messages in one batch should be the same")
    if len(batches) > 1:
        raise ClientError(
            "the message body size over max value",
            response_code=ResponseCode.MESSAGE_ILLEGAL,
            next_step=f"the rows take {len(batches)} batches: send them with send_many",
        )
    return batches[0]


def parts_of(messages: Sequence[Message], most_bytes: int, most_count: int) -> list[list[Message]]:
    """Returns messages in lists of at most `most_count` messages and about `most_bytes` bytes, in order."""
    parts: list[list[Message]] = []
    # full, so that the first message starts a list
    size = most_bytes
    for message in messages:
        # UTF-8 needs at most four bytes per character
        added = len(message.body) + _GUESSED + sum(len(name) + 4 * len(value) for name, value in _texts(message))
        if size + added > most_bytes or len(parts[-1]) >= most_count:
            parts.append([])
            size = 0
        parts[-1].append(message)
        size += added
    return parts


def _texts(message: Message) -> list[tuple[str, str]]:
    named = [("TAGS", message.tags or ""), ("KEYS", message.keys or "")]
    return [*named, *message.properties.items()] if message.properties else named


def _batch_error(reason: str) -> ClientError:
    return ClientError(f"Failed to initiate the MessageBatch: {reason}")
