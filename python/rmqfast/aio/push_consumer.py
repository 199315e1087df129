"""Is given messages.

Source: `DefaultMQPushConsumer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rmqfast.aio.awaited import awaited
from rmqfast.aio.member import Member
from rmqfast.aio.on_loop import OnLoop
from rmqfast.client import push as blocking
from rmqfast.client.instance import ClientConfig
from rmqfast.client.instance.config import DEFAULT_INSTANCE_NAME
from rmqfast.client.push import ConcurrentListener, OrderlyListener, PushOptions, PushTimings
from rmqfast.client.push.consume_status import is_in_order
from rmqfast.errors import ArgumentError


class PushConsumer(Member[blocking.PushConsumer]):
    """Has a listener called with messages, as they come.

    A message is done when the listener says so: where it raises, whatever it raises, or answers anything but a status,
    the message comes once more, later; after 16 times it is a dead letter. A listener that is `async def` runs on the
    loop, as many calls at a time as `consume_thread_min` says: each keeps one of the consumer's threads waiting. A
    plain function runs on such a thread.

    Args:
        group: The consumer group: its members share the messages.
        name_server: `host:port`, several separated by `;`; unless given, that of `config`, or the environment's
            `NAMESRV_ADDR`.
        instance_name: Sets clients of one process apart.
        namespace: Stands before the names of topics and groups.
        config: Everything else about the cluster: TLS, accounts, timers.
        options: How to consume.
        timings: What to wait for.
        enable_msg_trace: Whether traces tell what becomes of its messages; `Admin.messages.trace` reads them.
        customized_trace_topic: The topic of traces; `RMQ_SYS_TRACE_TOPIC` unless given.
        changed: Single ones of the options, as `consume_thread_min=4`.

    Raises:
        ArgumentError: An address without a port, or an option that there is not.

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

    def __init__(
        self,
        group: str,
        *,
        name_server: str | Sequence[str] | None = None,
        instance_name: str = DEFAULT_INSTANCE_NAME,
        namespace: str = "",
        config: ClientConfig | None = None,
        options: PushOptions | None = None,
        timings: PushTimings | None = None,
        enable_msg_trace: bool = False,
        customized_trace_topic: str | None = None,
        **changed: Any,
    ) -> None:
        super().__init__(
            blocking.PushConsumer(
                group,
                name_server=name_server,
                instance_name=instance_name,
                namespace=namespace,
                config=config,
                options=options,
                timings=timings,
                enable_msg_trace=enable_msg_trace,
                customized_trace_topic=customized_trace_topic,
                **changed,
            )
        )

    subscribe = awaited(blocking.PushConsumer.subscribe)
    unsubscribe = awaited(blocking.PushConsumer.unsubscribe)
    suspend = awaited(blocking.PushConsumer.suspend)
    resume = awaited(blocking.PushConsumer.resume)
    update_consume_offset = awaited(blocking.PushConsumer.update_consume_offset)
    fetch_subscribe_message_queues = awaited(blocking.PushConsumer.fetch_subscribe_message_queues)
    register_consume_hook = awaited(blocking.PushConsumer.register_consume_hook)
    register_filter_hook = awaited(blocking.PushConsumer.register_filter_hook)
    running_info = awaited(blocking.PushConsumer.running_info)

    @property
    def options(self) -> PushOptions:
        """How it consumes."""
        return self._twin.options

    async def register_message_listener(
        self, listener: ConcurrentListener | OrderlyListener, *, orderly: bool | None = None
    ) -> None:
        """Says what is called with messages; before the start.

        Args:
            listener: A function, `async def` or plain, that is called with a tuple of messages and a context. In any
                order, many calls at a time, it answers a `ConsumeConcurrentlyStatus`; in order, one call at a time for
                each queue, a `ConsumeOrderlyStatus`.
            orderly: Whether each queue is consumed in order; unless given, where the listener is marked by `in_order`.

        Raises:
            ArgumentError: It cannot be called.

        Source: `DefaultMQPushConsumer.registerMessageListener`.
        """
        loop = self._here()
        if not callable(listener):
            raise ArgumentError(f"listener: expected something to call, got {listener!r}")
        in_order = is_in_order(listener) if orderly is None else orderly
        self._twin.register_message_listener(OnLoop(listener, loop), orderly=in_order)
