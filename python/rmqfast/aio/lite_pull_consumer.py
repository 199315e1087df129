"""The lite pull consumer for asyncio.

Source: RocketMQ's `DefaultLitePullConsumer`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from rmqfast.aio import calls
from rmqfast.aio.calls import Calls
from rmqfast.aio.offset_store import OffsetStore
from rmqfast.aio.on_loop import call_on
from rmqfast.aio.twin import ForwardedProperty, awaitable, documented_like, with_signature_of
from rmqfast.arguments import Duration, seconds, suggests_names
from rmqfast.client import lite_pull as blocking
from rmqfast.client.consumer import MessageView
from rmqfast.client.lite_pull import LitePullOptions, TopicMessageQueueChangeListener
from rmqfast.errors import ClientError
from rmqfast.message import MessageQueue
from rmqfast.pickling import not_picklable

T = TypeVar("T")


class Arrivals:
    """Wakes tasks when messages arrive. A task calls `listen`, looks for messages, and then awaits `wait`."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        # before the first `listen`, arrivals need no wake-up
        self._is_scheduled = True

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Starts recording arrivals for `wait`."""
        self._loop = loop
        self._event.clear()
        self._is_scheduled = False

    def notify(self) -> None:
        """Called on any thread when messages have arrived."""
        if self._is_scheduled or self._loop is None:
            return
        self._is_scheduled = True
        try:
            self._loop.call_soon_threadsafe(self._event.set)
        except RuntimeError:
            # the loop is closed, and no task waits
            return

    async def wait(self, deadline: float) -> bool:
        """Waits for an arrival since `listen`. Returns False if the loop's clock reaches `deadline` first."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._event.wait()
        except TimeoutError:
            return False
        return True


@suggests_names
@not_picklable("make one in each process")
class LitePullConsumer:
    """Pulls in the background; `poll` returns the messages. Tasks of one event loop may share it.

    Commits and arguments are those of `rmqfast.LitePullConsumer`. A waiting `poll` occupies no thread, and a cancelled
    `poll` loses no message. A `message_queue_listener` is called on the loop, and may be `async def`.

    Example:
        >>> import rmqfast
        >>> from rmqfast.aio.producer import Producer
        >>> async def main(name_server):
        ...     async with Producer("shop", name_server=name_server) as producer:
        ...         await producer.send(rmqfast.Message("orders", b"paid", tags="paid"))
        ...     async with LitePullConsumer("books", name_server=name_server) as consumer:
        ...         await consumer.subscribe("orders", "paid || sent")
        ...         async for message in consumer:
        ...             return message.body
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     asyncio.run(main(cluster.name_server))
        b'paid'
    """

    @with_signature_of(blocking.LitePullConsumer)
    def __init__(self, *args: Any, options: LitePullOptions | None = None, **named: Any) -> None:
        self.options: Final = options or LitePullOptions()
        # the lambda must not refer to the client, which warns when it is garbage collected
        on_loop = call_on(lambda: calls_of_twin.loop, self.options.message_queue_listener)
        options_of_twin = replace(self.options, message_queue_listener=on_loop)
        self._twin = blocking.LitePullConsumer(*args, options=options_of_twin, **named)
        self._calls = calls_of_twin = Calls(self, self._twin)
        self._arrivals = Arrivals()
        self._twin.on_arrival(self._arrivals.notify)

    start: Final = calls.start
    shutdown: Final = calls.shutdown
    __aenter__: Final = calls.enter
    __aexit__: Final = calls.leave
    __del__: Final = calls.drop
    group: ForwardedProperty[str] = ForwardedProperty(blocking.LitePullConsumer, lambda twin: twin.group)
    client_id: ForwardedProperty[str] = ForwardedProperty(blocking.LitePullConsumer, lambda twin: twin.client_id)
    is_running: ForwardedProperty[bool] = ForwardedProperty(blocking.LitePullConsumer, lambda twin: twin.is_running)
    assignment: ForwardedProperty[list[MessageQueue]] = ForwardedProperty(
        blocking.LitePullConsumer, lambda twin: twin.assignment
    )
    backlog: ForwardedProperty[int] = ForwardedProperty(blocking.LitePullConsumer, lambda twin: twin.backlog)
    register_consume_hook: Final = awaitable(blocking.LitePullConsumer.register_consume_hook)
    max_offset: Final = awaitable(blocking.LitePullConsumer.max_offset)
    min_offset: Final = awaitable(blocking.LitePullConsumer.min_offset)
    search_offset: Final = awaitable(blocking.LitePullConsumer.search_offset)
    earliest_store_time: Final = awaitable(blocking.LitePullConsumer.earliest_store_time)
    running_info: Final = awaitable(blocking.LitePullConsumer.running_info)
    subscribe: Final = awaitable(blocking.LitePullConsumer.subscribe)
    unsubscribe: Final = awaitable(blocking.LitePullConsumer.unsubscribe)
    assign: Final = awaitable(blocking.LitePullConsumer.assign)
    seek: Final = awaitable(blocking.LitePullConsumer.seek)
    seek_to_begin: Final = awaitable(blocking.LitePullConsumer.seek_to_begin)
    seek_to_end: Final = awaitable(blocking.LitePullConsumer.seek_to_end)
    seek_to_time: Final = awaitable(blocking.LitePullConsumer.seek_to_time)
    pause: Final = awaitable(blocking.LitePullConsumer.pause)
    resume: Final = awaitable(blocking.LitePullConsumer.resume)
    is_paused: Final = awaitable(blocking.LitePullConsumer.is_paused)
    commit: Final = awaitable(blocking.LitePullConsumer.commit)
    commit_sync: Final = awaitable(blocking.LitePullConsumer.commit_sync)
    committed: Final = awaitable(blocking.LitePullConsumer.committed)
    offset_for_timestamp: Final = awaitable(blocking.LitePullConsumer.offset_for_timestamp)
    fetch_message_queues: Final = awaitable(blocking.LitePullConsumer.fetch_message_queues)

    @property
    def offset_store(self) -> OffsetStore:
        """The store of the group's offsets. The topics of the queues in it include the namespace.

        Raises:
            ClientError: The consumer is not running.
        """
        return OffsetStore(self._twin.offset_store, self._calls)

    @property
    def auto_commit(self) -> bool:
        """Whether `poll` commits the positions of messages that earlier calls returned."""
        return self._twin.auto_commit

    @auto_commit.setter
    def auto_commit(self, is_on: bool) -> None:
        self._twin.auto_commit = is_on

    @documented_like(blocking.LitePullConsumer.poll)
    async def poll(self, timeout: Duration | None = None) -> list[MessageView]:
        """Awaits the messages of one pull of one queue."""
        return await self._wait_and_take(self._twin.poll, timeout) or []

    @documented_like(blocking.LitePullConsumer.poll_arrow)
    async def poll_arrow(self, timeout: Duration | None = None, columns: Sequence[str] | None = None) -> Any:
        """Awaits messages as one Arrow batch."""
        return await self._wait_and_take(partial(self._twin.poll_arrow, columns=columns), timeout)

    async def __aiter__(self) -> AsyncIterator[MessageView]:
        """Yields messages until shutdown. Calls `poll`, so that the messages of one pull are committed together."""
        while self.is_running:
            try:
                messages = await self.poll()
            except ClientError:
                if not self._twin.is_running:
                    # another task has shut the consumer down
                    return
                raise
            for message in messages:
                yield message

    @documented_like(blocking.LitePullConsumer.register_topic_message_queue_change_listener)
    async def register_topic_message_queue_change_listener(
        self, topic: str, listener: TopicMessageQueueChangeListener
    ) -> None:
        """Registers a listener for changes of a topic's queues. The loop calls it, and it may be `async def`."""
        loop = self._calls.here()
        on_loop: Any = call_on(lambda: loop, listener)
        await self._calls.ask(self._twin.register_topic_message_queue_change_listener, topic, on_loop)

    async def _wait_and_take(self, take: Callable[[float], T], timeout: Duration | None) -> T | None:
        loop = self._calls.here()
        wait = self.options.poll_timeout if timeout is None else seconds("timeout", timeout)
        deadline = loop.time() + wait
        # lets other tasks run even if there is always a message
        await asyncio.sleep(0)
        while True:
            # before the check, so that no arrival in between is missed
            self._arrivals.listen(loop)
            # on the loop's thread, so that a cancellation cannot lose messages
            messages = take(min(wait, 0.0))
            if messages or not await self._arrivals.wait(deadline) or not self.is_running:
                return messages
