"""The push consumer for asyncio.

Source: RocketMQ's `DefaultMQPushConsumer`.
"""

from __future__ import annotations

from typing import Any, Final

from rmqfast.aio import calls
from rmqfast.aio.calls import Calls
from rmqfast.aio.on_loop import OnLoop
from rmqfast.aio.twin import ForwardedProperty, awaitable, documented_like, with_signature_of
from rmqfast.arguments import suggests_names
from rmqfast.client import push as blocking
from rmqfast.client.push import ConcurrentListener, OrderlyListener, PushOptions
from rmqfast.client.push.consume_status import is_in_order
from rmqfast.errors import ArgumentError
from rmqfast.pickling import not_picklable


@suggests_names
@not_picklable("make one in each process")
class PushConsumer:
    """Calls a listener with messages as they arrive.

    Statuses and arguments are those of `rmqfast.PushConsumer`. An `async def` listener runs on the loop, in up to
    `consume_thread_min` calls at a time, each of which blocks a thread of the consumer. A plain function runs on such a
    thread.

    Example:
        >>> import asyncio
        >>> from rmqfast import EmbeddedCluster, Message
        >>> from rmqfast.aio.producer import Producer
        >>> from rmqfast.client.push import ConsumeConcurrentlyStatus
        >>> async def main(name_server):
        ...     seen = asyncio.Queue()
        ...
        ...     async def listen(messages, context):
        ...         for message in messages:
        ...             await seen.put(message.body)
        ...         return ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        ...
        ...     async with Producer("shop", name_server=name_server) as producer:
        ...         await producer.send(Message("orders", b"paid"))
        ...     consumer = PushConsumer("billing", name_server=name_server)
        ...     await consumer.subscribe("orders", "*")
        ...     await consumer.register_message_listener(listen)
        ...     async with consumer:
        ...         return await seen.get()
        >>> with EmbeddedCluster() as cluster:
        ...     asyncio.run(main(cluster.name_server))
        b'paid'
    """

    @with_signature_of(blocking.PushConsumer)
    def __init__(self, *args: Any, **named: Any) -> None:
        self._twin = blocking.PushConsumer(*args, **named)
        self._calls = Calls(self, self._twin)

    start: Final = calls.start
    shutdown: Final = calls.shutdown
    __aenter__: Final = calls.enter
    __aexit__: Final = calls.leave
    __del__: Final = calls.drop
    group: ForwardedProperty[str] = ForwardedProperty(blocking.PushConsumer, lambda twin: twin.group)
    client_id: ForwardedProperty[str] = ForwardedProperty(blocking.PushConsumer, lambda twin: twin.client_id)
    subscribe: Final = awaitable(blocking.PushConsumer.subscribe)
    unsubscribe: Final = awaitable(blocking.PushConsumer.unsubscribe)
    suspend: Final = awaitable(blocking.PushConsumer.suspend)
    resume: Final = awaitable(blocking.PushConsumer.resume)
    update_consume_offset: Final = awaitable(blocking.PushConsumer.update_consume_offset)
    fetch_subscribe_message_queues: Final = awaitable(blocking.PushConsumer.fetch_subscribe_message_queues)
    register_consume_hook: Final = awaitable(blocking.PushConsumer.register_consume_hook)
    register_filter_hook: Final = awaitable(blocking.PushConsumer.register_filter_hook)
    running_info: Final = awaitable(blocking.PushConsumer.running_info)

    @property
    def options(self) -> PushOptions:
        """The options of the consumer."""
        return self._twin.options

    @documented_like(blocking.PushConsumer.register_message_listener)
    async def register_message_listener(
        self, listener: ConcurrentListener | OrderlyListener, *, orderly: bool | None = None
    ) -> None:
        """Sets the listener, which may be `async def`. Must be called before `start`."""
        loop = self._calls.here()
        if not callable(listener):
            raise ArgumentError(f"listener: expected something to call, got {listener!r}")
        in_order = is_in_order(listener) if orderly is None else orderly
        self._twin.register_message_listener(OnLoop(listener, loop, self._calls.leave), orderly=in_order)
