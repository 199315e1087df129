"""Sends messages, and awaits what becomes of them.

Source: `DefaultMQProducer`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rmqfast.aio import calls
from rmqfast.aio.calls import Calls, OnEnd
from rmqfast.aio.turns import Turns
from rmqfast.aio.twin import ForwardedProperty, awaitable, documented_like, with_signature_of
from rmqfast.arguments import Duration, seconds, suggests_names
from rmqfast.client import producer as blocking
from rmqfast.client.consumer import MessageView
from rmqfast.client.instance import ServiceState
from rmqfast.client.producer import OnReply, ProducerOptions, QueueSelector, SendCallback, SendResult, select_by_hash
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

#: Sends that wait for a route, a connection or room at a time; further ones wait for a thread.
_SENDERS = 4
#: Bytes of bodies beyond which a message is prepared on a thread: to compress so many takes milliseconds.
LARGE = 32 << 10
#: Sends that begin in one turn of the loop: ten milliseconds or so.
_IN_A_TURN = 200


@suggests_names
@not_picklable("make one in each process")
class Producer:
    """Sends messages; the tasks of one loop may share it.

    A send takes no thread while it waits for its broker, and as many as `max_in_flight` of the options may be on their
    way; further ones wait for their turn, within their timeouts. Where a send is cancelled, nobody knows whether the
    message is stored, as with a timeout.

    It is made as `rmqfast.Producer` is.

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
        # who waits here keeps no other call from its thread
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
        """Sends a message; a selector is called on the loop, and must not wait."""
        self._calls.here()
        deadline = monotonic() + seconds("timeout", timeout)
        # the time of the send runs while it waits for its turn
        await self._turns.take()

        def begin() -> LoopSend:
            member = self._twin.member
            member.check_running()
            return member.sender.begin_send(message, queue, deadline - monotonic(), selector, argument)

        return await self._drive(await self._begun_send((message,), begin))

    @documented_like(blocking.Producer.send_ordered)
    async def send_ordered(self, message: Message, key: str | int, timeout: Duration = SEND_TIMEOUT) -> SendResult:
        """Sends a message to the queue of all with its key; in order are those that are awaited one by one."""
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
        """Begins `send`, whether it is awaited or not; a callback is called on the loop."""
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
        """Sends a message, and awaits what a consumer replies to it; no thread waits for that."""

        def begin(on_end: OnEnd[MessageView]) -> None:
            self._twin.request_async(message, on_end, queue, timeout, selector=selector, argument=argument)

        try:
            # always on a thread: it may have to wait for a route, a connection or room
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
        """Begins `request`, whether it is awaited or not; a callback is called on the loop."""
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
        """Sends several messages in one request to one queue: all of them are stored, or none."""
        self._calls.here()
        deadline = monotonic() + seconds("timeout", timeout)
        if isinstance(messages, Sequence):
            await self._turns.take()

        def begin() -> LoopSend:
            member = self._twin.member
            member.check_running()
            made = member.batches.one(messages, topic)
            shown = messages if isinstance(messages, Sequence) else ()
            return member.sender.begin_send(made, queue, deadline - monotonic(), messages=shown)

        return await self._drive(await self._begun_send(messages, begin))

    async def _begun_send(self, messages: Sequence[Message] | Frame, begin: Callable[[], LoopSend]) -> LoopSend:
        """A send, begun here where its topic is known and there is little to compress, otherwise on a thread."""
        member = self._twin.member
        if member.state is not ServiceState.RUNNING:
            return begin()  # which says so
        is_small = isinstance(messages, Sequence) and sum(len(message.body or b"") for message in messages) < LARGE
        if is_small and (not messages or member.sender.knows(messages[0].topic)):  # type: ignore[index]  # a sequence
            return begin()

        def prepare() -> LoopSend:
            send = begin()
            send.encode()
            return send

        return await self._calls.ask_on(self._senders, prepare)

    async def _drive(self, send: LoopSend) -> SendResult:
        """Makes attempts until one has stored the message; no thread waits for their ends."""
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
