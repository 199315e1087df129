"""Transactions: their states, who carries them out, and the thread on which brokers' questions are answered.

Source: `TransactionListener`, `LocalTransactionState`, `TransactionMQProducer.checkThreadPoolMinSize`.
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

#: Questions that may wait: `checkRequestHoldMax`.
MAX_WAITING = 2000
_END = None


class LocalTransactionState(StrEnum):
    """The end of a transaction.

    Example:
        >>> from rmqfast import EmbeddedCluster, LocalTransactionState, Message, TransactionProducer
        >>> class Booking:
        ...     def execute_local_transaction(self, message, argument):
        ...         is_paid = message.body == b"paid"
        ...         return LocalTransactionState.COMMIT_MESSAGE if is_paid else LocalTransactionState.ROLLBACK_MESSAGE
        ...
        ...     def check_local_transaction(self, message):
        ...         return LocalTransactionState.UNKNOWN  # the broker asks again
        >>> with EmbeddedCluster() as cluster:
        ...     with TransactionProducer("shop", Booking(), name_server=cluster.name_server) as producer:
        ...         for body in (b"paid", b"refused"):
        ...             producer.send_in_transaction(Message("orders", body)).local_state.value
        'COMMIT_MESSAGE'
        'ROLLBACK_MESSAGE'
    """

    COMMIT_MESSAGE = "COMMIT_MESSAGE"
    ROLLBACK_MESSAGE = "ROLLBACK_MESSAGE"
    UNKNOWN = "UNKNOW"

    @property
    def end(self) -> int:
        """The bits of the system flag that say so."""
        return _ENDS[self]


_ENDS = {
    LocalTransactionState.COMMIT_MESSAGE: 8,
    LocalTransactionState.ROLLBACK_MESSAGE: 12,
    LocalTransactionState.UNKNOWN: 0,
}


class TransactionListener(Protocol):
    """Carries a transaction out, and says later what became of it.

    What is returned is a `LocalTransactionState`; anything else, or an error, is UNKNOWN: the broker asks again.

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
        """Carries the transaction out; the message is stored, and nobody sees it yet.

        Args:
            message: As it was given to `send_in_transaction`, with `UNIQ_KEY` among its properties.
            argument: The second argument of `send_in_transaction`.
        """

    def check_local_transaction(self, message: Any) -> LocalTransactionState | None:
        """Says what became of a transaction, of this producer or another one of the group.

        It is called on a thread of its own.

        Args:
            message: As the broker has it: a `MessageExt`, its `transaction_id` is the id that the producer gave.
        """


class TransactionSendResult(NamedTuple):
    """The result of a send in a transaction.

    Attributes:
        send_result: How the send ended; its `transaction_id` is the id that the producer gave.
        local_state: How the transaction ended.

    Example:
        >>> from rmqfast import EmbeddedCluster, LocalTransactionState, Message, TransactionProducer
        >>> class Refusal:
        ...     def execute_local_transaction(self, message, argument):
        ...         return LocalTransactionState.ROLLBACK_MESSAGE
        ...
        ...     def check_local_transaction(self, message):
        ...         return LocalTransactionState.ROLLBACK_MESSAGE
        >>> with EmbeddedCluster() as cluster:
        ...     with TransactionProducer("shop", Refusal(), name_server=cluster.name_server) as producer:
        ...         result = producer.send_in_transaction(Message("orders", b"paid"))
        >>> result.send_result.status.value, result.local_state.value  # stored, and no consumer will see it
        ('SEND_OK', 'ROLLBACK_MESSAGE')
    """

    send_result: SendResult
    local_state: LocalTransactionState


class TransactionChecks:
    """A daemon thread that does one thing after the other; it starts with the first."""

    def __init__(self, name: str, max_waiting: int = MAX_WAITING) -> None:
        self._name, self._most = name, max_waiting
        self._waiting: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._lock = new_lock()
        self._is_closed = False

    def submit(self, work: Callable[[], object]) -> bool:
        """Has something done soon; whether there was room for it."""
        with self._lock:
            if self._is_closed:
                return False
            if self._thread is None:
                self._thread = new_thread(self._run, name=self._name)
                self._thread.start()
            if self._waiting.qsize() >= self._most:
                return False
            self._waiting.put(work)
        return True

    def close(self, timeout: float) -> None:
        """Ends the thread; what waits is dropped."""
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
        if not is_current(thread):
            thread.join(timeout)

    def _run(self) -> None:
        while (work := self._waiting.get()) is not _END:
            try:
                work()
            except Exception:  # noqa: BLE001 - the next question has to be answered, too
                _log.exception("a broker's question about a transaction could not be answered")
            del work
