"""Sends messages that nobody sees before a transaction has ended well.

Source: `TransactionMQProducer`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

from rmqfast.aio.awaited import as_of, awaited
from rmqfast.aio.calls import Calls
from rmqfast.aio.on_loop import OnLoop
from rmqfast.aio.producer import Producer
from rmqfast.arguments import Duration, suggests_names
from rmqfast.client import producer as blocking
from rmqfast.client.instance import ClientConfig
from rmqfast.client.instance.config import DEFAULT_INSTANCE_NAME
from rmqfast.client.producer import LocalTransactionState, ProducerOptions, TransactionSendResult
from rmqfast.client.producer.producer import SEND_TIMEOUT
from rmqfast.message import Message
from rmqfast.pickling import not_picklable

#: Transactions of one producer that are carried out at a time; further ones wait for a thread.
TRANSACTIONS_AT_A_TIME = 16


class TransactionListener(Protocol):
    """Carries a transaction out, and says later what became of it: `rmqfast.TransactionListener`, its methods `async`.

    They may be plain functions, too; those are called on a thread.

    Example:
        >>> import asyncio
        >>> from rmqfast import EmbeddedCluster, LocalTransactionState, Message, aio
        >>> class Booking:
        ...     async def execute_local_transaction(self, message, argument):
        ...         await asyncio.sleep(0)  # the database is asked here
        ...         return LocalTransactionState.COMMIT_MESSAGE
        ...
        ...     async def check_local_transaction(self, message):
        ...         return LocalTransactionState.COMMIT_MESSAGE
        >>> async def sent(name_server):
        ...     async with aio.TransactionProducer("shop", Booking(), name_server=name_server) as producer:
        ...         return await producer.send_in_transaction(Message("orders", b"paid"))
        >>> with EmbeddedCluster() as cluster:
        ...     asyncio.run(sent(cluster.name_server)).local_state.value
        'COMMIT_MESSAGE'
    """

    def execute_local_transaction(
        self, message: Message, argument: Any
    ) -> Awaitable[LocalTransactionState | None] | LocalTransactionState | None:
        """Carries the transaction out; the message is stored, and nobody sees it yet."""

    def check_local_transaction(
        self, message: Any
    ) -> Awaitable[LocalTransactionState | None] | LocalTransactionState | None:
        """Says what became of a transaction, of this producer or another one of the group."""


@suggests_names
@not_picklable("make one in each process")
class TransactionProducer(Producer):
    """Sends messages that consumers see once a transaction was committed.

    It is made as `rmqfast.TransactionProducer` is; methods of the listener may be `async def`.

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

    Source: `TransactionMQProducer`.
    """

    def __init__(
        self,
        group: str,
        listener: TransactionListener,
        *,
        name_server: str | Sequence[str] | None = None,
        instance_name: str = DEFAULT_INSTANCE_NAME,
        namespace: str = "",
        config: ClientConfig | None = None,
        options: ProducerOptions | None = None,
        enable_msg_trace: bool = False,
        customized_trace_topic: str | None = None,
    ) -> None:
        self._listener = _ListenerOfTwin(listener)
        self._transactional = blocking.TransactionProducer(
            group,
            self._listener,
            name_server=name_server,
            instance_name=instance_name,
            namespace=namespace,
            config=config,
            options=options,
            enable_msg_trace=enable_msg_trace,
            customized_trace_topic=customized_trace_topic,
        )
        self._use(self._transactional)
        self._listener.calls = self._calls
        self._transactions = self._calls.pool(TRANSACTIONS_AT_A_TIME)

    @property
    def listener(self) -> TransactionListener:
        """Carries transactions out, and says what became of them."""
        return self._listener.listener

    @listener.setter
    def listener(self, listener: TransactionListener) -> None:
        self._listener.listener = listener

    register_end_transaction_hook: Final = awaited(blocking.TransactionProducer.register_end_transaction_hook)

    @as_of(blocking.TransactionProducer.send_in_transaction)
    async def send_in_transaction(
        self, message: Message, argument: Any = None, timeout: Duration = SEND_TIMEOUT
    ) -> TransactionSendResult:
        """Stores a message, has the listener carry the transaction out, and tells the broker how it ended.

        Where this is cancelled, the transaction goes on.
        """
        send = self._transactional.send_in_transaction
        return await self._calls.ask_on(self._transactions, send, message, argument, timeout)


class _ListenerOfTwin:
    """Calls a listener from the twin's threads; they must not keep the client."""

    calls: Calls

    def __init__(self, listener: TransactionListener) -> None:
        self.listener: TransactionListener = listener

    def execute_local_transaction(self, message: Message, argument: Any) -> Any:
        """Carries the transaction out."""
        return self._called(self.listener.execute_local_transaction, message, argument)

    def check_local_transaction(self, message: Any) -> Any:
        """Says what became of a transaction."""
        return self._called(self.listener.check_local_transaction, message)

    def _called(self, method: Callable[..., Any], *args: Any) -> Any:
        if self.calls.loop is None:
            raise RuntimeError("it was not started")
        return OnLoop(method, self.calls.loop)(*args)
