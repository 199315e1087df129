"""The transaction producer for asyncio.

Source: RocketMQ's `TransactionMQProducer`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, Unpack

from rmqfast.aio.calls import Calls
from rmqfast.aio.on_loop import OnLoop
from rmqfast.aio.producer import Producer
from rmqfast.aio.twin import awaitable, documented_like
from rmqfast.arguments import Duration, suggests_names
from rmqfast.client import producer as blocking
from rmqfast.client.instance import TracedClientArguments
from rmqfast.client.producer import LocalTransactionState, ProducerOptions, TransactionSendResult
from rmqfast.client.producer.producer import SEND_TIMEOUT
from rmqfast.message import Message
from rmqfast.pickling import not_picklable

#: Maximum concurrent transactions of one producer; further transactions wait for a thread.
TRANSACTIONS_AT_A_TIME = 16


class TransactionListener(Protocol):
    """Executes local transactions and returns their states. Like `rmqfast.TransactionListener`.

    `async def` methods run on the loop, plain functions on a thread.
    """

    def execute_local_transaction(
        self, message: Message, argument: Any
    ) -> Awaitable[LocalTransactionState | None] | LocalTransactionState | None:
        """Executes the transaction. The message is stored, but consumers do not see it yet."""

    def check_local_transaction(
        self, message: Any
    ) -> Awaitable[LocalTransactionState | None] | LocalTransactionState | None:
        """Returns the state of a transaction. Another producer of the group may have begun it."""


@suggests_names
@not_picklable("make one in each process")
class TransactionProducer(Producer):
    """Sends messages that consumers only see after a transaction was committed.

    Its arguments are those of `rmqfast.TransactionProducer`; the listener's methods may be `async def`.

    Example:
        >>> import asyncio, rmqfast
        >>> class Bank:
        ...     async def execute_local_transaction(self, message, argument):
        ...         await asyncio.sleep(0.01)
        ...         return LocalTransactionState.COMMIT_MESSAGE
        ...
        ...     async def check_local_transaction(self, message):
        ...         return LocalTransactionState.ROLLBACK_MESSAGE
        >>> async def main(name_server):
        ...     async with TransactionProducer("bank", Bank(), name_server=name_server) as producer:
        ...         return await producer.send_in_transaction(Message("money", b"1 to B"))
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     asyncio.run(main(cluster.name_server)).local_state.value
        'COMMIT_MESSAGE'
    """

    def __init__(
        self,
        group: str,
        listener: TransactionListener,
        *,
        options: ProducerOptions | None = None,
        **arguments: Unpack[TracedClientArguments],
    ) -> None:
        self._listener = _ListenerOfTwin(listener)
        self._transactional = blocking.TransactionProducer(group, self._listener, options=options, **arguments)
        self._use(self._transactional)
        self._listener.calls = self._calls
        self._transactions = self._calls.pool(TRANSACTIONS_AT_A_TIME)

    @property
    def listener(self) -> TransactionListener:
        """The listener that executes and checks transactions."""
        return self._listener.listener

    @listener.setter
    def listener(self, listener: TransactionListener) -> None:
        self._listener.listener = listener

    register_end_transaction_hook: Final = awaitable(blocking.TransactionProducer.register_end_transaction_hook)

    @documented_like(blocking.TransactionProducer.send_in_transaction)
    async def send_in_transaction(
        self, message: Message, argument: Any = None, timeout: Duration = SEND_TIMEOUT
    ) -> TransactionSendResult:
        """Stores a message, executes the transaction and sends its state. Continues even if the task is cancelled."""
        send = self._transactional.send_in_transaction
        return await self._calls.ask_on(self._transactions, send, message, argument, timeout)


class _ListenerOfTwin:
    """Calls a listener on the threads of the blocking client. Has no reference to the asyncio client."""

    calls: Calls

    def __init__(self, listener: TransactionListener) -> None:
        self.listener: TransactionListener = listener

    def execute_local_transaction(self, message: Message, argument: Any) -> Any:
        return self._call(self.listener.execute_local_transaction, message, argument)

    def check_local_transaction(self, message: Any) -> Any:
        return self._call(self.listener.check_local_transaction, message)

    def _call(self, method: Callable[..., Any], *args: Any) -> Any:
        if self.calls.loop is None:
            raise RuntimeError("it was not started")
        return OnLoop(method, self.calls.loop)(*args)
