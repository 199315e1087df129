"""The parts of a broker that answer administrators, put together over a real store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import rmqfast
from rmqfast.broker.clean_processor import CleanProcessor
from rmqfast.broker.clients.client_processor import ClientProcessor
from rmqfast.broker.clients.consumer_filter_manager import ConsumerFilterManager
from rmqfast.broker.clients.consumer_manager import ConsumerManager
from rmqfast.broker.clients.name_quota import NameQuota
from rmqfast.broker.clients.producer_manager import ProducerManager
from rmqfast.broker.config_processor import ConfigProcessor
from rmqfast.broker.configuration.config import BrokerConfig, Configuration
from rmqfast.broker.delay.schedule import DelayOffsetProcessor
from rmqfast.broker.metadata import Metadata
from rmqfast.broker.offsets.consumer_offset_manager import ConsumerOffsetManager
from rmqfast.broker.queries.broker_details import BrokerDetails
from rmqfast.broker.queries.consume_stats_processor import ConsumeStatsProcessor
from rmqfast.broker.queries.query_message_processor import QueryMessageProcessor
from rmqfast.broker.queries.queue_processor import ConsumeQueueProcessor, QueueBoundsProcessor
from rmqfast.broker.queries.runtime_info_processor import RuntimeInfoProcessor
from rmqfast.broker.statistics.broker_stats import BrokerStats, BrokerStatsProcessor
from rmqfast.broker.statistics.store_stats import StoreStats
from rmqfast.broker.topics.subscription_group_manager import SubscriptionGroupManager
from rmqfast.broker.topics.subscription_group_processor import SubscriptionGroupProcessor
from rmqfast.broker.topics.topic_manager import TopicManager
from rmqfast.broker.topics.topic_processor import TopicProcessor
from rmqfast.errors import ResponseError
from rmqfast.remoting import Later, Processor, Request, Response, process
from rmqfast.remoting.fastjson import decode, encode
from rmqfast.store.config import TopicConfig
from tests.broker.client_doubles import Line, Tables

NOW = 1_795_232_100_000
SMALL = rmqfast.AppendOptions(file_size=1 << 22, queue_file_size=20_000, index_slots=1000, index_entries=4000)


class ControlPlane:
    """Everything that answers administrators."""

    def __init__(self, path: Path, values: Mapping[str, str] | None = None, *, retention: bool = True) -> None:
        self.now = NOW
        self.path = path
        keep = rmqfast.RetentionOptions(clean_forcibly=False, warning_ratio=100, force_ratio=99, disk_max_used_ratio=95)
        config = BrokerConfig({"brokerName": "broker-a", "listenPort": "25010"} | dict(values or {}))
        self.store = rmqfast.open_store(
            path,
            mode="a",
            options=replace(SMALL, store_host=config.broker_address),
            retention=keep if retention else None,
            clock=lambda: self.now,
        )
        self.tables = Tables()
        self.registered: list[str | None] = []
        self.configuration = Configuration(config, now=NOW)
        self.metadata = Metadata(path)
        self.topics = TopicManager(
            self.metadata,
            self.config,
            self.tables.data_plane,
            now=self.clock,
            on_change=lambda topics: self.registered.extend(names_of(topics)),
        )
        self.groups = SubscriptionGroupManager(self.metadata, self.config, self.tables.data_plane, now=self.clock)
        self.filters = ConsumerFilterManager(self.metadata)
        self.consumers = ConsumerManager(self.tables.data_plane, self.filters)
        self.producers = ProducerManager()
        self.offsets = ConsumerOffsetManager(self.metadata, self.tables.data_plane, self.store.live)
        self.clients = self._clients()
        self.lines: defaultdict[str, Line] = defaultdict(Line)
        self.stats = BrokerStats(self.tables.counters)
        self.store_stats = StoreStats(self.tables.counters, now=NOW)
        self.delay_offsets: dict[int, int] = {}
        self.changed: list[Mapping[str, str]] = []
        self.processors = self._processors()

    def config(self) -> BrokerConfig:
        return self.configuration.current

    def clock(self) -> int:
        return self.now

    def answer(self, code: int, ext_fields: Mapping[str, str] | None = None, body: bytes = b"") -> Response:
        """What is answered to a request, at once or later."""
        answer = process(self.processors, Request(code, ext_fields or {}, body, Line()))
        if isinstance(answer, Later):
            try:
                return answer.work()
            except ResponseError as error:
                return Response(error.code, error.remark)
        assert isinstance(answer, Response)
        return answer

    def json(self, code: int, ext_fields: Mapping[str, str] | None = None, body: bytes = b"") -> Any:
        """The body of an answer that is no error."""
        answer = self.answer(code, ext_fields, body)
        assert answer.code == 0, answer
        return decode(answer.body)

    def heartbeat(self, body: bytes) -> None:
        """Hears a client; its groups and what they want are taken."""
        line = self.lines[decode(body)["clientID"]]
        assert self.clients.heartbeat(Request(34, {}, body, line)).code == 0

    def leave(self, fields: Mapping[str, str]) -> None:
        """Hears that a client leaves a group."""
        self.clients.unregister(Request(35, fields, b"", self.lines[fields["clientID"]]))

    def come_online(self, group: str, topic: str) -> None:
        """Has a consumer of a group want all of a topic, and nothing else."""
        wanted = {"topic": topic, "subString": "*", "subVersion": self.now}
        consumer = {"groupName": group, "messageModel": "CLUSTERING", "subscriptionDataSet": [wanted]}
        kinds = {"consumeType": "CONSUME_PASSIVELY", "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET"}
        self.heartbeat(encode({"clientID": f"client of {group}", "consumerDataSet": [consumer | kinds]}))

    def queue_directories(self) -> set[str]:
        """The topics that have consume queues on the disk."""
        return {directory.name for directory in (self.path / "consumequeue").iterdir()}

    def close(self) -> None:
        self.metadata.close()
        self.store.close()

    def _clients(self) -> ClientProcessor:
        return ClientProcessor(
            self.tables.data_plane,
            consumers=self.consumers,
            producers=self.producers,
            filters=self.filters,
            find_group=self.groups.find,
            is_known=lambda name: self.groups.get(name) is not None,
            names=NameQuota(10_000, 100),
            create_retry_topics=self.topics.create_missing,
            now=self.clock,
        )

    def _processors(self) -> dict[int, Processor]:
        live, offsets = self.store.live, self.offsets
        families: list[Any] = [
            TopicProcessor(self.topics, offsets, self.store, self.stats, self.config),
            SubscriptionGroupProcessor(self.groups, offsets, self.stats, self.config),
            ConfigProcessor(
                self.configuration, self.topics, self.tables.data_plane, now=self.clock, on_update=self.changed.append
            ),
            RuntimeInfoProcessor(
                self.config,
                self.path,
                live,
                self.store_stats,
                schedule=lambda: {f"scheduleMessageOffset_{level}": "0,0" for level in self.delay_offsets},
                unflushed=lambda: 1142,
                integrity=dict,
                now=self.clock,
            ),
            BrokerStatsProcessor(self.stats),
            ConsumeStatsProcessor(
                self.config,
                self.topics,
                live,
                groups=self.groups,
                consumers=self.consumers,
                offsets=offsets,
                stats=self.stats,
                details=BrokerDetails(
                    self.topics, live, consumers=self.consumers, producers=self.producers, stats=self.stats
                ),
                now=self.clock,
            ),
            ConsumeQueueProcessor(self.topics, live, self.consumers),
            CleanProcessor(self.store, self.topics),
            QueueBoundsProcessor(live),
            QueryMessageProcessor(live, self.config),
            DelayOffsetProcessor(lambda: self.delay_offsets),
        ]
        return {code: processor for family in families for code, processor in family.processors().items()}


def names_of(topics: Sequence[TopicConfig] | None) -> list[str | None]:
    """Which topics are registered; None for all."""
    return [None] if topics is None else [topic.topic_name for topic in topics]
