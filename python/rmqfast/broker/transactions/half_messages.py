"""Reads and stores half messages, and the operation messages that mark them as ended.

Source: RocketMQ's `TransactionalMessageBridge`, `EndTransactionProcessor`,
`DefaultTransactionalMessageCheckListener`, `AdminBrokerProcessor`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rmqfast.broker.messages.appending import Append, status_of
from rmqfast.broker.messages.stored_message import (
    TRANSACTION_COMMIT,
    TRANSACTION_MASK,
    QueueRead,
    StoredMessage,
    in_map_order,
    message_at,
    read_queue,
)
from rmqfast.broker.topics.topic_manager import HALF_TOPIC, OP_TOPIC, TRANS_CHECK_MAX_TIME_TOPIC
from rmqfast.errors import FlushTimeoutError, RmqError
from rmqfast.logs import logger_of
from rmqfast.message import Message
from rmqfast.remoting.rate_limit import limited
from rmqfast.store import LiveStore
from rmqfast.store.writer import AppendResult

_log = limited(logger_of(__name__))

#: Tag of an operation message, whose body is the queue offset of the ended half message.
REMOVE_TAG = "d"
CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"


class HalfMessages:
    """The queues of half messages and of operation messages."""

    def __init__(self, live: LiveStore, append: Append, *, store_host: str, now: Callable[[], int]) -> None:
        self._live = live
        self._append = append
        self._store_host = store_host
        self._now = now

    def find(self, physical_offset: int) -> StoredMessage | None:
        """Returns the half message at a physical offset. None if there is none."""
        message = message_at(self._live, physical_offset)
        # RocketMQ accepts any message here, but only half messages have a target.
        return message if message is not None and message.topic == HALF_TOPIC and has_target(message) else None

    def read(self, topic: str, queue_id: int, offset: int, count: int) -> QueueRead:
        return read_queue(self._live, topic, queue_id, offset, count)

    def low(self, topic: str, queue_id: int) -> int:
        return self._live.queue_bounds(topic, queue_id)[0]

    def commit(self, half: StoredMessage) -> None:
        """Stores the message of a half message in its target topic, with the same properties. Consumers see it then."""
        topic, queue_id = half.properties["REAL_TOPIC"], int(half.properties["REAL_QID"])
        self._append(
            half.message(topic, queue_id, in_map_order(half.properties)),
            born_host=half.born_host,
            sys_flag=half.sys_flag & ~TRANSACTION_MASK | TRANSACTION_COMMIT,
            reconsume_times=half.reconsume_times,
            prepared_transaction_offset=half.physical_offset,
        )

    def remove(self, half: StoredMessage) -> None:
        """Marks a half message as ended, by storing an operation message.

        A failure is only logged, as in RocketMQ, since the next check returns to the half message.
        """
        properties = in_map_order({"TAGS": REMOVE_TAG, "WAIT": "true"})
        body = str(half.queue_offset).encode()
        message = Message(OP_TOPIC, body, properties=properties, queue_id=half.queue_id, born_timestamp=self._now())
        try:
            self._append(message, born_host=self._store_host)
        except RmqError as error:
            _log.error("no operation message for half message %d: %s", half.queue_offset, status_of(error))

    def put_back(self, half: StoredMessage, properties: Mapping[str, str]) -> AppendResult:
        """Stores a half message again, at its queue's end. Returns its location. Flag and reconsume times are lost.

        Raises:
            RmqError: The message is not stored, or, for `FlushTimeoutError`, not on disk in time.
        """
        message = half.message(half.topic, half.queue_id, in_map_order(properties), flag=0)
        return self._append(message, born_host=half.born_host, sys_flag=half.sys_flag)

    def give_up(self, half: StoredMessage, properties: Mapping[str, str]) -> bool:
        """Copies a half message to a topic for operators, to give it up. Returns whether the copy is stored."""
        return self._copy(half, TRANS_CHECK_MAX_TIME_TOPIC, properties)

    def resume(self, given_up: StoredMessage) -> bool:
        """Puts back a half message that was given up, with its count of checks reset. Returns whether it is stored."""
        return self._copy(given_up, HALF_TOPIC, dict(given_up.properties) | {CHECK_TIMES: "0"})

    def _copy(self, message: StoredMessage, topic: str, properties: Mapping[str, str]) -> bool:
        try:
            self._append(
                message.message(topic, 0, in_map_order(properties)),
                born_host=message.born_host,
                sys_flag=message.sys_flag,
                reconsume_times=message.reconsume_times,
            )
        except FlushTimeoutError as error:
            _log.warning("a message of %s is stored, but not yet on the disk: %s", topic, error)
        except RmqError as error:
            _log.error("no message put to %s: %s: %s", topic, status_of(error), error)
            return False
        return True


def has_target(message: StoredMessage) -> bool:
    queue_id = message.properties.get("REAL_QID", "")
    return bool(message.properties.get("REAL_TOPIC")) and queue_id.isascii() and queue_id.isdigit()
