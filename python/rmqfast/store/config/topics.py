"""`config/topics.json`: the topics of a broker, their queues and permissions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from rmqfast.store.config.data_version import DataVersion
from rmqfast.store.config.file import ConfigFile, StorePath, checked_name
from rmqfast.store.config.value import ConfigValue, named

__all__ = ["TopicConfig", "TopicConfigTable", "built_in_topics"]

PERM_READ, PERM_WRITE, PERM_INHERIT = 4, 2, 1


@dataclass(frozen=True, kw_only=True)
class TopicConfig(ConfigValue):
    """A topic as its broker has it.

    Attributes:
        topic_name: Its name.
        read_queue_nums: Queues that consumers see.
        write_queue_nums: Queues that producers see.
        perm: 4 to read, 2 to write, 1 to let new topics inherit from it; added up.
        topic_filter_type: "SINGLE_TAG" or "MULTI_TAG".
        topic_sys_flag: 1 for a unit, 2 for a subscription of a unit.
        order: Whether it is an ordered topic.

    Example:
        >>> TopicConfig(topic_name="orders", read_queue_nums=4, write_queue_nums=4).is_writable
        True

    Source: `TopicConfig`, `PermName`.
    """

    topic_name: str
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = PERM_READ | PERM_WRITE
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    order: bool = False

    @property
    def is_readable(self) -> bool:
        """Whether consumers may read it."""
        return bool(self.perm & PERM_READ)

    @property
    def is_writable(self) -> bool:
        """Whether producers may write to it."""
        return bool(self.perm & PERM_WRITE)

    @property
    def is_inherited(self) -> bool:
        """Whether a topic that is made while a message is sent may take after it."""
        return bool(self.perm & PERM_INHERIT)


class TopicConfigTable(ConfigFile, Mapping[str, TopicConfig]):
    """The topics by name, and their version; each change is a new version.

    Example:
        >>> table = TopicConfigTable.load(getfixture("golden_store")("basic-4.9.4"))
        >>> table["fx_q4"].write_queue_nums, table.data_version.counter
        (4, 6)
        >>> table.put(TopicConfig(topic_name="orders"), now=1_800_000_000_000)
        >>> table.save(getfixture("tmp_path"))
        >>> TopicConfigTable.load(getfixture("tmp_path")) == table
        True

    Source: `TopicConfigManager`, `TopicConfigSerializeWrapper`.
    """

    FILE_NAME: ClassVar[str] = "topics.json"

    def __init__(self, topics: Iterable[TopicConfig] = (), data_version: DataVersion | None = None) -> None:
        self._table = {config.topic_name: config for config in topics}
        self.data_version = data_version or DataVersion()
        self.other = {}

    @classmethod
    def load(cls, root: StorePath, built_in: Iterable[TopicConfig] = ()) -> Self:
        """Reads the topics of the store below `root`; those of the file take the place of built-in ones.

        Args:
            root: The store's directory.
            built_in: Topics that are there in any case, as `built_in_topics`.

        Raises:
            CorruptError: The file is there, and neither it nor its `.bak` can be read.

        Source: `TopicConfigManager.decode`.
        """
        members = cls.read(root)
        table = cls(built_in, DataVersion.from_json(members.pop("dataVersion", None) or {}))
        found: dict[str, dict[str, Any]] = members.pop("topicConfigTable", {})
        for name, fields in found.items():
            table._table[name] = TopicConfig.from_json(named(fields, topicName=name))
        table.other = members
        return table

    def put(self, config: TopicConfig, *, now: int) -> None:
        """Adds a topic, or takes the place of the one of its name.

        Args:
            config: The topic.
            now: Milliseconds since 1970, for the version.

        Raises:
            ArgumentError: A name that RocketMQ does not allow.

        Source: `TopicConfigManager.updateTopicConfig`.
        """
        self._table[checked_name("topic_name", config.topic_name)] = config
        self.data_version = self.data_version.next(now)

    def remove(self, topic: str, *, now: int) -> None:
        """Removes a topic; one that is not there is no change.

        Args:
            topic: Its name.
            now: Milliseconds since 1970, for the version.

        Source: `TopicConfigManager.deleteTopicConfig`.
        """
        if self._table.pop(topic, None) is not None:
            self.data_version = self.data_version.next(now)

    def to_json(self) -> dict[str, Any]:
        """The members of the file that are known here."""
        table = {name: config.to_json() for name, config in self._table.items()}
        return {"dataVersion": self.data_version.to_json(), "topicConfigTable": table}

    def __getitem__(self, topic: str) -> TopicConfig:
        return self._table[topic]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return f"TopicConfigTable({len(self)} topics, {self.data_version})"


def built_in_topics(
    cluster_name: str, broker_name: str, *, default_queues: int = 8, auto_create: bool = True, trace: bool = False
) -> list[TopicConfig]:
    """The topics that every broker has.

    Args:
        cluster_name: Name of the cluster (`brokerClusterName`), which is a topic, too.
        broker_name: Name of the broker (`brokerName`), likewise.
        default_queues: Queues that new topics inherit (`defaultTopicQueueNums`).
        auto_create: Whether sending makes topics (`autoCreateTopicEnable`).
        trace: Whether traces are kept (`traceTopicEnable`).

    Example:
        >>> [topic.topic_name for topic in built_in_topics("c", "b", auto_create=False)][:2]
        ['SELF_TEST_TOPIC', 'BenchmarkTest']

    Source: the constructor of `TopicConfigManager`.
    """
    all_permissions = PERM_READ | PERM_WRITE | PERM_INHERIT
    wanted = [
        ("SELF_TEST_TOPIC", 1, 6),
        *([("TBW102", default_queues, all_permissions)] if auto_create else []),
        ("BenchmarkTest", 1024, 6),
        (cluster_name, 16, all_permissions),
        (broker_name, 1, all_permissions),
        ("OFFSET_MOVED_EVENT", 1, 6),
        ("SCHEDULE_TOPIC_XXXX", 18, 6),
        *([("RMQ_SYS_TRACE_TOPIC", 1, 6)] if trace else []),
        (f"{cluster_name}_REPLY_TOPIC", 1, 6),
    ]
    return [
        TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm)
        for name, queues, perm in wanted
    ]
