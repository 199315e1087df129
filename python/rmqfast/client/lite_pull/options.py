"""Options of lite pull consumers.

Source: RocketMQ's `DefaultLitePullConsumer`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rmqfast.arguments import suggests_names
from rmqfast.client.consumer import ConsumeFromWhere, half_an_hour_ago, parse_consume_timestamp
from rmqfast.client.consumer.active_member import ActiveOptions, check_range
from rmqfast.errors import ClientError

_ACCEPTED = (
    ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    ConsumeFromWhere.CONSUME_FROM_TIMESTAMP,
)
_INT = (1 << 31) - 1
_DAY = 86_400.0


@suggests_names
@dataclass(frozen=True, kw_only=True, slots=True)
class LitePullOptions(ActiveOptions):
    """Options of a lite pull consumer. Times are in seconds.

    When a buffer reaches a threshold, pulls stop until half of its messages are consumed. Pulls in flight count with
    the messages that they may return, so a queue exceeds its threshold by at most one answer.

    Attributes:
        auto_commit: Whether `poll` regularly commits what it returned before.
        auto_commit_interval: Time between these commits, at least one second.
        pull_batch_size: Messages per pull; brokers return at most 32 messages or 256 KiB by default.
        pulls_in_flight: Maximum pulls in flight per broker, not counting long polls at the end of queues.
        pull_threads: Maximum threads that look up starting positions.
        pull_threshold_for_all: Maximum messages buffered or in flight over all queues.
        pull_threshold_for_queue: Maximum messages buffered or in flight per queue.
        pull_threshold_size_for_queue: Maximum bytes buffered or in flight per queue.
        consume_max_span: Largest span of queue offsets among a queue's buffered messages.
        poll_timeout: Default timeout of `poll`.
        topic_metadata_check_interval: Time between checks of topics whose queue changes a listener follows.
        consume_from_where: Starting position of a new group: last offset, first offset or a time.
        consume_timestamp: Starting time: `yyyyMMddHHmmss`, local time.
        pull_time_delay_when_exception: Pause of a queue after a failed pull.

    Raises:
        ArgumentError: A number is out of range, or a time is invalid.
        ClientError: `consume_from_where` is unknown.

    Example:
        >>> from rmqfast import LitePullConsumer
        >>> from rmqfast.client.lite_pull import LitePullOptions
        >>> options = LitePullOptions(auto_commit=False)
        >>> consumer = LitePullConsumer("billing", name_server="127.0.0.1:9876", options=options)
        >>> options.pull_batch_size
        10
    """

    auto_commit: bool = True
    auto_commit_interval: float = 5.0
    pull_batch_size: int = 10
    pulls_in_flight: int = 8
    pull_threads: int = 20
    pull_threshold_for_all: int = 10_000
    pull_threshold_for_queue: int = 1000
    pull_threshold_size_for_queue: int = 100 << 20
    consume_max_span: int = 2000
    poll_timeout: float = 5.0
    topic_metadata_check_interval: float = 30.0
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    consume_timestamp: str = field(default_factory=half_an_hour_ago)
    pull_time_delay_when_exception: float = 1.0

    def __post_init__(self) -> None:
        # slots=True replaces the class, so super() would fail
        ActiveOptions.__post_init__(self)
        for name, (least, most) in _RANGES.items():
            check_range(name, getattr(self, name), least, most)
        if self.consume_from_where not in _ACCEPTED:
            raise ClientError(
                "Invalid ConsumeFromWhere Value", next_step=f"expected one of {[str(each) for each in _ACCEPTED]}"
            )
        parse_consume_timestamp(self.consume_timestamp)


_RANGES: dict[str, tuple[float, float]] = {
    "auto_commit_interval": (1.0, _DAY),
    "pull_batch_size": (1, _INT),
    "pulls_in_flight": (1, 1024),
    "pull_threads": (1, 1000),
    "pull_threshold_for_all": (1, _INT),
    "pull_threshold_for_queue": (1, _INT),
    "pull_threshold_size_for_queue": (1, 1 << 40),
    "consume_max_span": (1, _INT),
    "poll_timeout": (0.0, _DAY),
    "topic_metadata_check_interval": (0.05, _DAY),
    "pull_time_delay_when_exception": (0.0, _DAY),
}
