"""The producers for asyncio.

Source: RocketMQ's `DefaultMQProducer`, `TransactionMQProducer`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, Unpack

from rmqfast.aio import calls
from rmqfast.aio.calls import Calls, OnEnd
from rmqfast.aio.on_loop import OnLoop
from rmqfast.aio.twin import ForwardedProperty, awaitable, documented_like, with_signature_of
from rmqfast.arguments import Duration, seconds, suggests_names
from rmqfast.client import producer as blocking
from rmqfast.client.consumer import MessageView
from rmqfast.client.instance import ServiceState, TracedClientArguments
from rmqfast.client.producer import (
    LocalTransactionState,
    OnReply,
    ProducerOptions,
    QueueSelector,
    SendCallback,
    SendResult,
    TransactionSendResult,
    select_by_hash,
)
from rmqfast.client.producer.member import LoopSend
from rmqfast.client.producer.producer import SEND_TIMEOUT
from rmqfast.client.producer.requests import not_replied
from rmqfast.errors import ClientError, RemotingError, RequestTimeoutError, RmqError
from rmqfast.message import Message, MessageQueue
from rmqfast.pickling import not_picklable
from rmqfast.store.frames import Frame
from rmqfast.system import monotonic

if TYPE_CHECKING:
    import asyncio


class Turns:
    """Lets up to `most` tasks continue per iteration of the loop. Others wait for later iterations, in order."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_next_due = False

    async def take(self) -> None:
        """Waits for an iteration of the loop in which fewer than `most` tasks have continued."""
        loop = asyncio.get_running_loop()
        if not self._is_next_due:
            self._is_next_due = True
            # runs in the next iteration of the loop
            loop.call_soon(self._next)
        if self._left > 0:
            self._left -= 1
            return
        waiting: asyncio.Future[None] = loop.create_future()
        self._waiting.append(waiting)
        await waiting

    def _next(self) -> None:
        self._left = self._most
        while self._waiting and self._left > 0:
            waiting = self._waiting.popleft()
            # a cancelled waiter is done
            if not waiting.done():
                waiting.set_result(None)
                self._left -= 1
        # stops when nothing started in this iteration
        self._is_next_due = self._left < self._most
        if self._is_next_due:
            asyncio.get_running_loop().call_soon(self._next)


#: Maximum sends that concurrently wait for a route, a connection or capacity; further sends wait for a thread.
_SENDERS = 4
#: Body bytes from which a message is encoded on a thread, because compression takes milliseconds.
LARGE = 32 << 10
#: Maximum sends that start in one iteration of the loop, about ten milliseconds.
_IN_A_TURN = 200


@suggests_names
@not_picklable("make one in each process")
class Producer:
    """Sends messages. Tasks of one event loop may share it.

    Sends in flight occupy no threads; at most `max_in_flight` of the options are in flight, and further sends wait
    within their timeouts. A message whose send was cancelled may be stored, as after a timeout.

    Its arguments are those of `rmqfast.Producer`.

    Example:
        >>> import asyncio, rmqfast
        >>> async def main(name_server):
        ...     async with Producer("shop", name_server=name_server) as producer:
        ...         sends = [producer.send(rmqfast.Message("orders", b"%d" % n)) for n in range(100)]
        ...         return {result.status.value for result in await asyncio.gather(*sends)}
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     asyncio.run(main(cluster.name_server))
        {'SEND_OK'}
    """

    @with_signature_of(blocking.Producer)
    def __init__(self, *args: Any, **named: Any) -> None:
        self._use(blocking.Producer(*args, **named))

    def _use(self, twin: blocking.Producer) -> None:
        self._twin, self._calls, self._turns = twin, Calls(self, twin), Turns(_IN_A_TURN)
        # a separate pool, so that waiting sends do not block other calls
        self._senders = self._calls.pool(_SENDERS)

    start: Final = calls.start
    shutdown: Final = calls.shutdown
    __aenter__: Final = calls.enter
    __aexit__: Final = calls.leave
    __del__: Final = calls.drop
    group: ForwardedProperty[str] = ForwardedProperty(blocking.Producer, lambda twin: twin.group)
    client_id: ForwardedProperty[str] = ForwardedProperty(blocking.Producer, lambda twin: twin.client_id)
    options: ForwardedProperty[ProducerOptions] = ForwardedProperty(blocking.Producer, lambda twin: twin.options)
    in_flight: ForwardedProperty[int] = ForwardedProperty(blocking.Producer, lambda twin: twin.in_flight)
    send_many: Final = awaitable(blocking.Producer.send_many)
    send_oneway: Final = awaitable(blocking.Producer.send_oneway)
    fetch_publish_message_queues: Final = awaitable(blocking.Producer.fetch_publish_message_queues)
    create_topic: Final = awaitable(blocking.Producer.create_topic)
    register_send_hook: Final = awaitable(blocking.Producer.register_send_hook)

    @documented_like(blocking.Producer.send)
    async def send(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        timeout: Duration = SEND_TIMEOUT,
        *,
        selector: QueueSelector | None = None,
        argument: Any = None,
    ) -> SendResult:
        """Sends a message and returns the result. A selector is called on the loop, and must not block."""
        self._calls.here()
        deadline = monotonic() + seconds("timeout", timeout)
        # the timeout includes the wait for a turn
        await self._turns.take()

        def begin() -> LoopSend:
            member = self._twin.member
            member.check_running()
            return member.sender.begin_send(message, queue, deadline - monotonic(), selector, argument)

        return await self._drive(await self._begun_send((message,), begin))

    @documented_like(blocking.Producer.send_ordered)
    async def send_ordered(self, message: Message, key: str | int, timeout: Duration = SEND_TIMEOUT) -> SendResult:
        """Sends a message to the queue of its key. The order is kept if each send is awaited before the next one."""
        return await self.send(message, timeout=timeout, selector=select_by_hash, argument=key)

    @documented_like(blocking.Producer.send_async)
    def send_async(
        self,
        message: Message,
        callback: SendCallback | None = None,
        queue: MessageQueue | None = None,
        timeout: Duration = SEND_TIMEOUT,
        *,
        selector: QueueSelector | None = None,
        argument: Any = None,
    ) -> asyncio.Task[SendResult]:
        """Starts `send` as a task. A callback is called on the loop."""
        begin = partial(self.send, message, queue, timeout, selector=selector, argument=argument)
        return self._calls.new_task(begin, callback)

    @documented_like(blocking.Producer.request)
    async def request(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        timeout: Duration = SEND_TIMEOUT,
        *,
        selector: QueueSelector | None = None,
        argument: Any = None,
    ) -> MessageView:
        """Sends a message and awaits a consumer's reply, without occupying a thread."""

        def begin(on_end: OnEnd[MessageView]) -> None:
            self._twin.request_async(message, on_end, queue, timeout, selector=selector, argument=argument)

        try:
            # always on a thread: it may wait for a route, a connection or capacity
            return await self._calls.wait_for_callback(lambda _: False, begin, self._senders)
        except RequestTimeoutError as error:
            raise not_replied(message.topic, seconds("timeout", timeout)) from error

    @documented_like(blocking.Producer.request_async)
    def request_async(
        self,
        message: Message,
        on_done: OnReply,
        queue: MessageQueue | None = None,
        timeout: Duration = SEND_TIMEOUT,
        *,
        selector: QueueSelector | None = None,
        argument: Any = None,
    ) -> asyncio.Task[MessageView]:
        """Starts `request` as a task. A callback is called on the loop."""
        begin = partial(self.request, message, queue, timeout, selector=selector, argument=argument)
        return self._calls.new_task(begin, on_done)

    @documented_like(blocking.Producer.send_batch)
    async def send_batch(
        self,
        messages: Sequence[Message] | Frame,
        queue: MessageQueue | None = None,
        timeout: Duration = SEND_TIMEOUT,
        *,
        topic: str | None = None,
    ) -> SendResult:
        """Sends several messages as one request to one queue: all are stored, or none."""
        self._calls.here()
        deadline = monotonic() + seconds("timeout", timeout)
        # rows are encoded on a thread, which limits them by itself
        if isinstance(messages, Sequence):
            await self._turns.take()

        def begin() -> LoopSend:
            member = self._twin.member
            member.check_running()
            batch = member.batches.one(messages, topic)
            shown = messages if isinstance(messages, Sequence) else ()
            return member.sender.begin_send(batch, queue, deadline - monotonic(), messages=shown)

        return await self._drive(await self._begun_send(messages, begin))

    async def _begun_send(self, messages: Sequence[Message] | Frame, begin: Callable[[], LoopSend]) -> LoopSend:
        """Starts and returns a send: on a thread for an unknown topic or much to compress, else on the loop."""
        member = self._twin.member
        if member.state is not ServiceState.RUNNING:
            # raises, because the producer is not running
            return begin()
        is_small = isinstance(messages, Sequence) and sum(len(message.body or b"") for message in messages) < LARGE
        if is_small and (not messages or member.sender.knows(messages[0].topic)):  # type: ignore[index]  # a sequence
            return begin()

        def prepare() -> LoopSend:
            send = begin()
            # compresses here, and not on the loop
            send.encode()
            return send

        return await self._calls.ask_on(self._senders, prepare)

    async def _drive(self, send: LoopSend) -> SendResult:
        """Awaits attempts until the message is stored, without occupying a thread. Returns the result."""
        while True:
            send.begin()
            end: SendResult | RmqError
            try:
                end = await self._calls.wait_for_callback(
                    lambda on_end: send.attempt(on_end, waits=False),
                    lambda on_end: send.attempt(on_end, waits=True),
                    self._senders,
                )
            except (RemotingError, ClientError) as error:
                end = error
            if not send.record(end):
                return send.result()


#: Maximum concurrent transactions of one producer; further transactions wait for a thread.
TRANSACTIONS_AT_A_TIME = 16


class TransactionListener(Protocol):
    """Executes local transactions and returns their states. Like `rmqfast.TransactionListener`.

    `async def` methods run on the loop, plain functions on a thread.
    """

    def execute_local_transaction(
        self, message: Message, argument: Any
    ) -> Awaitable[LocalTransactionState | None] | LocalTransactionState | None:
        """Executes the transaction and returns its state. The message is stored, but consumers do not see it yet."""

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
