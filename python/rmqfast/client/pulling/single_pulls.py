"""Single pulls of applications that choose queues and offsets themselves.

Source: RocketMQ's `PullAPIWrapper`, `MQClientAPIImpl`, `PullSysFlag`, `PullStatus`, `PullResult`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntFlag, StrEnum
from typing import TypeAlias

from rmqfast._native import Fetched, MessageView, pull_fields, read_pull
from rmqfast.client.consumer.hooks import FilterContext, FilterHooks
from rmqfast.client.instance import ClientInstance
from rmqfast.client.pulling.pulled_queues import BrokerChoice, messages_of
from rmqfast.errors import RemotingProtocolError, ResponseError, RmqError
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode, Response
from rmqfast.remoting.protocol.subscription_data import SubscriptionData


class PullStatus(StrEnum):
    """The status of the answer to a pull."""

    FOUND = "FOUND"
    NO_NEW_MSG = "NO_NEW_MSG"
    NO_MATCHED_MSG = "NO_MATCHED_MSG"
    OFFSET_ILLEGAL = "OFFSET_ILLEGAL"


class PullSysFlag(IntFlag):
    """Flags of a pull request.

    Attributes:
        COMMIT_OFFSET: The broker stores the request's commit offset.
        SUSPEND: The broker waits if there are no messages.
        SUBSCRIPTION: The broker filters by the request's expression instead of the heartbeat's.
        CLASS_FILTER: The broker filters by a class, which no broker of 4.9 supports.
        LITE_PULL: The request comes from a lite pull consumer.
    """

    COMMIT_OFFSET = 1
    SUSPEND = 2
    SUBSCRIPTION = 4
    CLASS_FILTER = 8
    LITE_PULL = 16


@dataclass(frozen=True, slots=True)
class PullResult:
    """The answer to a pull.

    Attributes:
        status: The result of the pull.
        next_begin_offset: Offset of the next pull.
        min_offset: The offset of the queue's first message.
        max_offset: The offset after its last message.
        messages: Messages that match the subscription; may be empty although messages were found.
        size: Bytes of the answer, which stay in memory as long as one of its messages.

    Example:
        >>> from rmqfast import EmbeddedCluster, Message, Producer, PullConsumer
        >>> with EmbeddedCluster() as cluster, Producer("shop", name_server=cluster.name_server) as producer:
        ...     queue = producer.send(Message("orders", b"paid")).queue
        ...     with PullConsumer("books", name_server=cluster.name_server) as consumer:
        ...         result = consumer.pull(queue, "*", 0, 32)
        >>> len(result.messages), result.next_begin_offset, (result.min_offset, result.max_offset)
        (1, 1, (0, 1))
    """

    status: PullStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    messages: list[MessageView] = field(default_factory=list)
    size: int = 0


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request.

    Attributes:
        queue: The queue, with the namespace in its topic.
        subscription: Filters messages at the broker; tags are compared again here.
        offset: Offset of the first message.
        max_messages: Maximum number of messages; brokers have their own limits.
        suspend: Seconds that the broker waits for messages; 0 means not at all.
    """

    queue: MessageQueue
    subscription: SubscriptionData
    offset: int
    max_messages: int
    suspend: float = 0.0


#: Called with the result or the error of an asynchronous pull.
OnPulled: TypeAlias = Callable[[PullResult | RmqError], None]


class SinglePulls:
    def __init__(self, instance: ClientInstance, group: str, filters: FilterHooks) -> None:
        self._instance, self._group, self._filters = instance, group, filters
        self._brokers = BrokerChoice(instance.routes.subscribe_address, instance.update_route)

    def pull(self, pull: Pull, timeout: float) -> PullResult:
        address, fields = self._request(pull)
        answer = self._instance.connections.request(address, RequestCode.PULL_MESSAGE, fields, timeout=timeout)
        return self._result(pull, address, answer)

    def submit(self, pull: Pull, on_done: OnPulled, timeout: float) -> None:
        """Starts a pull. `on_done` is called on a thread of the client, unless this method raises."""
        address, fields = self._request(pull)

        def finish(end: Response | RmqError) -> None:
            result: PullResult | RmqError
            try:
                # an unreadable answer is also an end: the callback is always called
                result = self._result(pull, address, end) if isinstance(end, Response) else end
            except RmqError as error:
                result = error
            on_done(result)

        self._instance.connections.submit(address, RequestCode.PULL_MESSAGE, fields, b"", finish, timeout=timeout)

    def is_ready(self, queue: MessageQueue) -> bool:
        """Whether `submit` would not wait, since the queue's broker is known and connected."""
        broker = self._brokers.current(queue)
        return broker is not None and self._instance.connections.is_open(broker.address)

    def _request(self, pull: Pull) -> tuple[str, dict[str, str]]:
        subscription = pull.subscription
        broker = self._brokers.broker_of(pull.queue, subscription)
        fields = pull_fields(
            self._group,
            pull.queue,
            pull.offset,
            pull.max_messages,
            suspend_millis=int(pull.suspend * 1000),
            expression=subscription.sub_string,
            expression_type=subscription.expression_type,
            sub_version=subscription.sub_version,
        )
        # The connection may be another one than that of the heartbeats.
        return broker.address, fields | {"clientId": self._instance.client_id}

    def _result(self, pull: Pull, address: str, answer: Response) -> PullResult:
        queue, config = pull.queue, self._instance.config
        tags = frozenset(pull.subscription.tags_set)
        fetched = read_answer(queue, pull.offset, address, answer, tags=tags, verify_crc=config.verify_crc)
        self._brokers.suggest(queue, fetched.suggested_broker_id)
        status = PullStatus(fetched.status)
        bounds = fetched.min_offset, fetched.max_offset
        if status is not PullStatus.FOUND:
            return PullResult(status, fetched.next_begin_offset, *bounds)
        messages = messages_of(fetched, config.namespace)
        if self._filters:
            messages = self._filters.filter(FilterContext(self._group, queue, messages, config.is_unit_mode))
        return PullResult(status, fetched.next_begin_offset, *bounds, messages, fetched.size)


def read_answer(
    queue: MessageQueue,
    offset: int,
    address: str,
    answer: Response,
    *,
    tags: frozenset[str] = frozenset(),
    verify_crc: bool = False,
) -> Fetched:
    fetched = read_pull(
        queue,
        offset,
        code=answer.code,
        remark=answer.remark,
        ext_fields=answer.ext_fields,
        body=answer.body,
        tags=tags,
        verify_crc=verify_crc,
    )
    if fetched.status != "FAILED":
        return fetched
    # a negative code means that the answer could not be read
    if fetched.code >= 0:
        raise ResponseError(fetched.code, fetched.remark, address)
    raise RemotingProtocolError(f"pull from {address}: {fetched.remark}")
