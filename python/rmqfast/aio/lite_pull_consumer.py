"""Pulls in the background, and gives what came when it is asked.

Source: `DefaultLitePullConsumer`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from rmqfast.aio.arrivals import Arrivals
from rmqfast.aio.awaited import awaited
from rmqfast.aio.consumer import PullingConsumer
from rmqfast.aio.on_loop import told_on
from rmqfast.client import lite_pull as blocking
from rmqfast.client.consumer import MessageView
from rmqfast.client.instance import ClientConfig
from rmqfast.client.instance.config import DEFAULT_INSTANCE_NAME
from rmqfast.client.lite_pull import LitePullOptions, TopicMessageQueueChangeListener
from rmqfast.errors import ClientError
from rmqfast.message import MessageQueue

T = TypeVar("T")


class LitePullConsumer(PullingConsumer[blocking.LitePullConsumer]):
    """Pulls in the background, and gives what came when it is asked; the tasks of one loop may share it.

    What `poll` returns counts as consumed from then on. Where that is, is noted by the next `poll` (every five seconds,
    unless `auto_commit` is off) or by `commit_sync`, and stored every five seconds, at the end, and when a queue is
    given up. So what the last `poll` returned comes once more after the end, unless it was committed. A `poll` that
    waits takes no thread, and one that is cancelled takes no message away.

    Args:
        group: The consumer group.
        name_server: `host:port`, several separated by `;`; unless given, that of `config`, or the environment's
            `NAMESRV_ADDR`.
        instance_name: Sets clients of one process apart.
        namespace: Stands before the names of topics and groups.
        config: Everything else about the cluster: TLS, accounts, timers.
        options: How to pull; a `message_queue_listener` is called on the loop, and may be `async def`.
        enable_msg_trace: Whether traces tell what it gets; `Admin.messages.trace` reads them.
        customized_trace_topic: The topic of traces; `RMQ_SYS_TRACE_TOPIC` unless given.

    Raises:
        ArgumentError: An address without a port.

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

    def __init__(
        self,
        group: str,
        *,
        name_server: str | Sequence[str] | None = None,
        instance_name: str = DEFAULT_INSTANCE_NAME,
        namespace: str = "",
        config: ClientConfig | None = None,
        options: LitePullOptions | None = None,
        enable_msg_trace: bool = False,
        customized_trace_topic: str | None = None,
    ) -> None:
        self.options = options or LitePullOptions()
        of_twin = self.options
        if of_twin.message_queue_listener is not None:
            of_twin = replace(of_twin, message_queue_listener=self._told(of_twin.message_queue_listener))
        super().__init__(
            blocking.LitePullConsumer(
                group,
                name_server=name_server,
                instance_name=instance_name,
                namespace=namespace,
                config=config,
                options=of_twin,
                enable_msg_trace=enable_msg_trace,
                customized_trace_topic=customized_trace_topic,
            )
        )
        self._arrivals = Arrivals()
        self._twin.tell_of_arrivals(self._arrivals.tell)

    subscribe = awaited(blocking.LitePullConsumer.subscribe)
    unsubscribe = awaited(blocking.LitePullConsumer.unsubscribe)
    assign = awaited(blocking.LitePullConsumer.assign)
    seek = awaited(blocking.LitePullConsumer.seek)
    seek_to_begin = awaited(blocking.LitePullConsumer.seek_to_begin)
    seek_to_end = awaited(blocking.LitePullConsumer.seek_to_end)
    seek_to_time = awaited(blocking.LitePullConsumer.seek_to_time)
    pause = awaited(blocking.LitePullConsumer.pause)
    resume = awaited(blocking.LitePullConsumer.resume)
    is_paused = awaited(blocking.LitePullConsumer.is_paused)
    commit = awaited(blocking.LitePullConsumer.commit)
    commit_sync = awaited(blocking.LitePullConsumer.commit_sync)
    committed = awaited(blocking.LitePullConsumer.committed)
    offset_for_timestamp = awaited(blocking.LitePullConsumer.offset_for_timestamp)
    fetch_message_queues = awaited(blocking.LitePullConsumer.fetch_message_queues)

    @property
    def assignment(self) -> list[MessageQueue]:
        """The queues that it has now."""
        return self._twin.assignment

    @property
    def backlog(self) -> int:
        """Messages that came and wait for `poll`."""
        return self._twin.backlog

    @property
    def auto_commit(self) -> bool:
        """Whether `poll` notes now and then what it gave before."""
        return self._twin.auto_commit

    @auto_commit.setter
    def auto_commit(self, is_on: bool) -> None:
        self._twin.auto_commit = is_on

    async def poll(self, timeout: float | None = None) -> list[MessageView]:
        """What came with one pull of one queue; nothing where nothing came in time.

        Args:
            timeout: How long to wait, in seconds; that of the options unless given.

        Raises:
            ClientError: It is not running.
            ArgumentError: A timeout below 0.

        Source: `DefaultLitePullConsumer.poll`.
        """
        return await self._taken(self._twin.poll, timeout) or []

    async def poll_arrow(
        self,
        timeout: float | None = None,
        columns: Sequence[str] | None = None,
    ) -> Any:
        """What came, as one Arrow batch, without an object for each message.

        Args:
            timeout: How long to wait for the first message, in seconds; that of the options unless given.
            columns: Of the row, and in which order; all unless given.

        Returns:
            An object with `__arrow_c_array__`, for `pyarrow.record_batch` and others: as much as waits of one broker's
            queues, up to about 8,192 messages or 1 MiB of records; `None` where nothing came in time.

        Raises:
            ClientError: It is not running.
            ArgumentError: A timeout below 0.
            UnknownColumnError: A column that the row does not have; nothing is lost by it.
        """
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

    async def register_topic_message_queue_change_listener(
        self, topic: str, listener: TopicMessageQueueChangeListener
    ) -> None:
        """Has a listener told when a topic has got other queues; that is looked at every 30 seconds.

        Args:
            topic: The topic.
            listener: Called with the topic and its queues, on the loop; may be `async def`.

        Raises:
            ClientError: There is no topic or no listener.

        Source: `DefaultLitePullConsumer.registerTopicMessageQueueChangeListener`.
        """
        loop = self._here()
        given: Any = listener
        told: Any = given if given is None else told_on(loop, given)
        await self._ask(self._twin.register_topic_message_queue_change_listener, topic, told)

    async def _taken(self, take: Callable[[float], T], timeout: float | None) -> T | None:
        """What is there, or comes in time; it is taken on the loop's thread, so that no cancellation comes between."""
        loop = self._here()
        wait = self.options.poll_timeout if timeout is None else timeout
        deadline = loop.time() + wait
        await asyncio.sleep(0)  # others have a turn even where there always is something
        while True:
            self._arrivals.listen(loop)
            taken = take(min(wait, 0.0))
            if taken or not await self._arrivals.wait(deadline) or not self.is_running:
                return taken

    def _told(self, listener: Callable[..., Any]) -> Callable[..., None]:
        def tell(*args: Any) -> None:
            if self._loop is not None:
                told_on(self._loop, listener)(*args)

        return tell
