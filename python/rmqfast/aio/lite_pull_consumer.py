"""Pulls in the background, and gives what came when it is asked.

Source: `DefaultLitePullConsumer`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from rmqfast.aio import calls
from rmqfast.aio.arrivals import Arrivals
from rmqfast.aio.awaited import Shown, as_of, awaited, made_as
from rmqfast.aio.calls import Calls
from rmqfast.aio.offset_store import OffsetStore
from rmqfast.aio.on_loop import told_later
from rmqfast.arguments import Duration, seconds, suggests_names
from rmqfast.client import lite_pull as blocking
from rmqfast.client.consumer import MessageView
from rmqfast.client.lite_pull import LitePullOptions, TopicMessageQueueChangeListener
from rmqfast.errors import ClientError
from rmqfast.message import MessageQueue
from rmqfast.pickling import not_picklable

T = TypeVar("T")


@suggests_names
@not_picklable("make one in each process")
class LitePullConsumer:
    """Pulls in the background, and gives what came when it is asked; the tasks of one loop may share it.

    What `poll` returns counts as consumed from then on. Where that is, is noted by the next `poll` (every five seconds,
    unless `auto_commit` is off) or by `commit_sync`, and stored every five seconds, at the end, and when a queue is
    given up. So what the last `poll` returned comes once more after the end, unless it was committed. A `poll` that
    waits takes no thread, and one that is cancelled takes no message away.

    It is made as `rmqfast.LitePullConsumer` is. A `message_queue_listener` is called on the loop, may be `async def`.

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

    Source: `DefaultLitePullConsumer`.
    """

    @made_as(blocking.LitePullConsumer)
    def __init__(self, *args: Any, options: LitePullOptions | None = None, **named: Any) -> None:
        self.options: Final = options or LitePullOptions()
        heard = told_later(lambda: calls_of_twin.loop, self.options.message_queue_listener)
        theirs = replace(self.options, message_queue_listener=heard)
        self._twin = blocking.LitePullConsumer(*args, options=theirs, **named)
        self._calls = calls_of_twin = Calls(self, self._twin)
        self._arrivals = Arrivals()
        self._twin.tell_of_arrivals(self._arrivals.tell)

    start: Final = calls.start
    shutdown: Final = calls.shutdown
    __aenter__: Final = calls.enter
    __aexit__: Final = calls.leave
    __del__: Final = calls.drop
    group: Shown[str] = Shown(blocking.LitePullConsumer, lambda twin: twin.group)
    client_id: Shown[str] = Shown(blocking.LitePullConsumer, lambda twin: twin.client_id)
    is_running: Shown[bool] = Shown(blocking.LitePullConsumer, lambda twin: twin.is_running)
    assignment: Shown[list[MessageQueue]] = Shown(blocking.LitePullConsumer, lambda twin: twin.assignment)
    backlog: Shown[int] = Shown(blocking.LitePullConsumer, lambda twin: twin.backlog)
    register_consume_hook: Final = awaited(blocking.LitePullConsumer.register_consume_hook)
    max_offset: Final = awaited(blocking.LitePullConsumer.max_offset)
    min_offset: Final = awaited(blocking.LitePullConsumer.min_offset)
    search_offset: Final = awaited(blocking.LitePullConsumer.search_offset)
    earliest_store_time: Final = awaited(blocking.LitePullConsumer.earliest_store_time)
    subscribe: Final = awaited(blocking.LitePullConsumer.subscribe)
    unsubscribe: Final = awaited(blocking.LitePullConsumer.unsubscribe)
    assign: Final = awaited(blocking.LitePullConsumer.assign)
    seek: Final = awaited(blocking.LitePullConsumer.seek)
    seek_to_begin: Final = awaited(blocking.LitePullConsumer.seek_to_begin)
    seek_to_end: Final = awaited(blocking.LitePullConsumer.seek_to_end)
    seek_to_time: Final = awaited(blocking.LitePullConsumer.seek_to_time)
    pause: Final = awaited(blocking.LitePullConsumer.pause)
    resume: Final = awaited(blocking.LitePullConsumer.resume)
    is_paused: Final = awaited(blocking.LitePullConsumer.is_paused)
    commit: Final = awaited(blocking.LitePullConsumer.commit)
    commit_sync: Final = awaited(blocking.LitePullConsumer.commit_sync)
    committed: Final = awaited(blocking.LitePullConsumer.committed)
    offset_for_timestamp: Final = awaited(blocking.LitePullConsumer.offset_for_timestamp)
    fetch_message_queues: Final = awaited(blocking.LitePullConsumer.fetch_message_queues)

    @property
    def offset_store(self) -> OffsetStore:
        """Where its offsets are kept; queues stand there with the namespace of their topics.

        Raises:
            ClientError: It is not running.
        """
        return OffsetStore(self._twin.offset_store, self._calls)

    @property
    def auto_commit(self) -> bool:
        """Whether `poll` notes now and then what it gave before."""
        return self._twin.auto_commit

    @auto_commit.setter
    def auto_commit(self, is_on: bool) -> None:
        self._twin.auto_commit = is_on

    @as_of(blocking.LitePullConsumer.poll)
    async def poll(self, timeout: Duration | None = None) -> list[MessageView]:
        """Awaits what came with one pull of one queue."""
        return await self._taken(self._twin.poll, timeout) or []

    @as_of(blocking.LitePullConsumer.poll_arrow)
    async def poll_arrow(self, timeout: Duration | None = None, columns: Sequence[str] | None = None) -> Any:
        """Awaits what came, as one Arrow batch."""
        return await self._taken(partial(self._twin.poll_arrow, columns=columns), timeout)

    async def __aiter__(self) -> AsyncIterator[MessageView]:
        """The messages, one by one, for as long as it runs; commits as `poll` does, whole batches."""
        while self.is_running:
            try:
                messages = await self.poll()
            except ClientError:
                if not self._twin.is_running:
                    return  # another task has ended it
                raise
            for message in messages:
                yield message

    @as_of(blocking.LitePullConsumer.register_topic_message_queue_change_listener)
    async def register_topic_message_queue_change_listener(
        self, topic: str, listener: TopicMessageQueueChangeListener
    ) -> None:
        """Has a listener called on the loop, which may be `async def`."""
        loop = self._calls.here()
        on_loop: Any = told_later(lambda: loop, listener)
        await self._calls.ask(self._twin.register_topic_message_queue_change_listener, topic, on_loop)

    async def _taken(self, take: Callable[[float], T], timeout: Duration | None) -> T | None:
        """What is there, or comes in time; it is taken on the loop's thread, so that no cancellation comes between."""
        loop = self._calls.here()
        wait = self.options.poll_timeout if timeout is None else seconds("timeout", timeout)
        deadline = loop.time() + wait
        await asyncio.sleep(0)  # others have a turn even where there always is something
        while True:
            self._arrivals.listen(loop)
            taken = take(min(wait, 0.0))
            if taken or not await self._arrivals.wait(deadline) or not self.is_running:
                return taken
