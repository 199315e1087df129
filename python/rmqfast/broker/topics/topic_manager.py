"""Stores the topics of a broker: those of clients, those that sends created, and its own.

Source: RocketMQ's `TopicValidator`, `TopicConfigManager`, `BrokerController`, `SlaveSynchronize`,
`AbstractSendMessageProcessor`, `TopicConfigSerializeWrapper`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from rmqfast._native import FORBIDDEN_TOPICS, SYSTEM_TOPICS, DataPlane, is_legal_name, name_problem
from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.broker.metadata import Metadata
from rmqfast.errors import ArgumentError, ResponseError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.remoting import ResponseCode
from rmqfast.remoting.rate_limit import limited
from rmqfast.store.config import DataVersion, TopicConfig, TopicConfigTable, built_in_topics
from rmqfast.store.config.delay_levels import SCHEDULE_TOPIC

AUTO_CREATE_TOPIC_KEY_TOPIC = "TBW102"
RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"
SYSTEM_TOPIC_PREFIX = "rmq_sys_"
TRANS_CHECK_MAX_TIME_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
#: Topics that hold waiting messages of other topics; their queues are kept even if no such topic is configured.
WAITING_TOPICS = frozenset({HALF_TOPIC, OP_TOPIC, SCHEDULE_TOPIC})
FAQ = "\nSee http://rocketmq.apache.org/docs/faq/ for further details."


def system_topics(cluster_name: str, broker_name: str, trace_topic: str | None = None) -> list[str]:
    """Returns the broker's own topics, sorted."""
    traces = () if trace_topic is None else (trace_topic,)
    own = (cluster_name, broker_name, *traces, f"{cluster_name}_REPLY_TOPIC")
    return sorted({*SYSTEM_TOPICS, *own})


def validate_topic(topic: str | None) -> str:
    """Returns a legal topic name. Refuses other names with RocketMQ's text."""
    name = topic or ""
    problem = name_problem("new topic", name)
    if problem is not None:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, problem)
    return name


def refuse_system_topic(topic: str, system: Collection[str]) -> None:
    """Refuses a request to create, change or delete one of the broker's own topics."""
    if topic in system or topic.startswith(SYSTEM_TOPIC_PREFIX):
        raise ResponseError(ResponseCode.SYSTEM_ERROR, f"The topic[{topic}] is conflict with system topic.")


def refuse_not_allowed_send(topic: str) -> None:
    """Refuses sends to topics that only the broker itself writes."""
    if topic in FORBIDDEN_TOPICS:
        raise ResponseError(ResponseCode.NO_PERMISSION, f"Sending message to topic[{topic}] is forbidden.")


_log = limited(logger_of(__name__))
READ_WRITE = 6
_INHERIT = 1


def inherits(model: TopicConfig, *, auto_create: bool) -> bool:
    """Whether sends may create topics that copy the settings of this topic."""
    return model.is_inherited and (auto_create or model.topic_name != AUTO_CREATE_TOPIC_KEY_TOPIC)


def created_after(model: TopicConfig, name: str, queue_nums: int, sys_flag: int) -> TopicConfig:
    # A producer may request fewer queues than the default topic has, but not more.
    queues = max(0, min(queue_nums, model.write_queue_nums))
    return TopicConfig(
        topic_name=name,
        read_queue_nums=queues,
        write_queue_nums=queues,
        # Drop the bit of TBW102 by which new topics inherit from a topic.
        perm=model.perm & ~_INHERIT,
        topic_filter_type=model.topic_filter_type,
        topic_sys_flag=sys_flag,
    )


def mask_permission(topic: TopicConfig, broker_permission: int) -> TopicConfig:
    """Returns the topic with the broker's permission, or unchanged if the broker allows both reads and writes."""
    if broker_permission & READ_WRITE == READ_WRITE:
        return topic
    return TopicConfig(
        topic_name=topic.topic_name,
        read_queue_nums=topic.read_queue_nums,
        write_queue_nums=topic.write_queue_nums,
        perm=broker_permission,
    )


def trace_topic(config: BrokerConfig) -> str | None:
    return config.text("msgTraceTopicName") if config.flag("traceTopicEnable") else None


def broker_topics(config: BrokerConfig) -> list[TopicConfig]:
    """Returns the topics that every broker has."""
    return built_in_topics(
        config.text("brokerClusterName"),
        config.text("brokerName"),
        default_queues=config.number("defaultTopicQueueNums"),
        auto_create=config.flag("autoCreateTopicEnable"),
        trace_topic=trace_topic(config),
    )


_T = TypeVar("_T")
_UNIT, _UNIT_SUB = 1, 2


class TopicManager:
    """Topics by name. Changes are saved, then passed to the data plane and to `on_change`. Thread-safe.

    `on_change` gets the topics to register at the name servers, or None for all.
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
        self._metadata = metadata
        self._config = config
        self._data_plane = data_plane
        self._now = now
        self._on_change = on_change
        self._lock = QuietLock(reentrant=True)
        self._table = metadata.load_with(TopicConfigTable, broker_topics(config()))
        # A new table gets the current time as its version.
        if self._table.data_version == DataVersion():
            self._table.data_version = DataVersion(timestamp=now())
        for topic in self._table.values():
            data_plane.put_topic(topic)

    @property
    def data_version(self) -> DataVersion:
        return self._table.data_version

    @property
    def system_topics(self) -> list[str]:
        config = self._config()
        return system_topics(config.text("brokerClusterName"), config.text("brokerName"), trace_topic(config))

    def get(self, name: str) -> TopicConfig | None:
        return self._table.get(name)

    def topics(self) -> list[TopicConfig]:
        with self._lock:
            return list(self._table.values())

    def update(self, topic: TopicConfig) -> None:
        """Adds or replaces a topic, and registers it."""
        with self._lock:
            self._stage([topic])
        self._settle([topic])
        self._on_change([topic])

    def delete(self, name: str) -> None:
        with self._lock:
            self._table.remove(name, now=self._now())
            self._data_plane.remove_topic(name)
            self._metadata.put(TopicConfigTable, name, None)
            self._put_version()
        self._metadata.flush_or_log()

    def take(self, table: TopicConfigTable) -> None:
        """Replaces all topics and their version by those of the master."""
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
        """Returns the topic of a send, which is created if that is allowed.

        Raises:
            ResponseError: The name is illegal, sends to the topic are forbidden, it does not exist (17), or the broker
                has too many topics.
        """
        refuse_not_allowed_send(validate_topic(name))
        topic = self.get(name)
        if topic is not None:
            self._settle([topic])  # another thread may still be saving it
            return topic
        topic = self._create_after(name, default_topic, default_queue_nums, admit, unit_mode=unit_mode)
        # Consumers that cannot send a message back to its broker send it here themselves.
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
        """Returns a retry or dead-letter topic, which is created if needed. None if its name is illegal."""
        topic = TopicConfig(
            topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm, topic_sys_flag=sys_flag
        )
        return self._create(name, lambda: topic)

    def create_missing(self, topics: Collection[TopicConfig]) -> None:
        """Creates those of the given topics that do not exist yet. Illegal names are skipped.

        All of them are one change: one wait for the disk, and one for name servers.
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
        """Marks the given topics as ordered, and all others as not ordered."""
        with self._lock:
            misordered = [topic for topic in self._table.values() if topic.order != (topic.topic_name in names)]
            configs = [replace(topic, order=not topic.order) for topic in misordered]
            self._stage(configs)
        self._settle(configs)

    def next_version(self) -> None:
        """Makes name servers accept all topics again, for example when the broker's permission has changed."""
        self.advance()
        self._on_change(None)

    def advance(self) -> None:
        """Increments the version of the topics, so that name servers find theirs old and take the topics again."""
        with self._lock:
            self._table.data_version = self._table.data_version.next(self._now())

    def hold(self, work: Callable[[Collection[str]], _T]) -> _T:
        """Returns the result of `work`, called with all topics' names. Meanwhile no topic is created or deleted."""
        with self._lock:
            return work(frozenset(self._table))

    def wrapper(
        self,
        topics: Iterable[TopicConfig] | None = None,
        as_sent: Callable[[TopicConfig], TopicConfig] = lambda topic: topic,
    ) -> dict[str, Any]:
        """Returns the topics and their version in the form in which RocketMQ sends them to name servers and slaves."""
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
        # Only the thread that really creates the topic spends its budget.
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
        """Changes topics, but does not save them yet. Raises `ResponseError` if there are too many."""
        if not topics:
            return
        most = self._config().number("maxTopicCount")
        count = len(self._table) + sum(topic.topic_name not in self._table for topic in topics)
        # A limit below the current number refuses new topics, but not changes of existing ones.
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
        """Waits until changed topics are saved, and then passes them to the data plane."""
        # Saved first: after a kill, acknowledged messages must not be without their topic.
        self._metadata.flush_or_log()
        with self._lock:
            for topic in topics:
                now = self.get(topic.topic_name)
                if now is not None:
                    self._data_plane.put_topic(now)

    def _put_version(self) -> None:
        self._metadata.put_member(TopicConfigTable, "dataVersion", self.data_version.to_json())
