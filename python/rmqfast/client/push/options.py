"""Options of push consumers.

Source: RocketMQ's `DefaultMQPushConsumer`, `DefaultMQPushConsumerImpl`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, cast

from rmqfast.arguments import check_fields, suggests_names
from rmqfast.client.consumer import ConsumeFromWhere, OffsetStore, half_an_hour_ago, parse_consume_timestamp
from rmqfast.client.consumer.strategies import AllocateMessageQueueStrategy
from rmqfast.client.instance import MessageModel, TracedClientArguments
from rmqfast.errors import ArgumentError, ClientError

_MESSAGE_MODELS = ("CLUSTERING", "BROADCASTING")
_FROM_WHERE = tuple(ConsumeFromWhere)
_NOT_SHOWN = frozenset({"allocate_strategy", "offset_store"})


@dataclass(frozen=True, kw_only=True, slots=True)
class PushTimings:
    """Intervals and timeouts of a push consumer, in seconds. The defaults are Java's; tests shorten them.

    Attributes:
        illegal_offset: Delay after a pull at an illegal offset until the queue is released and assigned again.
        resubmit: Delay until messages that no broker took back are consumed again.
        lock_interval: Time between renewals of queue locks.
        first_lock: Delay until the first renewal.
        lock_retry: Delay until the next attempt to lock a queue.
        unlock_patience: Longest wait for a queue's listener before the release of the queue is postponed.
        unlock_delay: Delay until the lock of a queue with unfinished messages is released.
        longest_continuously: Longest orderly consumption of one queue before other queues get their turn.
        reset: Pause of consumption before offsets are reset.
    """

    illegal_offset: float = 10.0
    resubmit: float = 5.0
    lock_interval: float = 20.0
    first_lock: float = 1.0
    lock_retry: float = 3.0
    unlock_patience: float = 1.0
    unlock_delay: float = 20.0
    longest_continuously: float = 60.0
    reset: float = 10.0

    def __post_init__(self) -> None:
        check_fields(self)


@suggests_names
@dataclass(frozen=True, kw_only=True, slots=True)
class PushOptions:
    """Options of a push consumer, which are those of Java. `start` checks the values.

    Attributes:
        message_model: `CLUSTERING`: members share the messages; `BROADCASTING`: each gets all.
        consume_from_where: Starting position of a group without offsets.
        consume_timestamp: Starting time for CONSUME_FROM_TIMESTAMP: `yyyyMMddHHmmss`, local time.
        allocate_strategy: Distributes queues among members. Default: evenly, in ranges.
        offset_store: Stores the offsets. Default: the brokers, or a local file with BROADCASTING.
        consume_thread_min: Threads that call the listener.
        consume_thread_max: Has no effect, as in Java.
        consume_concurrently_max_span: Largest difference of offsets between a queue's first unfinished and last pulled
            message.
        pull_threshold_for_queue: Maximum messages buffered per queue.
        pull_threshold_for_topic: Maximum messages buffered per topic; -1: no limit.
        pull_threshold_size_for_queue: Maximum MiB buffered per queue.
        pull_threshold_size_for_topic: Maximum MiB buffered per topic; -1: no limit.
        pull_interval: Milliseconds between successful pulls of a queue.
        pull_batch_size: Maximum messages per pull.
        consume_message_batch_max_size: Maximum messages per call of the listener.
        post_subscription_when_pull: Whether pulls carry the tags, which then override the group's subscription.
        max_reconsume_times: Failed consumptions before a message becomes a dead letter; -1: 16, or no limit for orderly
            consumption.
        suspend_current_queue_time_millis: Milliseconds that a queue pauses after a failed orderly consumption.
        consume_timeout: Minutes after which an unfinished message is sent back to its broker.
        await_termination_millis_when_shutdown: Maximum milliseconds to wait for listeners at shutdown.
        pull_time_delay_millis_when_exception: Milliseconds of pause after a failed pull.
        pull_suspend_millis: Maximum milliseconds that a broker holds a pull without messages.
        pull_timeout_millis: Maximum milliseconds to wait for the answer of a pull.

    Example:
        >>> from rmqfast import ConsumeFromWhere, PushConsumer
        >>> from rmqfast.client.push import PushOptions
        >>> options = PushOptions(consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, consume_thread_min=4)
        >>> consumer = PushConsumer("billing", name_server="127.0.0.1:9876", options=options)
        >>> options.consume_message_batch_max_size
        1
    """

    message_model: MessageModel = "CLUSTERING"
    consume_from_where: str = "CONSUME_FROM_LAST_OFFSET"
    consume_timestamp: str = field(default_factory=half_an_hour_ago)
    allocate_strategy: AllocateMessageQueueStrategy | None = None
    offset_store: OffsetStore | None = None
    consume_thread_min: int = 20
    consume_thread_max: int = 20
    consume_concurrently_max_span: int = 2000
    pull_threshold_for_queue: int = 1000
    pull_threshold_for_topic: int = -1
    pull_threshold_size_for_queue: int = 100
    pull_threshold_size_for_topic: int = -1
    pull_interval: int = 0
    pull_batch_size: int = 32
    consume_message_batch_max_size: int = 1
    post_subscription_when_pull: bool = False
    max_reconsume_times: int = -1
    suspend_current_queue_time_millis: int = 1000
    consume_timeout: float = 15
    await_termination_millis_when_shutdown: int = 0
    pull_time_delay_millis_when_exception: int = 1000
    pull_suspend_millis: int = 15_000
    pull_timeout_millis: int = 30_000

    def __post_init__(self) -> None:
        minutes: Any = self.consume_timeout
        if isinstance(minutes, timedelta):
            object.__setattr__(self, "consume_timeout", minutes / timedelta(minutes=1))
        check_fields(self)

    @property
    def is_clustering(self) -> bool:
        """Whether the consumers of a group share the messages."""
        return self.message_model == "CLUSTERING"

    def check(self) -> None:
        """Raises an error for values that are out of range.

        Raises:
            ClientError: A value is out of range; the message is Java's.
        """
        if self.message_model not in _MESSAGE_MODELS:
            raise ClientError("messageModel is null", next_step=_expectation("message_model", _MESSAGE_MODELS, self))
        if str(self.consume_from_where) not in _FROM_WHERE:
            raise ClientError(
                "consumeFromWhere is null", next_step=_expectation("consume_from_where", _FROM_WHERE, self)
            )
        _check_timestamp(self.consume_timestamp)
        self._check_threads()
        for name, java, low, high in _RANGES:
            value = getattr(self, name)
            may_be_off = name.endswith("_for_topic") and value == -1
            if not (isinstance(value, int) and low <= value <= high) and not may_be_off:
                raise _out_of_range(java, name, low, high, value)
        if not self.consume_timeout > 0:
            raise ClientError("consumeTimeout Out of range", next_step=f"consume_timeout is {self.consume_timeout}")

    def as_properties(self) -> dict[str, str]:
        """Returns the options as strings under Java's names, for administrators."""
        named = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in _NOT_SHOWN}
        return {_camel(name): _text(value) for name, value in named.items()}

    def _check_threads(self) -> None:
        for name, java in (("consume_thread_min", "consumeThreadMin"), ("consume_thread_max", "consumeThreadMax")):
            if not 1 <= getattr(self, name) <= 1000:
                raise _out_of_range(java, name, 1, 1000, getattr(self, name))
        if self.consume_thread_min > self.consume_thread_max:
            raise ClientError(
                f"consumeThreadMin ({self.consume_thread_min}) is larger than consumeThreadMax "
                f"({self.consume_thread_max})",
                next_step="give consume_thread_max as well",
            )


class PushArguments(TracedClientArguments, total=False):
    """Keyword arguments of `PushConsumer`: those of all clients, and the options of `PushOptions`."""

    message_model: MessageModel
    consume_from_where: str
    consume_timestamp: str
    allocate_strategy: AllocateMessageQueueStrategy | None
    offset_store: OffsetStore | None
    consume_thread_min: int
    consume_thread_max: int
    consume_concurrently_max_span: int
    pull_threshold_for_queue: int
    pull_threshold_for_topic: int
    pull_threshold_size_for_queue: int
    pull_threshold_size_for_topic: int
    pull_interval: int
    pull_batch_size: int
    consume_message_batch_max_size: int
    post_subscription_when_pull: bool
    max_reconsume_times: int
    suspend_current_queue_time_millis: int
    consume_timeout: float
    await_termination_millis_when_shutdown: int
    pull_time_delay_millis_when_exception: int
    pull_suspend_millis: int
    pull_timeout_millis: int


def split_options(arguments: PushArguments) -> tuple[TracedClientArguments, dict[str, Any]]:
    """Splits a consumer's keyword arguments into arguments of all clients and options of the consumer."""
    names = PushOptions.__dataclass_fields__.keys()
    own = {name: value for name, value in arguments.items() if name in names}
    others = {name: value for name, value in arguments.items() if name not in names}
    return cast("TracedClientArguments", others), own


#: Option, its name in Java, its minimum and maximum.
_RANGES = (
    ("consume_concurrently_max_span", "consumeConcurrentlyMaxSpan", 1, 65535),
    ("pull_threshold_for_queue", "pullThresholdForQueue", 1, 65535),
    ("pull_threshold_for_topic", "pullThresholdForTopic", 1, 6_553_500),
    ("pull_threshold_size_for_queue", "pullThresholdSizeForQueue", 1, 1024),
    ("pull_threshold_size_for_topic", "pullThresholdSizeForTopic", 1, 102_400),
    ("pull_interval", "pullInterval", 0, 65535),
    ("consume_message_batch_max_size", "consumeMessageBatchMaxSize", 1, 1024),
    ("pull_batch_size", "pullBatchSize", 1, 1024),
)


def _check_timestamp(text: str) -> None:
    try:
        parse_consume_timestamp(text)
    except (ArgumentError, TypeError) as error:
        message = f"consumeTimestamp is invalid, the valid format is yyyyMMddHHmmss,but received {text}"
        raise ClientError(message, next_step="as 20240229235959, in local time") from error


def _out_of_range(java: str, name: str, low: int, high: int, value: object) -> ClientError:
    return ClientError(f"{java} Out of range [{low}, {high}]", next_step=f"{name} is {value!r}")


def _expectation(name: str, values: tuple[str, ...], options: PushOptions) -> str:
    return f"{name}: expected one of {', '.join(values)}, got {getattr(options, name)!r}"


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
