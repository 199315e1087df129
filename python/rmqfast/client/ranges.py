"""Reads fixed ranges of queues as Arrow batches, for jobs without a consumer group.

Source: `DefaultLitePullConsumerImpl.PullTaskImpl`, `PullAPIWrapper.pullKernelImpl`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from rmqfast._native import RangeReader, check_sql92
from rmqfast.client.consumer.subscription import MessageSelector, build_subscription_data
from rmqfast.client.instance import ClientConfig
from rmqfast.client.instance.validators import check_group
from rmqfast.errors import ArgumentError, ExpressionError
from rmqfast.extras import imported
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["QueueRange", "RangePull", "RangeRequest", "batches_of"]

#: Bytes of a decompressed body at most, unless told otherwise.
MAX_BODY_BYTES = 64 << 20


class QueueRange(NamedTuple):
    """A range of a queue's offsets; each read of it gives the same messages.

    Attributes:
        queue: The queue.
        start: The first queue offset.
        end: The offset behind the last.

    Example:
        >>> from rmqfast import MessageQueue
        >>> from rmqfast.client.ranges import QueueRange
        >>> hundred = QueueRange(MessageQueue("orders", "broker-a", 0), 0, 100)
        >>> hundred.end - hundred.start
        100

    Source: none; Java's consumers read on until they are shut down.
    """

    queue: MessageQueue
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RangeRequest:
    """The options that all tasks of a read share; it is pickled to them.

    Attributes:
        config: How to reach the cluster.
        group: The consumer group in the pulls; nothing is committed for it.
        tags: Tag expression, as "A || B".
        sql: SQL92 condition, for brokers with `enablePropertyFilter=true`.
        keys: Only messages with one of these keys or UNIQ_KEYs; the client filters, brokers do not.
        columns: Columns of the row, in this order; by default all.
        property_names: The column `properties` has only these; by default all.
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
        ClientError: A name that groups may not have.
        ExpressionError: `tags` or `sql` does not parse.

    Example:
        >>> sorted(RangeRequest(config=ClientConfig(), group="g", tags="A || B").wanted_tags)
        ['A', 'B']
    """

    config: ClientConfig
    group: str
    tags: str = "*"
    sql: str | None = None
    keys: Sequence[str] | None = None
    columns: tuple[str, ...] | None = None
    property_names: Sequence[str] | None = None
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
    #: The whole tags to compare, as brokers compare hashes only; `None` for all.
    wanted_tags: frozenset[str] | None = field(init=False)

    def __post_init__(self) -> None:
        check_group(self.group)
        for name in ("batch", "depth", "timeout", "patience", "max_body_bytes"):
            if not getattr(self, name) > 0:
                raise ArgumentError(f"{name}: expected more than 0, got {getattr(self, name)}")
        if self.columns is not None and not self.columns:
            raise ArgumentError("columns: expected at least one, got none")
        for name in ("keys", "property_names"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise ArgumentError(f"{name}: expected a sequence, got the one value {value!r}")
            object.__setattr__(self, name, None if value is None else tuple(value))
        if self.on_damage not in {"fail", "warn"}:
            raise ArgumentError(f"on_damage: expected 'fail' or 'warn', got {self.on_damage!r}")
        # the queues of the ranges say the topic
        subscription = build_subscription_data("", self.tags, now=0)
        object.__setattr__(self, "wanted_tags", frozenset(subscription.tags_set) or None)
        if self.sql is not None:
            problem = check_sql92(self.sql)
            if problem is not None:
                raise ExpressionError(problem)
            subscription = build_subscription_data("", MessageSelector.by_sql(self.sql), now=self.sub_version)
        object.__setattr__(self, "subscription", subscription)


class RangePull:
    """Reads ranges of queues of one broker; a queue once at most.

    Args:
        request: What is read.
        ranges: The ranges.
        address: `host:port` of the broker, where that is known; otherwise a name server is asked.

    Raises:
        ArgumentError: Ranges of several brokers, or two of a queue.

    Example:
        >>> import rmqfast
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     with rmqfast.Producer("p", name_server=cluster.name_server) as producer:
        ...         result = producer.send(rmqfast.Message("orders", b"hello"))
        ...     config = ClientConfig(name_server=cluster.name_server)
        ...     request = RangeRequest(config=config, group="g", columns=("body",))
        ...     batches = list(RangePull(request, [QueueRange(result.queue, 0, 1)]).batches())
        >>> batches[0].to_pylist()
        [{'body': b'hello'}]

    Source: `DefaultLitePullConsumerImpl.PullTaskImpl`.
    """

    def __init__(self, request: RangeRequest, ranges: Sequence[QueueRange], address: str | None = None) -> None:
        self._reader = RangeReader(request, ranges, address)

    @property
    def rows(self) -> int:
        """Messages that were handed out."""
        return self._reader.rows

    @property
    def size(self) -> int:
        """Bytes of records that were pulled."""
        return self._reader.size

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields batches; the messages of a queue are in their order, those of several queues are mixed.

        Raises:
            DataLossError: Messages of a range are not there any more, unless `on_damage` is "warn".
            CorruptError: A body does not decompress, or with `verify_crc` does not match its CRC, unless `on_damage` is
                "warn".
            ClientError: A broker refuses, or does not answer for as long as the request's patience is.
            MissingExtraError: pyarrow is not installed.
        """
        return batches_of(self._reader)


def batches_of(reader: RangeReader) -> Iterator[pa.RecordBatch]:
    """Yields the batches of a reader, and closes it."""
    pa = imported("pyarrow", "arrow")
    try:
        while (batch := reader.next_batch()) is not None:
            yield pa.record_batch(batch)
    finally:
        reader.close()
