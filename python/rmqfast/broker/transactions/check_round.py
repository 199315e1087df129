"""One round of transaction checks of a queue: finds half messages that ended, and chooses the next step for the rest.

Source: RocketMQ's `TransactionalMessageServiceImpl`, `BrokerConfig`, `MessageStoreConfig`, `fillOpRemoveMap`,
`checkPrepareQueueOffset`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rmqfast.broker.messages.stored_message import QueueRead, StoredMessage
from rmqfast.broker.topics.topic_manager import HALF_TOPIC, OP_TOPIC
from rmqfast.broker.transactions.half_messages import (
    CHECK_TIMES,
    PREPARED_QUEUE_OFFSET,
    REMOVE_TAG,
    HalfMessages,
)
from rmqfast.logs import logger_of

_log = logger_of(__name__)

_IMMUNITY = "CHECK_IMMUNITY_TIME_IN_SECONDS"
#: Batch size of `TransactionalMessageServiceImpl.fillOpRemoveMap`.
_OPERATIONS_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class TransactionCheckOptions:
    """The limits of transaction checks.

    Attributes:
        timeout: Milliseconds until the first check of a half message (`transactionTimeOut`).
        max_checks: Number of checks after which a half message is given up (`transactionCheckMax`).
        reserved_hours: Age at which a half message is given up (`fileReservedTime`).
    """

    timeout: int = 6_000
    max_checks: int = 15
    reserved_hours: int = 72


class Step(Enum):
    GIVE_UP = "checked too often, or too old"
    WAIT = "so young that this one and all behind it are left alone"
    SPARE = "its producer asked for more time than others get"
    ASK = "its producer is to be asked"
    MORE_OPERATIONS = "its end may be among operation messages that were not read yet"


def next_step(half: StoredMessage, last_operation: int | None, start: int, options: TransactionCheckOptions) -> Step:
    """Returns the next step for a half message that has not ended.

    `last_operation` is the born time of the last operation message read; None if there are no more.
    """
    age = start - half.born_timestamp
    if is_spent(half, options) or age > options.reserved_hours * 3_600_000:
        return Step.GIVE_UP
    # Stored since the round began, so the next round checks it.
    if half.store_timestamp >= start:
        return Step.WAIT
    # A producer may set this time for a single message.
    own = half.properties.get(_IMMUNITY)
    immunity = options.timeout if own is None else _immunity(own, options.timeout)
    if own is None and 0 <= age < immunity:
        return Step.WAIT
    if own is not None and age < immunity and _number(half.properties.get(PREPARED_QUEUE_OFFSET, "0")) != -1:
        return Step.SPARE
    # As in 4.9.4: no operation is left and the half message is old enough, or the last operation is newer than the
    # round's start plus the timeout.
    is_over = age > immunity if last_operation is None else last_operation - start > options.timeout
    return Step.ASK if is_over or age < 0 else Step.MORE_OPERATIONS


def is_spent(half: StoredMessage, options: TransactionCheckOptions) -> bool:
    """Whether the producer of a half message was asked often enough."""
    times = half.properties.get(CHECK_TIMES)
    return times is not None and _number(times) >= options.max_checks


def with_check_counted(half: StoredMessage) -> dict[str, str]:
    """Returns the properties of a half message, with its number of checks increased by one."""
    times = half.properties.get(CHECK_TIMES)
    return dict(half.properties) | {CHECK_TIMES: "1" if times is None else str(_number(times) + 1)}


class CheckRound:
    """The state of one pass over a queue of half messages.

    Attributes:
        last_operation: Born time of the last operation message of the last batch; None if that was empty.
        op_offset: Offset of the next operation messages.
    """

    def __init__(self, half: HalfMessages, queue_id: int, half_offset: int, op_offset: int) -> None:
        self._half = half
        self._queue_id = queue_id
        self._half_offset = half_offset
        self._op_start = op_offset
        self._removed: dict[int, int] = {}
        self._done: list[int] = []
        self.op_offset: int = op_offset
        self.last_operation: int | None = None

    def read_operations(self) -> bool:
        """Reads the next operation messages. Returns whether there were any."""
        batch = self._read_operations_at(self.op_offset)
        if not batch.messages and not batch.is_at_end:
            # The first operation messages have expired. RocketMQ asks at once and finds the later ones in its next
            # round.
            if self.op_offset == self._op_start:
                self._op_start = batch.next_offset
            batch = self._read_operations_at(batch.next_offset)
        self.op_offset = batch.next_offset
        for operation in batch.messages:
            self._note(operation)
        self.last_operation = batch.messages[-1].born_timestamp if batch.messages else None
        return bool(batch.messages)

    def read_half(self, offset: int) -> QueueRead:
        """Returns the half message at an offset. If there is none, returns the next one after it."""
        return self._half.read(HALF_TOPIC, self._queue_id, offset, 1)

    def take_removed(self, half_offset: int) -> bool:
        """Returns whether an operation message ended the half message at this offset. Marks that operation as used."""
        operation = self._removed.pop(half_offset, None)
        if operation is not None:
            self._done.append(operation)
        return operation is not None

    def take_removed_before(self, half: StoredMessage) -> bool:
        """Whether the half message was already ended at its previous offset, before it was put back."""
        return self.take_removed(_number(half.properties.get(PREPARED_QUEUE_OFFSET, "-1")))

    def operations_done(self) -> int:
        """Returns the offset before which all operation messages were used."""
        completed, offset = set(self._done), self._op_start
        while offset in completed:
            offset += 1
        return offset

    def _read_operations_at(self, offset: int) -> QueueRead:
        return self._half.read(OP_TOPIC, self._queue_id, offset, _OPERATIONS_AT_ONCE)

    def _note(self, operation: StoredMessage) -> None:
        if operation.tags != REMOVE_TAG:
            _log.error("operation message %d has the tag %r", operation.queue_offset, operation.tags)
            return
        half_offset = _number(operation.body.decode(errors="replace"))
        # An earlier round has passed this half message.
        if half_offset < self._half_offset:
            self._done.append(operation.queue_offset)
        else:
            self._removed[half_offset] = operation.queue_offset


def _immunity(text: str, timeout: int) -> int:
    seconds = _number(text)
    return timeout if seconds == -1 else seconds * 1000


def _number(text: str) -> int:
    digits = text[1:] if text[:1] in {"-", "+"} else text
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 19 else -1
