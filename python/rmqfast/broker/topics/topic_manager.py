"""Keeps the topics of a broker: of clients, made by sends, and its own.

Source: `TopicConfigManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from rmqfast._native import DataPlane, is_legal_name
from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.broker.metadata import Metadata
from rmqfast.broker.topics.topic_names import (
    FAQ,
    RETRY_PREFIX,
    refuse_not_allowed_send,
    system_topics,
    validate_topic,
)
from rmqfast.broker.topics.topic_rules import READ_WRITE, broker_topics, created_after, inherits, trace_topic
from rmqfast.errors import ArgumentError, ResponseError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.remoting import ResponseCode
from rmqfast.remoting.log_limit import limited
from rmqfast.store.config import DataVersion, TopicConfig, TopicConfigTable

_log = limited(logger_of(__name__))
_T = TypeVar("_T")
_UNIT, _UNIT_SUB = 1, 2


class TopicManager:
    """Topics by name; each change is saved, told to the data plane, then to `on_change`. Any thread may call it.

    `on_change` gets the topics that are to be registered at the name servers, or None where all are.
    """

    def __init__(
        self,
        metadata: Metadata,
        config: Callable[[], BrokerConfig],
        data_plane: DataPlane,
        *,
        now: Callable[[], int],
        on_change: Callable[[Sequence[TopicConfig] | None], object] = lambda _: None,
    ) -> None:
        """Reads the topics of a store.

        Raises:
            CorruptError: The file is there, and neither it nor its `.bak` can be read.
        """
        self._metadata = metadata
        self._config = config
        self._data_plane = data_plane
        self._now = now
        self._on_change = on_change
        self._lock = QuietLock(reentrant=True)
        self._table = metadata.load_with(TopicConfigTable, broker_topics(config()))
        if self._table.data_version == DataVersion():
            self._table.data_version = DataVersion(timestamp=now())
        for topic in self._table.values():
            data_plane.put_topic(topic)

    @property
    def data_version(self) -> DataVersion:
        """When a topic was changed last, and how often."""
        return self._table.data_version

    @property
    def system_topics(self) -> list[str]:
        """The broker's own topics."""
        config = self._config()
        return system_topics(config.text("brokerClusterName"), config.text("brokerName"), trace_topic(config))

    def get(self, name: str) -> TopicConfig | None:
        """A topic; None where there is none.

        Source: `TopicConfigManager.selectTopicConfig`.
        """
        return self._table.get(name)

    def topics(self) -> list[TopicConfig]:
        """All topics."""
        with self._lock:
            return list(self._table.values())

    def update(self, topic: TopicConfig) -> None:
        """Adds a topic, or takes the place of the one of its name; that alone is registered.

        Source: `TopicConfigManager.updateTopicConfig`, `BrokerController.registerIncrementBrokerData`.
        """
        with self._lock:
            self._stage([topic])
        self._settle([topic])
        self._on_change([topic])

    def delete(self, name: str) -> None:
        """Removes a topic; one that is not there is no change.

        Source: `TopicConfigManager.deleteTopicConfig`.
        """
        with self._lock:
            self._table.remove(name, now=self._now())
            self._data_plane.remove_topic(name)
            self._metadata.put(TopicConfigTable, name, None)
            self._put_version()
        self._metadata.flush_or_log()

    def take(self, table: TopicConfigTable) -> None:
        """Has the topics of a master in place of its own, and its version.

        Source: `SlaveSynchronize.syncTopicConfig`.
        """
        with self._lock:
            gone = [name for name in self._table if name not in table]
            changed = [topic for topic in table.values() if self._table.get(topic.topic_name) != topic]
            for name in gone:
                self._table.remove(name, now=self._now())
                self._data_plane.remove_topic(name)
                self._metadata.put(TopicConfigTable, name, None)
            for topic in changed:
                self._table.put(topic, now=self._now())
                self._metadata.put(TopicConfigTable, topic.topic_name, topic.to_json())
            self._table.data_version = table.data_version
            self._put_version()
        self._settle(changed)
        if gone or changed:
            self._on_change(None)

    def create_for_send(
        self,
        name: str,
        default_topic: str,
        default_queue_nums: int,
        *,
        remote_address: str = "",
        unit_mode: bool = False,
        admit: Callable[[], object] = lambda: None,
    ) -> TopicConfig:
        """The topic that a message is sent to; it is made where it is not there and may be.

        Raises:
            ResponseError: A name that no topic may have, a topic that nobody may send to, or none by this name (17);
                more topics than the broker takes.

        Source: `AbstractSendMessageProcessor.msgCheck`, `TopicConfigManager.createTopicInSendMessageMethod`.
        """
        refuse_not_allowed_send(validate_topic(name))
        topic = self.get(name)
        if topic is not None:
            self._settle([topic])  # another thread may be about to
            return topic
        topic = self._create_after(name, default_topic, default_queue_nums, admit, unit_mode=unit_mode)
        # consumers that cannot send a message back to its broker publish it here themselves
        if topic is None and name.startswith(RETRY_PREFIX):
            topic = self.create_for_send_back(name, 1, sys_flag=_UNIT_SUB if unit_mode else 0)
        if topic is None:
            _log.warning("the topic %s does not exist; producer: %s", name, remote_address)
            remark = f"topic[{name}] not exist, apply first please!{FAQ}"
            raise ResponseError(ResponseCode.TOPIC_NOT_EXIST, remark)
        return topic

    def create_for_send_back(
        self, name: str, queues: int, perm: int = READ_WRITE, sys_flag: int = 0
    ) -> TopicConfig | None:
        """A topic of the broker's making, as of retries and of dead letters; as it is where it is there.

        Returns:
            None for a name that no topic may have.

        Source: `TopicConfigManager.createTopicInSendMessageBackMethod`.
        """
        topic = TopicConfig(
            topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm, topic_sys_flag=sys_flag
        )
        return self._create(name, lambda: topic)

    def create_missing(self, topics: Collection[TopicConfig]) -> None:
        """Makes those of these topics that are not there, unless no topic may have their names.

        They are one change: one wait for the disk, and one for name servers.
        """
        new_topics = self._missing(topics)
        if not new_topics:
            return
        with self._lock:
            new_topics = self._missing(new_topics)
            self._stage(new_topics)
        self._settle(new_topics)
        self._on_change(new_topics)

    def update_order_topics(self, names: Collection[str]) -> None:
        """Makes these ordered topics, and no others.

        Source: `TopicConfigManager.updateOrderTopicConfig`.
        """
        with self._lock:
            misordered = [topic for topic in self._table.values() if topic.order != (topic.topic_name in names)]
            configs = [replace(topic, order=not topic.order) for topic in misordered]
            self._stage(configs)
        self._settle(configs)

    def next_version(self) -> None:
        """Makes name servers take all topics anew, as where what the broker allows has changed."""
        self.advance()
        self._on_change(None)

    def advance(self) -> None:
        """Gives the topics as they are a version that no name server has."""
        with self._lock:
            self._table.data_version = self._table.data_version.next(self._now())

    def hold(self, work: Callable[[Collection[str]], _T]) -> _T:
        """Does something with the names of all topics, while none is made or removed."""
        with self._lock:
            return work(frozenset(self._table))

    def wrapper(
        self,
        topics: Iterable[TopicConfig] | None = None,
        as_sent: Callable[[TopicConfig], TopicConfig] = lambda topic: topic,
    ) -> dict[str, Any]:
        """The topics as RocketMQ sends them, to a name server or a slave, and their version at the same moment.

        Source: `TopicConfigSerializeWrapper`.
        """
        with self._lock:
            selected, version = list(self._table.values() if topics is None else topics), self.data_version
        table = {topic.topic_name: topic.to_json() for topic in map(as_sent, selected)}
        return {"dataVersion": version.to_json(), "topicConfigTable": table}

    def _missing(self, topics: Collection[TopicConfig]) -> list[TopicConfig]:
        return [topic for topic in topics if topic.topic_name not in self._table and is_legal_name(topic.topic_name)]

    def _create_after(
        self, name: str, default: str, queue_nums: int, admit: Callable[[], object], *, unit_mode: bool
    ) -> TopicConfig | None:
        model = self.get(default)
        auto_create = self._config().flag("autoCreateTopicEnable")
        if model is None or not inherits(model, auto_create=auto_create):
            _log.warning("no topic is made after %r, which is %s", default[:200], model or "not there")
            return None
        in_unit = _UNIT_SUB if name.startswith(RETRY_PREFIX) else _UNIT
        sys_flag = in_unit if unit_mode else 0
        # only whoever really makes a topic pays for it
        if self.get(name) is None:
            admit()
        return self._create(name, lambda: created_after(model, name, queue_nums, sys_flag))

    def _create(self, name: str, new: Callable[[], TopicConfig]) -> TopicConfig | None:
        with self._lock:
            existing = self.get(name)
            topic = existing or new()
            if existing is None:
                try:
                    self._stage([topic])
                except ArgumentError as error:
                    _log.warning("the topic %r cannot be made: %s", name[:200], error)
                    return None
        self._settle([topic])
        if existing is None:
            self._on_change([topic])
        return topic

    def _stage(self, topics: Sequence[TopicConfig]) -> None:
        """Takes topics as one change, which is not saved yet.

        Raises:
            ResponseError: More topics than the broker takes.
        """
        if not topics:
            return
        most = self._config().number("maxTopicCount")
        count = len(self._table) + sum(topic.topic_name not in self._table for topic in topics)
        # a limit that was lowered below what is there refuses new topics, and changes of old ones still pass
        if count > max(most, len(self._table)):
            remark = f"[QUOTA] topics of a broker: expected at most {most}, got {count} (maxTopicCount)"
            raise ResponseError(ResponseCode.SYSTEM_ERROR, remark)
        version = self.data_version.next(self._now())
        for topic in topics:
            self._table.put(topic, now=self._now())
            self._metadata.put(TopicConfigTable, topic.topic_name, topic.to_json())
        self._table.data_version = version
        self._put_version()

    def _settle(self, topics: Sequence[TopicConfig]) -> None:
        """Waits until topics are saved, then tells the data plane of them as they are now."""
        # Saved first: from then on messages are acknowledged, and after a kill nobody finds them without their topic.
        self._metadata.flush_or_log()
        with self._lock:
            for topic in topics:
                now = self.get(topic.topic_name)
                if now is not None:
                    self._data_plane.put_topic(now)

    def _put_version(self) -> None:
        self._metadata.put_member(TopicConfigTable, "dataVersion", self.data_version.to_json())
