"""Several messages as one.

Source: `MessageBatch.generateFromList`, `DefaultMQProducer.batch`.
"""

from __future__ import annotations

from collections.abc import Sequence

from rmqfast._native import Outgoing
from rmqfast.client.instance.validators import check_message
from rmqfast.client.producer.timers import is_timed
from rmqfast.errors import ClientError
from rmqfast.message import Message
from rmqfast.remoting import ResponseCode

#: Messages of a batch, unless said otherwise.
BATCH_SIZE = 256
#: Bytes of a message in a batch besides its body and its own properties, or more.
_GUESSED = 128
_RETRY_PREFIX = "%RETRY%"


def check_batch(messages: Sequence[Message]) -> None:
    """Whether messages may be sent together: of one topic, none of them delayed.

    Raises:
        ClientError: They may not, or there are none.

    Example:
        >>> check_batch([])
        Traceback (most recent call last):
            ...
        rmqfast.errors.ClientError: Failed to initiate the MessageBatch: expected messages, got none

    Source: `MessageBatch.generateFromList`.
    """
    if not messages:
        raise _refused("expected messages, got none")
    first = messages[0]
    for message in messages:
        if message.delay_level > 0 or "DELAY" in message.properties:
            raise _refused("TimeDelayLevel is not supported for batching")
        if is_timed(message):  # Java sends it, and the broker delivers it at once
            raise _refused("a delay is not supported for batching, send each message by itself")
        if message.topic.startswith(_RETRY_PREFIX):
            raise _refused("Retry Group is not supported for batching")
        if message.topic != first.topic:
            raise _refused("The topic of the messages in one batch should be the same")
        if message.wait_store != first.wait_store:
            raise _refused("The waitStoreMsgOK of the messages in one batch should the same")


def check_batch_size(size: int, most: int) -> None:
    """Whether a batch is small enough.

    Raises:
        ClientError: It is not (13).

    Source: `Validators.checkMessage`.
    """
    if size > most:
        raise ClientError(
            f"the message body size over max value, MAX: {most}",
            response_code=ResponseCode.MESSAGE_ILLEGAL,
            next_step=f"the batch has {size} bytes: send it in several",
        )


def check_sendable_topic(topic: str) -> None:
    """Whether a batch may go to a topic.

    Raises:
        ClientError: It may not.
    """
    if topic.startswith(_RETRY_PREFIX):
        raise _refused("Retry Group is not supported for batching")
    check_message(Message(topic, b"any"), max_message_size=3)


def one_batch_of(batches: Sequence[Outgoing]) -> Outgoing:
    """The batch that rows are, where they are one.

    Raises:
        ClientError: There are no rows, or they cannot be sent together.

    Source: `MessageBatch.generateFromList`, `Validators.checkMessage`.
    """
    if not batches:
        raise _refused("expected messages, got none")
    if len({each.topic for each in batches}) > 1:
        raise _refused("The topic of the messages in one batch should be the same")
    if len(batches) > 1:
        raise ClientError(
            "the message body size over max value",
            response_code=ResponseCode.MESSAGE_ILLEGAL,
            next_step=f"the rows take {len(batches)} batches: send them with send_many",
        )
    return batches[0]


def parts_of(messages: Sequence[Message], most_bytes: int, most_count: int) -> list[list[Message]]:
    """Messages as lists that are small enough for a batch each, in their order.

    Args:
        messages: What is sent.
        most_bytes: Bytes of a batch; what its properties take is guessed.
        most_count: Messages of a batch.

    Example:
        >>> [len(part) for part in parts_of([Message("t", b"x" * 600)] * 5, 2000, 3)]
        [2, 2, 1]
    """
    parts: list[list[Message]] = []
    size = most_bytes
    for message in messages:
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


def _refused(reason: str) -> ClientError:
    return ClientError(f"Failed to initiate the MessageBatch: {reason}")
