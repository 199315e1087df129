"""Pulls queue by queue, from where its application says, and awaits what comes.

Source: `DefaultMQPullConsumer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rmqfast.aio import calls
from rmqfast.aio.awaited import Shown, as_of, awaited, made_as
from rmqfast.aio.calls import Calls, OnEnd
from rmqfast.aio.offset_store import OffsetStore
from rmqfast.aio.on_loop import told_later
from rmqfast.arguments import Duration, suggests_names
from rmqfast.client import pull as blocking
from rmqfast.client.consumer import MessageSelector
from rmqfast.client.pull import PullCallback, PullOptions, PullResult
from rmqfast.message import MessageQueue
from rmqfast.pickling import not_picklable

if TYPE_CHECKING:
    import asyncio


@suggests_names
@not_picklable("make one in each process")
class PullConsumer:
    """Pulls queue by queue, from where its application says; the tasks of one loop may share it.

    The application keeps the offsets: nothing is noted of what was pulled. `update_consume_offset` notes one in memory;
    every five seconds those of queues are stored that the rebalance gave to this member, and the others forgotten. Who
    drives queues by hand awaits `offset_store.update_to_broker(queue, offset, oneway=False)`. A pull takes no thread
    while it waits for its broker.

    It is made as `rmqfast.PullConsumer` is. A `message_queue_listener` is called on the loop; it may be `async def`.

    Example:
        >>> import asyncio, rmqfast
        >>> from rmqfast.aio.producer import Producer
        >>> async def main(name_server):
        ...     async with Producer("shop", name_server=name_server) as producer:
        ...         queue = (await producer.send(rmqfast.Message("orders", b"paid", tags="paid"))).queue
        ...     async with PullConsumer("books", name_server=name_server) as consumer:
        ...         result = await consumer.pull(queue, "paid || sent", 0, 32)
        ...         return result.status.value, [message.body for message in result.messages]
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     asyncio.run(main(cluster.name_server))
        ('FOUND', [b'paid'])

    Source: `DefaultMQPullConsumer`.
    """

    @made_as(blocking.PullConsumer)
    def __init__(self, *args: Any, options: PullOptions | None = None, **named: Any) -> None:
        self.options: Final = options or PullOptions()
        heard = told_later(lambda: calls_of_twin.loop, self.options.message_queue_listener)
        theirs = replace(self.options, message_queue_listener=heard)
        self._twin = blocking.PullConsumer(*args, options=theirs, **named)
        self._calls = calls_of_twin = Calls(self, self._twin)

    start: Final = calls.start
    shutdown: Final = calls.shutdown
    __aenter__: Final = calls.enter
    __aexit__: Final = calls.leave
    __del__: Final = calls.drop
    group: Shown[str] = Shown(blocking.PullConsumer, lambda twin: twin.group)
    client_id: Shown[str] = Shown(blocking.PullConsumer, lambda twin: twin.client_id)
    is_running: Shown[bool] = Shown(blocking.PullConsumer, lambda twin: twin.is_running)
    register_consume_hook: Final = awaited(blocking.PullConsumer.register_consume_hook)
    max_offset: Final = awaited(blocking.PullConsumer.max_offset)
    min_offset: Final = awaited(blocking.PullConsumer.min_offset)
    search_offset: Final = awaited(blocking.PullConsumer.search_offset)
    earliest_store_time: Final = awaited(blocking.PullConsumer.earliest_store_time)
    fetch_subscribe_message_queues: Final = awaited(blocking.PullConsumer.fetch_subscribe_message_queues)
    fetch_message_queues_in_balance: Final = awaited(blocking.PullConsumer.fetch_message_queues_in_balance)
    update_consume_offset: Final = awaited(blocking.PullConsumer.update_consume_offset)
    fetch_consume_offset: Final = awaited(blocking.PullConsumer.fetch_consume_offset)
    send_message_back: Final = awaited(blocking.PullConsumer.send_message_back)
    register_filter_hook: Final = awaited(blocking.PullConsumer.register_filter_hook)

    @property
    def offset_store(self) -> OffsetStore:
        """Where its offsets are kept; queues stand there with the namespace of their topics.

        Raises:
            ClientError: It is not running.
        """
        return OffsetStore(self._twin.offset_store, self._calls)

    @property
    def register_topics(self) -> frozenset[str]:
        """The topics whose queues are shared out among the members of the group; set before the start."""
        return self._twin.register_topics

    @register_topics.setter
    def register_topics(self, topics: Iterable[str]) -> None:
        self._twin.register_topics = topics

    @as_of(blocking.PullConsumer.pull)
    async def pull(
        self,
        queue: MessageQueue,
        expression: str | MessageSelector | None,
        offset: int,
        max_messages: int,
        timeout: Duration | None = None,
    ) -> PullResult:
        """Pulls, and awaits the answer."""
        pull = self._twin.pull_async
        return await self._pulled(
            queue, lambda on_end: pull(queue, expression, offset, max_messages, on_end, timeout=timeout)
        )

    @as_of(blocking.PullConsumer.pull_block_if_not_found)
    async def pull_block_if_not_found(
        self, queue: MessageQueue, expression: str | MessageSelector | None, offset: int, max_messages: int
    ) -> PullResult:
        """Pulls, and awaits the answer."""
        pull = self._twin.pull_block_if_not_found_async
        return await self._pulled(queue, lambda on_end: pull(queue, expression, offset, max_messages, on_end))

    def pull_async(  # noqa: PLR0917 - as Java has them
        self,
        queue: MessageQueue,
        expression: str | MessageSelector | None,
        offset: int,
        max_messages: int,
        callback: PullCallback | None = None,
        timeout: Duration | None = None,
    ) -> asyncio.Task[PullResult]:
        """Begins `pull`, whether it is awaited or not; a callback is called on the loop with the result or the error.

        Returns:
            What may be awaited.

        Source: `DefaultMQPullConsumer.pull` with a `PullCallback`.
        """
        return self._calls.begun(partial(self.pull, queue, expression, offset, max_messages, timeout), callback)

    def pull_block_if_not_found_async(
        self,
        queue: MessageQueue,
        expression: str | MessageSelector | None,
        offset: int,
        max_messages: int,
        callback: PullCallback | None = None,
    ) -> asyncio.Task[PullResult]:
        """Begins `pull_block_if_not_found`, whether it is awaited or not; as `pull_async`.

        Source: `DefaultMQPullConsumer.pullBlockIfNotFound` with a `PullCallback`.
        """
        return self._calls.begun(
            partial(self.pull_block_if_not_found, queue, expression, offset, max_messages), callback
        )

    async def _pulled(self, queue: MessageQueue, submit: Callable[[OnEnd[PullResult]], object]) -> PullResult:
        def begin(on_end: OnEnd[PullResult]) -> bool:
            # to connect to a broker, or to find it, takes a while: that is done on a thread
            if not self._twin.is_ready(queue):
                return False
            submit(on_end)
            return True

        return await self._calls.ended(begin, submit)
