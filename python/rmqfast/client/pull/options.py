"""Options of pull consumers.

Source: RocketMQ's `DefaultMQPullConsumer`.
"""

from __future__ import annotations

from dataclasses import dataclass

from rmqfast.arguments import suggests_names
from rmqfast.client.consumer.active_options import ActiveOptions, check_range


@suggests_names
@dataclass(frozen=True, kw_only=True, slots=True)
class PullOptions(ActiveOptions):
    """Options of a pull consumer. Times are in seconds.

    Attributes:
        max_reconsume_times: Failed consumptions after which a message becomes a dead letter when it is sent back.

    Raises:
        ArgumentError: A number is out of range.

    Example:
        >>> from rmqfast import PullConsumer
        >>> from rmqfast.client.pull import PullOptions
        >>> options = PullOptions(message_model="BROADCASTING")
        >>> consumer = PullConsumer("books", name_server="127.0.0.1:9876", options=options)
        >>> options.message_model
        'BROADCASTING'
    """

    max_reconsume_times: int = 16

    def __post_init__(self) -> None:
        # slots=True replaces the class, so super() would fail
        ActiveOptions.__post_init__(self)
        check_range("max_reconsume_times", self.max_reconsume_times, -1, (1 << 31) - 1)
