"""Transactions: their states, their listener, and the thread that answers the check-backs of brokers.

Source: `TransactionListener`, `LocalTransactionState`, `TransactionMQProducer.checkThreadPoolMinSize`,
`TransactionSendResult`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from rmqfast.client.producer.send_result import SendResult
from rmqfast.logs import logger_of
from rmqfast.message import Message
from rmqfast.threads import Empty, SimpleQueue, Thread, is_current, new_lock, new_thread

_log = logger_of(__name__)

#: Maximum number of queued checks: `checkRequestHoldMax`.
MAX_WAITING = 2000
_END = None


class LocalTransactionState(StrEnum):
    """The state of a transaction: committed, rolled back or unknown."""

    COMMIT_MESSAGE = "COMMIT_MESSAGE"
    ROLLBACK_MESSAGE = "ROLLBACK_MESSAGE"
    # misspelled as in RocketMQ
    UNKNOWN = "UNKNOW"

    @property
    def end(self) -> int:
        """The bits of a message's system flag that end a transaction in this state."""
        return _ENDS[self]


# transaction types of RocketMQ's MessageSysFlag
_ENDS = {
    LocalTransactionState.COMMIT_MESSAGE: 8,
    LocalTransactionState.ROLLBACK_MESSAGE: 12,
    LocalTransactionState.UNKNOWN: 0,
}


class TransactionListener(Protocol):
    """Executes transactions, and later tells their state when a broker asks.

    Any return value but a `LocalTransactionState`, and any exception, counts as UNKNOWN: the broker asks again.

    Example:
        >>> from rmqfast import EmbeddedCluster, LocalTransactionState, Message, TransactionProducer
        >>> booked = set()
        >>> class Booking:
        ...     def execute_local_transaction(self, message, argument):
        ...         booked.add(message.keys)
        ...         return LocalTransactionState.COMMIT_MESSAGE
        ...
        ...     def check_local_transaction(self, message):
        ...         is_booked = message.keys in booked
        ...         return LocalTransactionState.COMMIT_MESSAGE if is_booked else LocalTransactionState.ROLLBACK_MESSAGE
        >>> with EmbeddedCluster() as cluster:
        ...     with TransactionProducer("shop", Booking(), name_server=cluster.name_server) as producer:
        ...         sent = producer.send_in_transaction(Message("orders", b"paid", keys="42"))
        >>> sent.local_state.value, booked
        ('COMMIT_MESSAGE', {'42'})
    """

    def execute_local_transaction(self, message: Message, argument: Any) -> LocalTransactionState | None:
        """Executes the transaction and returns its state. The message is stored, but consumers do not see it yet.

        Args:
            message: The message passed to `send_in_transaction`, with a property `UNIQ_KEY`.
            argument: The argument passed to `send_in_transaction`.
        """

    def check_local_transaction(self, message: Any) -> LocalTransactionState | None:
        """Returns the state of a transaction, which another producer may have begun. Called on a separate thread.

        Args:
            message: The half message, a `MessageExt` whose `transaction_id` is the producer's message id.
        """


class TransactionSendResult(NamedTuple):
    """The result of a send in a transaction.

    Attributes:
        send_result: The result of the send; its `transaction_id` is the producer's message id.
        local_state: The state of the transaction.
    """

    send_result: SendResult
    local_state: LocalTransactionState


class TransactionChecks:
    """A daemon thread that runs tasks in order. The first task starts it."""

    def __init__(self, name: str, max_waiting: int = MAX_WAITING) -> None:
        self._name, self._most = name, max_waiting
        self._waiting: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._lock = new_lock()
        self._is_closed = False

    def submit(self, work: Callable[[], object]) -> bool:
        """Adds a task to the queue. Returns False if the queue is full."""
        with self._lock:
            if self._is_closed:
                return False
            if self._thread is None:
                self._thread = new_thread(self._run, name=self._name)
                self._thread.start()
            # the broker will ask again
            if self._waiting.qsize() >= self._most:
                return False
            self._waiting.put(work)
        return True

    def close(self, timeout: float) -> None:
        """Ends the thread. Tasks that have not begun are dropped."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
        if thread is None:
            return
        while not self._waiting.empty():
            try:
                self._waiting.get_nowait()
            except Empty:
                break
        self._waiting.put(_END)
        # a listener may shut its producer down
        if not is_current(thread):
            thread.join(timeout)

    def _run(self) -> None:
        while (work := self._waiting.get()) is not _END:
            try:
                work()
            except Exception:  # noqa: BLE001 - later checks must still be answered
                _log.exception("a broker's question about a transaction could not be answered")
            # it holds the message, which must not be kept alive
            del work
