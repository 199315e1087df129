"""The pull consumer for asyncio.

Source: RocketMQ's `DefaultMQPullConsumer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rmqfast.aio import calls
from rmqfast.aio.calls import Calls, OnEnd
from rmqfast.aio.offset_store import OffsetStore
from rmqfast.aio.on_loop import call_on
from rmqfast.aio.twin import ForwardedProperty, awaitable, documented_like, with_signature_of
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
    """Pulls from queues and offsets that the application chooses. Tasks of one event loop may share it.

    Offsets and arguments are those of `rmqfast.PullConsumer`. A waiting pull occupies no thread. A
    `message_queue_listener` is called on the loop, and may be `async def`.

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
    """

    @with_signature_of(blocking.PullConsumer)
    def __init__(self, *args: Any, options: PullOptions | None = None, **named: Any) -> None:
        self.options: Final = options or PullOptions()
        # the lambda must not refer to the client, which warns when it is garbage collected
        on_loop = call_on(lambda: calls_of_twin.loop, self.options.message_queue_listener)
        options_of_twin = replace(self.options, message_queue_listener=on_loop)
        self._twin = blocking.PullConsumer(*args, options=options_of_twin, **named)
        self._calls = calls_of_twin = Calls(self, self._twin)

    start: Final = calls.start
    shutdown: Final = calls.shutdown
    __aenter__: Final = calls.enter
    __aexit__: Final = calls.leave
    __del__: Final = calls.drop
    group: ForwardedProperty[str] = ForwardedProperty(blocking.PullConsumer, lambda twin: twin.group)
    client_id: ForwardedProperty[str] = ForwardedProperty(blocking.PullConsumer, lambda twin: twin.client_id)
    is_running: ForwardedProperty[bool] = ForwardedProperty(blocking.PullConsumer, lambda twin: twin.is_running)
    register_consume_hook: Final = awaitable(blocking.PullConsumer.register_consume_hook)
    max_offset: Final = awaitable(blocking.PullConsumer.max_offset)
    min_offset: Final = awaitable(blocking.PullConsumer.min_offset)
    search_offset: Final = awaitable(blocking.PullConsumer.search_offset)
    earliest_store_time: Final = awaitable(blocking.PullConsumer.earliest_store_time)
    running_info: Final = awaitable(blocking.PullConsumer.running_info)
    fetch_subscribe_message_queues: Final = awaitable(blocking.PullConsumer.fetch_subscribe_message_queues)
    fetch_message_queues_in_balance: Final = awaitable(blocking.PullConsumer.fetch_message_queues_in_balance)
    update_consume_offset: Final = awaitable(blocking.PullConsumer.update_consume_offset)
    fetch_consume_offset: Final = awaitable(blocking.PullConsumer.fetch_consume_offset)
    send_message_back: Final = awaitable(blocking.PullConsumer.send_message_back)
    register_filter_hook: Final = awaitable(blocking.PullConsumer.register_filter_hook)

    @property
    def offset_store(self) -> OffsetStore:
        """The store of the group's offsets. The topics of the queues in it include the namespace.

        Raises:
            ClientError: The consumer is not running.
        """
        return OffsetStore(self._twin.offset_store, self._calls)

    @property
    def register_topics(self) -> frozenset[str]:
        """The topics whose queues are distributed among the group's consumers. Set them before the start."""
        return self._twin.register_topics

    @register_topics.setter
    def register_topics(self, topics: Iterable[str]) -> None:
        self._twin.register_topics = topics

    @documented_like(blocking.PullConsumer.pull)
    async def pull(
        self,
        queue: MessageQueue,
        expression: str | MessageSelector | None,
        offset: int,
        max_messages: int,
        timeout: Duration | None = None,
    ) -> PullResult:
        """Pulls without long polling and awaits the answer."""
        pull = self._twin.pull_async
        return await self._wait_for(
            queue, lambda on_end: pull(queue, expression, offset, max_messages, on_end, timeout=timeout)
        )

    @documented_like(blocking.PullConsumer.pull_block_if_not_found)
    async def pull_block_if_not_found(
        self, queue: MessageQueue, expression: str | MessageSelector | None, offset: int, max_messages: int
    ) -> PullResult:
        """Pulls with long polling, and awaits the answer."""
        pull = self._twin.pull_block_if_not_found_async
        return await self._wait_for(queue, lambda on_end: pull(queue, expression, offset, max_messages, on_end))

    def pull_async(  # noqa: PLR0917 - as Java has them
        self,
        queue: MessageQueue,
        expression: str | MessageSelector | None,
        offset: int,
        max_messages: int,
        callback: PullCallback | None = None,
        timeout: Duration | None = None,
    ) -> asyncio.Task[PullResult]:
        """Starts `pull` as a task. A callback is called on the loop with the result or the error."""
        return self._calls.new_task(partial(self.pull, queue, expression, offset, max_messages, timeout), callback)

    def pull_block_if_not_found_async(
        self,
        queue: MessageQueue,
        expression: str | MessageSelector | None,
        offset: int,
        max_messages: int,
        callback: PullCallback | None = None,
    ) -> asyncio.Task[PullResult]:
        """Starts `pull_block_if_not_found` as a task, as `pull_async` does."""
        return self._calls.new_task(
            partial(self.pull_block_if_not_found, queue, expression, offset, max_messages), callback
        )

    async def _wait_for(self, queue: MessageQueue, submit: Callable[[OnEnd[PullResult]], object]) -> PullResult:
        def begin(on_end: OnEnd[PullResult]) -> bool:
            # on a thread, because the lookup of a broker and the connection block
            if not self._twin.is_ready(queue):
                return False
            submit(on_end)
            return True

        return await self._calls.wait_for_callback(begin, submit)
