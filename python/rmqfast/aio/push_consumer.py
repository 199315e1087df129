"""Is given messages.

Source: `DefaultMQPushConsumer`.
"""

from __future__ import annotations

from typing import Any, Final

from rmqfast.aio import calls
from rmqfast.aio.awaited import Shown, as_of, awaited, made_as
from rmqfast.aio.calls import Calls
from rmqfast.aio.on_loop import OnLoop
from rmqfast.arguments import suggests_names
from rmqfast.client import push as blocking
from rmqfast.client.push import ConcurrentListener, OrderlyListener, PushOptions
from rmqfast.client.push.consume_status import is_in_order
from rmqfast.errors import ArgumentError
from rmqfast.pickling import not_picklable


@suggests_names
@not_picklable("make one in each process")
class PushConsumer:
    """Has a listener called with messages, as they come.

    A message is done when the listener says so: where it raises, whatever it raises, or answers anything but a status,
    the message comes once more, later; after 16 times it is a dead letter. A listener that is `async def` runs on the
    loop, as many calls at a time as `consume_thread_min` says: each keeps one of the consumer's threads waiting. A
    plain function runs on such a thread.

    It is made as `rmqfast.PushConsumer` is.

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

    Source: `DefaultMQPushConsumer`.
    """

    @made_as(blocking.PushConsumer)
    def __init__(self, *args: Any, **named: Any) -> None:
        self._twin = blocking.PushConsumer(*args, **named)
        self._calls = Calls(self, self._twin)

    start: Final = calls.start
    shutdown: Final = calls.shutdown
    __aenter__: Final = calls.enter
    __aexit__: Final = calls.leave
    __del__: Final = calls.drop
    group: Shown[str] = Shown(blocking.PushConsumer, lambda twin: twin.group)
    client_id: Shown[str] = Shown(blocking.PushConsumer, lambda twin: twin.client_id)
    subscribe: Final = awaited(blocking.PushConsumer.subscribe)
    unsubscribe: Final = awaited(blocking.PushConsumer.unsubscribe)
    suspend: Final = awaited(blocking.PushConsumer.suspend)
    resume: Final = awaited(blocking.PushConsumer.resume)
    update_consume_offset: Final = awaited(blocking.PushConsumer.update_consume_offset)
    fetch_subscribe_message_queues: Final = awaited(blocking.PushConsumer.fetch_subscribe_message_queues)
    register_consume_hook: Final = awaited(blocking.PushConsumer.register_consume_hook)
    register_filter_hook: Final = awaited(blocking.PushConsumer.register_filter_hook)
    running_info: Final = awaited(blocking.PushConsumer.running_info)

    @property
    def options(self) -> PushOptions:
        """How it consumes."""
        return self._twin.options

    @as_of(blocking.PushConsumer.register_message_listener)
    async def register_message_listener(
        self, listener: ConcurrentListener | OrderlyListener, *, orderly: bool | None = None
    ) -> None:
        """Says what is called with messages; before the start. The listener may be `async def`."""
        loop = self._calls.here()
        if not callable(listener):
            raise ArgumentError(f"listener: expected something to call, got {listener!r}")
        in_order = is_in_order(listener) if orderly is None else orderly
        self._twin.register_message_listener(OnLoop(listener, loop, self._calls.leave), orderly=in_order)
