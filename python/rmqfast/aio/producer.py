"""The producer for asyncio.

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
        """Sends a message. A selector is called on the loop, and must not block."""
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
            made = member.batches.one(messages, topic)
            shown = messages if isinstance(messages, Sequence) else ()
            return member.sender.begin_send(made, queue, deadline - monotonic(), messages=shown)

        return await self._drive(await self._begun_send(messages, begin))

    async def _begun_send(self, messages: Sequence[Message] | Frame, begin: Callable[[], LoopSend]) -> LoopSend:
        """Starts a send. Uses a thread if the topic is unknown or if there is much to compress, otherwise the loop."""
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
        """Awaits attempts until the message is stored, without occupying a thread."""
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
