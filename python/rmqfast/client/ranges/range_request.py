"""Says which ranges are read, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from rmqfast._native import check_sql92
from rmqfast.client.consumer.subscription import SQL92, MessageSelector, build_subscription_data
from rmqfast.client.instance import ClientConfig
from rmqfast.client.instance.validators import check_group, check_topic
from rmqfast.errors import ArgumentError, ExpressionError
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.subscription_data import TAG, SubscriptionData

#: Bytes of a decompressed body at most, unless told otherwise.
MAX_BODY_BYTES = 64 << 20


class QueueRange(NamedTuple):
    """A range of a queue's offsets; each read of it gives the same messages.

    Attributes:
        queue: The queue.
        start: The first queue offset.
        end: The offset behind the last.

    Example:
        >>> len(QueueRange(MessageQueue("orders", "broker-a", 0), 5, 8).offsets)
        3

    Source: none; Java's consumers read on until they are shut down.
    """

    queue: MessageQueue
    start: int
    end: int

    @property
    def offsets(self) -> range:
        """The queue offsets in it."""
        return range(self.start, self.end)

    def __str__(self) -> str:
        queue = self.queue
        return f"{queue.topic}, broker {queue.broker_name}, queue {queue.queue_id}, offsets {self.start} to {self.end}"


@dataclass(frozen=True, kw_only=True, slots=True)
class RangeRequest:
    """The options that all tasks of a read share; it is pickled to them.

    Attributes:
        config: How to reach the cluster.
        topic: The topic.
        group: The consumer group in the pulls; nothing is committed for it.
        tags: Tag expression, as "A || B".
        sql: SQL92 condition, for brokers with `enablePropertyFilter=true`.
        keys: Only messages with one of these keys or UNIQ_KEYs; the client filters, brokers do not.
        columns: Columns of the row, in this order; by default all.
        start_time: Store timestamps from here on, in milliseconds since 1970.
        end_time: Store timestamps before this.
        microseconds: Whether timestamps are microseconds.
        verify_crc: Whether each stored body is compared with its CRC, which brokers and Java's consumers do not do.
        on_damage: "fail" if messages are lost or unreadable, "warn" to log that and continue.
        batch: Messages per pull; brokers limit it, by default to 32.
        depth: Pulls in flight.
        timeout: How long to wait for an answer, in seconds.
        patience: How long to retry without any message, while a broker is away or refuses, in seconds.
        max_body_bytes: Maximum bytes of a decompressed body.
        sub_version: Version of the SQL92 expression.

    Raises:
        ArgumentError: A value out of range.
        ClientError: A name that topics or groups may not have.
        ExpressionError: `tags` or `sql` does not parse.

    Example:
        >>> sorted(RangeRequest(config=ClientConfig(), topic="orders", group="g", tags="A || B").wanted_tags)
        ['A', 'B']
    """

    config: ClientConfig
    topic: str
    group: str
    tags: str = "*"
    sql: str | None = None
    keys: Sequence[str] | None = None
    columns: tuple[str, ...] | None = None
    start_time: int | None = None
    end_time: int | None = None
    microseconds: bool = False
    verify_crc: bool = False
    on_damage: Literal["fail", "warn"] = "fail"
    batch: int = 32
    depth: int = 16
    timeout: float = 10.0
    patience: float = 60.0
    max_body_bytes: int = MAX_BODY_BYTES
    sub_version: int = 0
    subscription: SubscriptionData = field(init=False)

    def __post_init__(self) -> None:
        check_topic(self.topic)
        check_group(self.group)
        tags = build_subscription_data(self.topic, self.tags, now=0)
        for name in ("batch", "depth", "timeout", "patience", "max_body_bytes"):
            if not getattr(self, name) > 0:
                raise ArgumentError(f"{name}: expected more than 0, got {getattr(self, name)}")
        if self.columns is not None and not self.columns:
            raise ArgumentError("columns: expected at least one, got none")
        object.__setattr__(self, "keys", _listed(self.keys))
        if self.on_damage not in {"fail", "warn"}:
            raise ArgumentError(f"on_damage: expected 'fail' or 'warn', got {self.on_damage!r}")
        if self.sql is not None:
            problem = check_sql92(self.sql)
            if problem is not None:
                raise ExpressionError(problem)
            wanted = MessageSelector.by_sql(self.sql)
            tags = build_subscription_data(self.topic, wanted, now=self.sub_version)
        object.__setattr__(self, "subscription", tags)

    @property
    def wanted_tags(self) -> frozenset[str] | None:
        """The tags to compare, as brokers compare hashes only; `None` for all."""
        return frozenset(build_subscription_data(self.topic, self.tags, now=0).tags_set) or None

    @property
    def is_filtered(self) -> bool:
        """Whether brokers filter messages."""
        is_sql = self.subscription.expression_type == SQL92
        return is_sql or (self.subscription.expression_type == TAG and bool(self.subscription.tags_set))


def _listed(keys: Sequence[str] | None) -> tuple[str, ...] | None:
    if isinstance(keys, str):
        raise ArgumentError(f"keys: expected a sequence, got the one value {keys!r}")
    return None if keys is None else tuple(keys)
