"""The control plane of clients put together, as a broker has it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rmqfast._native import DataPlane
from rmqfast.broker.clients.client_call_processor import ClientCallProcessor
from rmqfast.broker.clients.client_channel import ChangeNotifier
from rmqfast.broker.clients.client_processor import ClientProcessor, ConnectionProcessor
from rmqfast.broker.clients.consumer_filter_manager import ConsumerFilterManager
from rmqfast.broker.clients.consumer_manager import ConsumerManager
from rmqfast.broker.clients.name_quota import NameQuota
from rmqfast.broker.clients.producer_manager import ProducerManager
from rmqfast.broker.clients.queue_locks import QueueLockManager, QueueLockProcessor
from rmqfast.broker.metadata import Metadata
from rmqfast.broker.offsets.consumer_offset_manager import ConsumerOffsetManager
from rmqfast.broker.offsets.consumer_offset_processor import ConsumerOffsetProcessor, ResetOffsetProcessor
from rmqfast.remoting import Later, Processor, Request, Response, process
from rmqfast.store import LiveStore
from rmqfast.store.config import SubscriptionGroupConfig, TopicConfig

from .client_doubles import QueuesByHand, Tables

BROKER = "broker-a"


class Control:
    """Managers and processors over tables in memory; the time is told.

    Attributes:
        groups: Configurations of groups; others are made when they are asked for.
        created: Retry topics that were made: queues and system flag.
        topics: Configurations of topics.
        time: Milliseconds since 1970.
    """

    def __init__(
        self,
        root: Path,
        store: LiveStore | None = None,
        data_plane: DataPlane | None = None,
    ) -> None:
        store = store or QueuesByHand({})
        self.tables = Tables()
        self.data_plane = data_plane or self.tables.data_plane
        self.metadata = Metadata(root)
        self.filters = ConsumerFilterManager(self.metadata)
        self.is_notifying = True
        self.consumers = ConsumerManager(self.data_plane, self.filters, is_notifying=lambda: self.is_notifying)
        self.producers = ProducerManager()
        self.locks = QueueLockManager()
        self.offsets = ConsumerOffsetManager(self.metadata, self.data_plane, store)
        self.groups: dict[str, SubscriptionGroupConfig] = {}
        self.is_creating_groups = True
        self.created: dict[str, tuple[int, int]] = {}
        self.topics: dict[str, TopicConfig] = {}
        self.time = 1_800_000_000_000
        self.notifier = ChangeNotifier()
        self.clients = self._client_processor()
        parts = (
            self.clients,
            ConnectionProcessor(self.consumers, self.producers),
            QueueLockProcessor(self.locks, lambda: self.time),
            ConsumerOffsetProcessor(self.offsets, self.consumers, self.topics.get),
            ClientCallProcessor(self.consumers, store, BROKER),
            ResetOffsetProcessor(
                consumers=self.consumers,
                offsets=self.offsets,
                store=store,
                find_topic=self.topics.get,
                broker_name=BROKER,
                note_reset=self.data_plane.note_reset,
            ),
        )
        self.processors: dict[int, Processor] = {}
        for part in parts:
            self.processors |= part.processors()

    def answer(self, request: Request) -> Response:
        """What a request is answered, once there is an answer."""
        answer = process(self.processors, request)
        if isinstance(answer, Later):
            answer = answer.work()
        assert isinstance(answer, Response)
        return answer

    def _client_processor(self) -> ClientProcessor:
        return ClientProcessor(
            self.data_plane,
            consumers=self.consumers,
            producers=self.producers,
            filters=self.filters,
            notify=self.notifier.take,
            find_group=self._find_group,
            is_known=lambda name: name in self.groups,
            names=NameQuota(10_000, 100),
            create_retry_topics=self._create_retry_topics,
            now=lambda: self.time,
        )

    def _find_group(self, name: str) -> SubscriptionGroupConfig | None:
        if name not in self.groups and self.is_creating_groups:
            self.groups[name] = SubscriptionGroupConfig(group_name=name)
            self.data_plane.put_group(self.groups[name])
        return self.groups.get(name)

    def _create_retry_topics(self, topics: Sequence[TopicConfig]) -> None:
        for topic in topics:
            self.created.setdefault(topic.topic_name, (topic.read_queue_nums, topic.topic_sys_flag))
