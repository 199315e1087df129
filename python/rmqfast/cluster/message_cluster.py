"""Topics of a live cluster as scans and tables, with the arguments, rows and readers of a store.

Source: RocketMQ's `DefaultMQPullConsumer`, `MQClientInstance`, `ConsumeQueue`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

from rmqfast._native import TopicRead
from rmqfast.arguments import Duration, Number, Time, integer, suggests_names, whole
from rmqfast.client.instance import ClientConfig
from rmqfast.cluster.topic_options import (
    ByBroker,
    TopicOffsets,
    Via,
    errors_name_arguments,
    option_texts,
    selects_nothing,
    topic_options,
)
from rmqfast.cluster.topic_source import Filter, TopicSource
from rmqfast.errors import ArgumentError, ArgumentTypeError
from rmqfast.store import DecodeArguments, ReadArguments, Scan, ScanArguments, ScanRequest
from rmqfast.store.request import between, check_names
from rmqfast.store.scan_source import OnDamage, fails_on_damage

if TYPE_CHECKING:
    from rmqfast.store.dataset import ScanDataset

#: Default consumer group for requests to brokers.
_GROUP = "rmqfast_scan"

ClusterOffsets = TopicOffsets | Number | Mapping[int, Number]


class ClusterArguments(ReadArguments, DecodeArguments, total=False):
    """Keyword arguments of `MessageCluster.scan`, with those of `rmqfast.store.DecodeArguments`.

    Attributes:
        keys_prefix: Only messages with a key or UNIQ_KEY that begins with this.
        batch_rows: Maximum rows of a batch.
        batch_bytes: Approximate bytes of a batch.
    """

    keys_prefix: str | None
    batch_rows: int
    batch_bytes: int


class ClusterScanArguments(ClusterArguments, total=False):
    """All keyword arguments of `MessageCluster.scan`, which has their descriptions."""

    start_offset: ClusterOffsets | None
    end_offset: ClusterOffsets | None
    threads: Number
    on_damage: OnDamage
    via: Via
    mirror_path: str | os.PathLike[str] | None


@suggests_names
def open_cluster(
    name_server: str | Sequence[str] | None = None,
    *,
    config: ClientConfig | None = None,
    group: str = _GROUP,
    pull_batch_size: int = 32,
    retry_timeout: Duration = 60.0,
) -> MessageCluster:
    """Returns the topics of a live cluster, to scan and query them as those of a store. Sends no request yet.

    Args:
        name_server: `host:port`, several separated by `;`; None to use `config` or NAMESRV_ADDR.
        config: Accounts, TLS, addresses, timeouts: all other settings of the connection.
        group: Consumer group for requests to brokers; no offset is committed.
        pull_batch_size: Messages to request per pull; brokers return at most 32, unless their limits were raised.
        retry_timeout: Time in seconds that a scan waits for a broker that does not answer.

    Raises:
        ArgumentError: There is no name server, or a value is out of range.

    Example:
        >>> import duckdb, rmqfast
        >>> cluster = rmqfast.open_cluster(getfixture("live_cluster").name_server)
        >>> orders = cluster.table("orders")
        >>> duckdb.sql("select count(*) from orders where tags = 'paid'").fetchall()
        [(240,)]
    """
    own = ClientConfig.of(config, name_server)
    return MessageCluster(own, group=group, pull_batch_size=pull_batch_size, retry_timeout=retry_timeout)


class MessageCluster:
    """The topics of a live cluster, opened by `open_cluster`. Nothing stays open between two reads.

    Example:
        >>> import rmqfast
        >>> cluster = rmqfast.open_cluster(getfixture("live_cluster").name_server)
        >>> cluster.topics()["orders"]["broker-a"]
        {0: (0, 150), 1: (0, 150), 2: (0, 150), 3: (0, 150)}
        >>> cluster.scan("orders", tags="paid", columns=["tags"]).head(1).to_pydict()
        {'tags': ['paid']}
    """

    def __init__(self, config: ClientConfig, *, group: str, pull_batch_size: int, retry_timeout: Duration) -> None:
        # refused here and not at the first scan
        if not config.name_servers:
            raise ArgumentError("name_server: expected host:port, got none: pass it, or set NAMESRV_ADDR")
        self.config = config
        self._settings = {"group": group, "pull_batch_size": pull_batch_size, "retry_timeout": retry_timeout}
        self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Does nothing: there is nothing to close. Makes clusters and stores usable alike."""

    def __repr__(self) -> str:
        return f"MessageCluster({';'.join(self.config.name_servers)!r})"

    def topics(self) -> dict[str, dict[str, dict[int, tuple[int, int]]]]:
        """Returns the queues of all topics of users: `{topic: {broker_name: {queue_id: (min_offset, max_offset)}}}`.

        Raises:
            ClientError: A name server or a broker does not answer, or refuses.
        """
        topics: dict[str, dict[str, dict[int, tuple[int, int]]]] = {}
        for topic, broker, queue_id, first, end in self._read().bounds():
            topics.setdefault(topic, {}).setdefault(broker, {})[queue_id] = (first, end)
        return topics

    def scan(
        self,
        topic: str | Sequence[str] | None = None,
        *,
        start_offset: ClusterOffsets | None = None,
        end_offset: ClusterOffsets | None = None,
        threads: Number = 1,
        on_damage: OnDamage = "fail",
        via: Via = "pull",
        mirror_path: str | os.PathLike[str] | None = None,
        **arguments: Unpack[ClusterArguments],
    ) -> Scan:
        """Streams messages as Arrow record batches. This call fixes the range of messages.

        Args:
            topic: One topic or several. Default: every topic of users; topics of the system only by name.
            start_offset: A queue offset for all queues, one by queue id, or offsets by broker and queue, which are
                below the topic's name with several topics. -2 is earliest, -1 is latest. Default: "earliest".
            end_offset: The same, exclusive. Default: "latest", the present end.
            threads: Number of reading threads. With more than one, batches arrive in no order.
            on_damage: "fail" raises an error if messages no longer exist or a body is damaged. "warn" reads what is
                left, and warns at the end with a `DamageWarning`.
            via: "pull" requests the messages. "log" reads the brokers' logs at their HA ports; "auto" takes the cheaper
                way. "mirror" reads the copies in `mirror_path`.
            mirror_path: The directory of `rmqfast mirror`.
            arguments: Filters, columns and batch sizes: see `rmqfast.cluster.ClusterArguments`. Brokers filter by
                `tags`, and by `sql` with `enablePropertyFilter=true`; `keys` are compared after the pull.

        Raises:
            UnknownTopicError: The name servers do not know a topic.
            UnknownColumnError: A column does not exist.
            ExpressionError: `tags` or `sql` is invalid.
            ArgumentError: A value is out of range.
            DataLossError: A queue lacks an offset, unless `on_damage` is "warn".
            ClientError: A name server or a broker does not answer, or refuses.

        Example:
            >>> import rmqfast
            >>> cluster = rmqfast.open_cluster(getfixture("live_cluster").name_server)
            >>> cluster.scan("orders", start_offset=0, columns=["tags"]).schema.names
            ['tags']
        """
        check_names(arguments, ClusterArguments)
        fails = fails_on_damage(on_damage)
        count = integer("threads", threads, 1)
        request = ScanRequest.of(topic, cast("ScanArguments", arguments), broker_name=None)
        filters: list[Filter] = []
        start = _offsets_of("start_offset", start_offset, topic, filters)
        end = _offsets_of("end_offset", end_offset, topic, filters)
        is_empty = selects_nothing(request) or request.among == ()
        # an option cannot name no topic
        topic = None if is_empty else topic
        options = self._options(topic, request, start, end, fails=fails, via=via, mirror_path=mirror_path)
        if is_empty:
            return Scan(TopicSource(self.config, options, (), (), count), request)
        return Scan(TopicSource.plan(self.config, options, filters=filters, threads=count), request)

    def table(self, topic: str | Sequence[str] | None = None, **arguments: Unpack[ClusterScanArguments]) -> ScanDataset:
        """Returns messages as a table for SQL and data frames: `scan` as a dataset, see `Scan.dataset`.

        Args:
            topic: See `scan`.
            arguments: Those of `scan`: see `rmqfast.cluster.ClusterScanArguments`.

        Raises:
            RmqError: See `scan`.
            MissingExtraError: pyarrow is not installed.
        """
        return self.scan(topic, **arguments).dataset()

    def diff(
        self, a: Time, b: Time, topic: str | Sequence[str] | None = None, **arguments: Unpack[ClusterScanArguments]
    ) -> Scan:
        """Scans the messages that were stored after one time, up to another: those of `as_of=b` without `as_of=a`.

        Args:
            a: A store time, which does not belong to the range.
            b: A later store time, which does.
            topic: See `scan`.
            arguments: Those of `scan`: see `rmqfast.cluster.ClusterScanArguments`.

        Raises:
            ArgumentError: `b` is before `a`, or a value is out of range.
            RmqError: See `scan`.
        """
        start, end = between(a, b, arguments)
        arguments["start_time"], arguments["as_of"] = start, end
        return self.scan(topic, **arguments)

    def read_options(self, topic: str | Sequence[str] | None, request: ScanRequest, *, fails: bool) -> dict[str, str]:
        """Returns the options of a read of all messages of topics, as `rust/spark` parses them."""
        return self._options(topic, request, "earliest", "latest", fails=fails, via="pull", mirror_path=None)

    def _read(self) -> TopicRead:
        """Returns a read of all topics of users."""
        options = self.read_options(None, ScanRequest(), fails=True)
        with errors_name_arguments():
            return TopicRead("topic batch", options, [], config=self.config)

    def _options(
        self,
        topic: str | Sequence[str] | None,
        request: ScanRequest,
        start: TopicOffsets,
        end: TopicOffsets,
        *,
        fails: bool,
        via: Via,
        mirror_path: str | os.PathLike[str] | None,
    ) -> dict[str, str]:
        settings: dict[str, Any] = self._settings
        options = topic_options(
            topic,
            request,
            start_offset=start,
            end_offset=end,
            fails_on_damage=fails,
            via=via,
            mirror_path=mirror_path,
            **settings,
        )
        return option_texts({"nameServer": ";".join(self.config.name_servers)} | options)


_USUAL: dict[str, tuple[TopicOffsets, str]] = {"start_offset": ("earliest", ">="), "end_offset": ("latest", "<")}
_WORDS: dict[int, TopicOffsets] = {-1: "latest", -2: "earliest"}


def _offsets_of(
    name: str, given: ClusterOffsets | None, topic: str | Sequence[str] | None, filters: list[Filter]
) -> TopicOffsets:
    """Returns the offsets for the option. One number for all queues becomes a filter instead."""
    usual, kind = _USUAL[name]
    if given is None or given in ("earliest", "latest"):
        return usual if given is None else cast("TopicOffsets", given)
    if whole(given) is not None:
        number = integer(name, cast("Number", given), -2)
        if number in _WORDS:
            return _WORDS[number]
        filters.append((kind, "queue_offset", [number]))
        return usual
    if not isinstance(given, Mapping):
        forms = "'earliest', 'latest', an offset, or one by queue as {0: 100}"
        raise ArgumentTypeError(f"{name}: expected {forms}, got {given!r}")
    if not given or any(whole(queue) is None for queue in given):
        return cast("TopicOffsets", given)
    queues = cast("Mapping[int, Number]", given)
    by_broker: ByBroker = {"*": {integer(name, queue): integer(name, offset) for queue, offset in queues.items()}}
    if topic is None:
        raise ArgumentError(f"{name}: expected offsets below the names of topics, got {given!r} for all topics")
    return by_broker if isinstance(topic, str) else dict.fromkeys(topic, by_broker)
