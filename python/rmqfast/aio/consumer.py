"""What consumers that pull have in common: offsets, and what brokers know of them.

Source: `DefaultMQPullConsumerImpl`, `DefaultLitePullConsumerImpl`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from rmqfast.aio.awaited import awaited
from rmqfast.aio.member import Member
from rmqfast.aio.offset_store import OffsetStore
from rmqfast.aio.on_loop import told_on
from rmqfast.client.consumer.active_consumer import ActiveConsumer
from rmqfast.client.lite_pull import LitePullOptions
from rmqfast.client.pull import PullOptions

Twin = TypeVar("Twin", bound=ActiveConsumer)
Options = TypeVar("Options", PullOptions, LitePullOptions)


class PullingConsumer(Member[Twin]):
    """A consumer that pulls."""

    register_consume_hook = awaited(ActiveConsumer.register_consume_hook)
    max_offset = awaited(ActiveConsumer.max_offset)
    min_offset = awaited(ActiveConsumer.min_offset)
    search_offset = awaited(ActiveConsumer.search_offset)
    earliest_store_time = awaited(ActiveConsumer.earliest_store_time)

    @property
    def is_running(self) -> bool:
        """Whether it was started and did not end."""
        return self._twin.is_running

    @property
    def offset_store(self) -> OffsetStore:
        """Where its offsets are kept; queues stand there with the namespace of their topics.

        Raises:
            ClientError: It is not running.
        """
        return OffsetStore(self._twin.offset_store, self._ask)

    def _heard(self, options: Options) -> Options:
        """The options of the twin, whose listener is called on the loop."""
        listener = options.message_queue_listener

        def tell(*args: Any) -> None:
            if listener is not None and self._loop is not None:
                told_on(self._loop, listener)(*args)

        return options if listener is None else replace(options, message_queue_listener=tell)
