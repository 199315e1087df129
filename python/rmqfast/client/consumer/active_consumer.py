"""Base class of the consumers that pull: how they start, shut down, and handle offsets.

Source: RocketMQ's `DefaultMQPullConsumer`, `DefaultLitePullConsumer`, `DefaultMQPullConsumerImpl`,
`DefaultLitePullConsumerImpl`, `MQAdminImpl`.
"""

from __future__ import annotations

from typing import Any, Final, Generic, Self, TypeVar

from rmqfast.arguments import Time, milliseconds_of
from rmqfast.client.consumer.active_member import ActiveMember
from rmqfast.client.consumer.hooks import ConsumeHook, ConsumeHooks
from rmqfast.client.consumer.offset_store import OffsetStore
from rmqfast.client.instance.exits import warn_unclosed
from rmqfast.message import MessageQueue

M = TypeVar("M", bound=ActiveMember)


class ActiveConsumer(Generic[M]):
    """Base class of `PullConsumer` and `LitePullConsumer`. Threads refer to the `ActiveMember`, not to this object."""

    def __init__(self, member: M) -> None:
        self._member = member
        self.hooks: Final = ConsumeHooks()

    @property
    def group(self) -> str:
        """The consumer group, with its namespace."""
        return self._member.group

    @property
    def client_id(self) -> str:
        """The id by which brokers know this client.

        Raises:
            ClientError: The consumer is not running.
        """
        self._member.check_running()
        return self._member.instance.client_id

    @property
    def is_running(self) -> bool:
        """Whether the consumer was started and not shut down."""
        return self._member.is_running

    @property
    def offset_store(self) -> OffsetStore:
        """The store of the group's offsets. The topics of the queues in it include the namespace.

        Raises:
            ClientError: The consumer is not running.
        """
        self._member.check_running()
        return self._member.offsets

    def start(self) -> None:
        """Starts the consumer and registers it at brokers.

        Raises:
            ClientError: The consumer was started before, the group is invalid or already has a consumer here, no name
                server is configured, or local offsets cannot be read.
        """
        self._member.start()

    def shutdown(self) -> None:
        """Stores offsets, unregisters and closes the consumer. A second call does nothing."""
        self._member.shutdown()

    def register_consume_hook(self, hook: ConsumeHook) -> None:
        """Registers a hook that is called when the application gets messages."""
        self.hooks.add(hook)

    def max_offset(self, queue: MessageQueue) -> int:
        """Returns the offset after a queue's last message.

        Raises:
            ClientError: The consumer is not running, or the broker is unknown or does not answer.
        """
        self._member.check_running()
        return self._member.admin.max_offset(self._member.with_namespace(queue))

    def min_offset(self, queue: MessageQueue) -> int:
        """Returns the offset of a queue's first message.

        Raises:
            ClientError: See `max_offset`.
        """
        self._member.check_running()
        return self._member.admin.min_offset(self._member.with_namespace(queue))

    def search_offset(self, queue: MessageQueue, timestamp: Time) -> int:
        """Returns the offset of the message stored nearest to a time. RocketMQ 5: of the first one since that time.

        Raises:
            ClientError: See `max_offset`.
        """
        self._member.check_running()
        return self._member.admin.search_offset(
            self._member.with_namespace(queue), milliseconds_of("timestamp", timestamp)
        )

    def earliest_store_time(self, queue: MessageQueue) -> int:
        """Returns the store time of a queue's first message, in milliseconds since 1970. -1 if the queue is empty.

        Raises:
            ClientError: See `max_offset`.
        """
        self._member.check_running()
        return self._member.admin.earliest_store_time(self._member.with_namespace(queue))

    def running_info(self) -> dict[str, Any]:
        """Returns the state that administrators see."""
        return self._member.running_info()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            # undoes a partly failed start
            self.shutdown()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def __del__(self) -> None:
        member: ActiveMember | None = getattr(self, "_member", None)
        if member is not None and member.is_running and not member.instance.is_closed:
            warn_unclosed(self, member.pid, f"{type(self).__name__} of the group {member.group}")
