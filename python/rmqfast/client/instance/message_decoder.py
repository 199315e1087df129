"""Messages that come in requests of brokers, as those that are pulled.

Source: `MessageDecoder.decode`.
"""

from __future__ import annotations

from rmqfast._native import MessageView, decode_pull
from rmqfast.errors import RemotingProtocolError


def decode_messages(records: bytes, broker_name: str | None) -> list[MessageView]:
    """The messages of an answer, in its order.

    Args:
        records: One behind the other, as they stand in the commit log.
        broker_name: The broker that has them.

    Raises:
        RemotingProtocolError: Bytes that are no record.
    """
    return decode_pull(records, broker_name=broker_name)


def decode_message(record: bytes, broker_name: str | None) -> MessageView:
    """The message that a record is.

    Args:
        record: As it stands in the commit log.
        broker_name: The broker that has it.

    Raises:
        RemotingProtocolError: It is none, or more than one.
    """
    messages = decode_messages(record, broker_name)
    if len(messages) != 1:
        raise RemotingProtocolError(f"expected a record of one message, got {len(messages)} in {len(record)} bytes")
    return messages[0]
