"""Opens the state of a broker: its store, topics, groups, clients, offsets and services.

Source: RocketMQ's `BrokerController`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from rmqfast._native import DataPlane, Mailbox
from rmqfast.broker.clients.client_channel import ChangeNotifier
from rmqfast.broker.clients.consumer_filter_manager import ConsumerFilterManager
from rmqfast.broker.clients.consumer_manager import ConsumerManager
from rmqfast.broker.clients.name_quota import NameQuota
from rmqfast.broker.clients.producer_manager import ProducerManager
from rmqfast.broker.clients.queue_locks import QueueLockManager
from rmqfast.broker.configuration.config import BrokerConfig, Configuration
from rmqfast.broker.delay.schedule import ScheduleMessageService, TimeOfDay
from rmqfast.broker.ledger.ledger import PullLedger
from rmqfast.broker.messages.appending import InternalAppends
from rmqfast.broker.messages.preparation import Preparation
from rmqfast.broker.metadata import Metadata
from rmqfast.broker.offsets.consumer_offset_manager import ConsumerOffsetManager
from rmqfast.broker.options_of_config import (
    append_options,
    data_plane_options,
    retention_options,
    transaction_options,
)
from rmqfast.broker.queries.runtime_info_processor import used_ratio
from rmqfast.broker.statistics.broker_stats import BrokerStats, counters_of
from rmqfast.broker.statistics.store_stats import StoreStats
from rmqfast.broker.topics.subscription_group_manager import SubscriptionGroupManager
from rmqfast.broker.topics.topic_manager import TopicManager
from rmqfast.broker.transactions.half_messages import HalfMessages
from rmqfast.broker.transactions.transaction_service import TransactionService
from rmqfast.errors import ArgumentError, StoreIOError
from rmqfast.logs import logger_of
from rmqfast.remoting.rate_limit import limited
from rmqfast.store import LiveStore, open_store
from rmqfast.store.config import TopicConfig
from rmqfast.store.config.delay_levels import DelayLevels
from rmqfast.store.writer import WritableStore

_log = limited(logger_of("rmqfast.broker"))


class Integrity:
    """Logs and counts the damage that the data plane has found."""

    def __init__(self, data_plane: DataPlane) -> None:
        self._data_plane = data_plane

    def run_once(self) -> None:
        """Logs as errors the damaged files and messages that were found since the last call."""
        for line in self._data_plane.take_harm_lines():
            _log.error("%s", line)
        for topic, queue_id, queue_offset, physical_offset, size, reason in self._data_plane.take_skipped_messages():
            _log.error(
                "message %d of queue %d of topic %s cannot be given to consumers, who go on behind it: %s "
                "(physical offset %d, %d bytes)",
                queue_offset,
                queue_id,
                topic,
                reason,
                physical_offset,
                size,
            )

    def figures(self) -> Mapping[str, str]:
        """Returns `storeHarm` and `messagesPassedOver` for the runtime statistics. Empty without damage."""
        harm, skipped = self._data_plane.harm, self._data_plane.skipped_messages
        figures = {"storeHarm": harm} if harm else {}
        return figures | ({"messagesPassedOver": str(skipped)} if skipped else {})


class BrokerState:
    """Store, tables, clients, offsets and services of a broker. The processors of `processors_of` use them.

    A given `store` is open already and stays open; otherwise the store below `storePathRootDir` is opened.
    """

    def __init__(
        self,
        config: BrokerConfig,
        mailbox: Mailbox,
        *,
        vip_port: int | None,
        checks_rights: bool,
        now: Callable[[], int],
        steady: Callable[[], int],
        on_topic_change: Callable[[Sequence[TopicConfig] | None], object],
        progress: Callable[[int, int], object] | None = None,
        store: WritableStore | None = None,
    ) -> None:
        root = config.text("storePathRootDir")
        if not root:
            raise ArgumentError("storePathRootDir: expected a directory, got none; without a home there is no default")
        self.root: Final = Path(root)
        self.now = now
        self._steady = steady
        self.configuration: Final = Configuration(config, now=now())
        # Kept for `take`; these two options never change while the broker runs.
        self._options = partial(data_plane_options, vip_port=vip_port, checks_rights=checks_rights)
        options = append_options(config)  # before anything is opened, since a value may be refused
        self._is_borrowed = store is not None
        self.store: WritableStore = store or open_store(
            self.root, mode="a", options=options, retention=retention_options(config), progress=progress
        )
        try:
            self.metadata: Final = Metadata(self.root, options.file_permission)
            self._open_data_plane(mailbox, config)
            self._open_topics_and_groups(on_topic_change)
            self._open_clients(config)
            self._open_services(config)
            self.preparation: Final = Preparation(self.topics, self.groups, self.names, vip_port=vip_port)
        except BaseException:
            self._give_up()
            raise

    def config(self) -> BrokerConfig:
        return self.configuration.current

    def count_sent_back(self, group: str, topic: str) -> None:
        self.data_plane.count_sent_back(f"{topic}@{group}")

    def bytes_to_flush(self) -> int:
        return self.data_plane.unflushed

    def note_disk_usage(self) -> None:
        """Gives the data plane the error text for sends while the disk is full."""
        log, queues, index = (used_ratio(self.root / name) for name in ("commitlog", "consumequeue", "index"))
        self.data_plane.set_disk_usage(f"CL: {log:5.2f} CQ: {queues:5.2f} INDEX: {index:5.2f}")

    def persist(self) -> None:
        """Saves offsets, delays and filters, and writes RocketMQ's files."""
        self.offsets.persist()
        self.schedule.persist()
        self.filters.persist(now=self.now())
        # After a clean stop, a Java broker may take over the store.
        self.metadata.write_files()

    def close(self) -> None:
        """Saves everything and closes the store."""
        try:
            self.persist()
        finally:
            self._give_up()

    def take(self, config: BrokerConfig) -> None:
        """Applies a configuration that was changed at run time."""
        self.data_plane.set_options(self._options(config))
        self.transactions.options = transaction_options(config)

    def _give_up(self) -> None:
        try:
            # The constructor may have failed before these attributes were set.
            if (ledger := getattr(self, "ledger", None)) is not None:
                ledger.close()
            if hasattr(self, "data_plane"):
                # Report damage found since the last periodic report.
                self.integrity.run_once()
                self.data_plane.close()
            if hasattr(self, "metadata"):
                self.metadata.close()
        finally:
            if not self._is_borrowed:
                self.store.close()

    def _open_data_plane(self, mailbox: Mailbox, config: BrokerConfig) -> None:
        self.live: LiveStore = self.store.live
        self.data_plane: DataPlane = DataPlane.open(self.store.appender, mailbox, self._options(config))
        self.integrity: Integrity = Integrity(self.data_plane)
        self.data_plane.set_permission(config.number("brokerPermission"))
        self.appends: InternalAppends = InternalAppends(
            self.store,
            self.data_plane,
            cluster_name=config.text("brokerClusterName"),
            counts_due=config.flag("enableScheduleMessageStats"),
        )

    def _open_topics_and_groups(self, on_topic_change: Callable[[Sequence[TopicConfig] | None], object]) -> None:
        self.topics: TopicManager = TopicManager(
            self.metadata, self.config, self.data_plane, now=self.now, on_change=on_topic_change
        )
        self.groups: SubscriptionGroupManager = SubscriptionGroupManager(
            self.metadata, self.config, self.data_plane, now=self.now
        )

    def _open_clients(self, config: BrokerConfig) -> None:
        self.filters: ConsumerFilterManager = ConsumerFilterManager(self.metadata)
        # Before any consumer connects, since heartbeats revive loaded expressions.
        self.filters.load(now=self.now())
        self.ledger: PullLedger | None = self._open_ledger(config)
        self.consumers: ConsumerManager = ConsumerManager(
            self.data_plane,
            self.filters,
            ledger=self.ledger,
            is_notifying=lambda: self.config().flag("notifyConsumerIdsChangedEnable"),
        )
        self.notifier: ChangeNotifier = ChangeNotifier()
        self.names: NameQuota = NameQuota(config.number("newNamesBurst"), config.number("newNamesPerSecond"))
        self.producers: ProducerManager = ProducerManager()
        self.locks: QueueLockManager = QueueLockManager()
        self.offsets: ConsumerOffsetManager = ConsumerOffsetManager(self.metadata, self.data_plane, self.live)
        self.offsets.load()
        counters = partial(counters_of, self.data_plane)
        self.stats: BrokerStats = BrokerStats(counters)
        self.store_stats: StoreStats = StoreStats(counters, now=self.now())

    def _open_ledger(self, config: BrokerConfig) -> PullLedger | None:
        if not config.flag("pullLedgerEnable"):
            return None
        ledger = PullLedger(
            self.root,
            self.data_plane,
            most_rows=config.number("pullLedgerRows"),
            hours=config.number("pullLedgerHours"),
            now=self.now,
            file_permission=append_options(config).file_permission,
        )
        try:
            ledger.open()
        except StoreIOError:
            # It explains messages; a broker delivers them without it.
            _log.exception("there is no ledger of pulls, as its database cannot be opened")
            return None
        return ledger

    def _open_services(self, config: BrokerConfig) -> None:
        self.schedule: ScheduleMessageService = ScheduleMessageService(
            self.metadata,
            self.live,
            self.appends.append_due,
            levels=DelayLevels(config.text("messageDelayLevel")),
            started=self.now(),
            time_of_day=TimeOfDay(self.now(), steady=self._steady),
            flush=self.store.flush,
            delivered=self.appends.count_delivery,
        )
        self.half: HalfMessages = HalfMessages(
            self.live, self.appends.append, store_host=config.broker_address, now=self.now
        )
        self.transactions: TransactionService = TransactionService(
            self.half,
            self.data_plane,
            available_channel=self.producers.available_channel,
            make_topic=lambda *topic: self.topics.create_for_send_back(
                topic[0], topic[1], perm=topic[2], sys_flag=topic[3]
            ),
            options=transaction_options(config),
        )
