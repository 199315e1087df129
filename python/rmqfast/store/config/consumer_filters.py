"""`config/consumerFilter.json`: the SQL92 subscriptions that a broker knows, and their bits in its Bloom filter.

Source: RocketMQ's `BloomFilterData`, `ConsumerFilterData`, `ConsumerFilterManager`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from rmqfast.store.config.file import ConfigFile
from rmqfast.store.config.value import ConfigValue, with_names

DAY_MS = 24 * 3600 * 1000
# RocketMQ's: after a restart, subscriptions with consumers count as dead for half a minute
ASSUMED_DEAD_MS = 30 * 1000


@dataclass(frozen=True, kw_only=True)
class BloomFilterData(ConfigValue):
    """The bit positions of a subscription in the broker's Bloom filter."""

    bit_num: int = 0
    bit_pos: list[int] = field(default_factory=list, hash=False)


@dataclass(frozen=True, kw_only=True)
class ConsumerFilterData(ConfigValue):
    """The SQL92 subscription of a group to a topic.

    Attributes:
        expression: The SQL92 expression, such as "a > 3".
        born_time: Time of registration, in milliseconds since 1970.
        dead_time: Time in milliseconds since 1970 at which the last consumer left; 0 while the group has consumers.
        client_version: The version that the client gave the subscription.
        bloom_filter_data: The bits of the subscription in the Bloom filter.
    """

    topic: str
    consumer_group: str
    expression: str = ""
    expression_type: str = "SQL92"
    born_time: int = 0
    dead_time: int = 0
    client_version: int = 0
    bloom_filter_data: BloomFilterData | None = None

    @property
    def dead(self) -> bool:
        """Whether the group has no consumer any more."""
        # as RocketMQ's: a consumer that returns gets a newer `born_time`
        return self.dead_time >= self.born_time

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> Self:
        """Reads a subscription from JSON. Ignores `dead`, which is computed from the times of birth and death."""
        bits = members.get("bloomFilterData")
        filter_data = None if bits is None else BloomFilterData.from_json(bits)
        # `dead` is computed from the times
        fields = {name: value for name, value in members.items() if name not in {"dead", "bloomFilterData"}}
        return replace(super().from_json(fields), bloom_filter_data=filter_data)

    def to_json(self) -> dict[str, Any]:
        """Returns the fields of the JSON object, including `dead`."""
        members = super().to_json() | {"dead": self.dead}
        bits = members.pop("bloomFilterData")
        return dict(sorted((members | ({} if bits is None else {"bloomFilterData": bits.to_json()})).items()))


class ConsumerFilterTable(ConfigFile, Mapping[tuple[str, str], ConsumerFilterData]):
    """The SQL92 subscriptions by topic and group."""

    FILE_NAME: ClassVar[str] = "consumerFilter.json"
    MEMBER: ClassVar[str] = "filterDataByTopic"

    def __init__(self) -> None:
        self._table: dict[str, dict[str, ConsumerFilterData]] = {}
        self._other_by_topic: dict[str, dict[str, Any]] = {}
        self.other: dict[str, Any] = {}

    def take(self, members: dict[str, Any]) -> None:
        for topic, fields in members.pop(self.MEMBER, {}).items():
            groups = fields.pop("groupFilterData", None) or {}
            self._table[topic] = {
                group: ConsumerFilterData.from_json(with_names(filter_data, topic=topic, consumerGroup=group))
                for group, filter_data in groups.items()
            }
            self._other_by_topic[topic] = fields

    def put(self, filter_data: ConsumerFilterData) -> None:
        """Adds a subscription. It replaces the subscription of the same group and topic."""
        self._table.setdefault(filter_data.topic, {})[filter_data.consumer_group] = filter_data

    def remove(self, topic: str, group: str) -> None:
        """Removes a subscription. Does nothing if there is none."""
        groups = self._table.get(topic, {})
        groups.pop(group, None)
        if not groups:
            self._table.pop(topic, None)

    def topic_json(self, topic: str) -> dict[str, Any] | None:
        """Returns the JSON of a topic's subscriptions. None if the topic has no subscription."""
        groups = self._table.get(topic)
        if groups is None:
            return None
        fields = {"topic": topic} | self._other_by_topic.get(topic, {})
        fields["groupFilterData"] = {group: filter_data.to_json() for group, filter_data in groups.items()}
        return dict(sorted(fields.items()))

    def after_restart(self, *, now: int) -> Self:
        """Returns the table of a broker that has just started, in which no subscription has a consumer yet.

        Args:
            now: Milliseconds since 1970. Subscriptions that had consumers count as dead for 30 seconds.
        """
        dead_since = now - ASSUMED_DEAD_MS
        return self._with(
            data if data.dead_time else replace(data, dead_time=max(data.born_time, dead_since))
            for data in self.values()
        )

    def without_dead(self, *, now: int, span: int = DAY_MS) -> Self:
        """Returns a copy without the subscriptions that have been dead for `span` milliseconds."""
        return self._with(data for data in self.values() if not data.dead or now - data.dead_time < span)

    def _with(self, subscriptions: Iterable[ConsumerFilterData]) -> Self:
        table = type(self)()
        table.other |= self.other
        table._other_by_topic |= self._other_by_topic  # noqa: SLF001
        for filter_data in subscriptions:
            table.put(filter_data)
        return table

    def to_json(self) -> dict[str, Any]:
        return {self.MEMBER: {topic: self.topic_json(topic) for topic in self._table}}

    def __getitem__(self, key: tuple[str, str]) -> ConsumerFilterData:
        topic, group = key
        try:
            return self._table[topic][group]
        except KeyError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((topic, group) for topic, groups in self._table.items() for group in groups)

    def __len__(self) -> int:
        return sum(map(len, self._table.values()))

    def __repr__(self) -> str:
        return f"ConsumerFilterTable({len(self)} subscriptions)"
