"""What stands around the control plane in its tests."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from rmqfast._native import DataPlane
from rmqfast.broker.clients.client_channel import ClientChannel
from rmqfast.broker.statistics.broker_stats import Counter
from rmqfast.errors import ChannelClosedError
from rmqfast.remoting import VERSION, Channel, Request, Response
from rmqfast.remoting.protocol.heartbeat_data import ConsumerData
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.store import LiveStore
from rmqfast.store.config import SubscriptionGroupConfig, TopicConfig

_NUMBERS = itertools.count(1)


class Line(Channel):
    """A connection that keeps what is sent to its client.

    Attributes:
        sent: Code, fields and body of what asks for no answer.
        asked: Code, fields, body and patience of what asks for one.
        answer: Gives what the client answers, or raises; without it the client is gone.
    """

    def __init__(self, address: str = "192.0.2.7:40001", answer: Callable[..., Response] | None = None) -> None:
        self.remote_address = address
        self.local_address = "192.0.2.1:10911"
        self._is_open = True
        self.number = next(_NUMBERS)
        self.sent: list[tuple[int, dict[str, str], bytes]] = []
        self.asked: list[tuple[int, dict[str, str], bytes, float]] = []
        self.answer = answer

    @property
    def id(self) -> int:
        return self.number

    @property
    def is_open(self) -> bool:
        return self._is_open

    def request(self, code: int, ext_fields: Mapping[str, str], body: bytes = b"", *, timeout: float = 3.0) -> Response:
        self.asked.append((int(code), dict(ext_fields), body, timeout))
        if self.answer is None:
            raise ChannelClosedError(self.remote_address)
        return self.answer()

    def send_oneway(self, code: int, ext_fields: Mapping[str, str], body: bytes = b"") -> None:
        self.sent.append((int(code), dict(ext_fields), body))

    def close(self) -> None:
        self._is_open = False

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def notified(self) -> list[str]:
        """The groups of which the client was told, since it was asked last."""
        groups = [fields["consumerGroup"] for code, fields, _ in self.sent if code == 40]
        self.sent.clear()
        return groups


@dataclass
class Tables:
    """A data plane that is its tables, and nothing else."""

    @property
    def data_plane(self) -> DataPlane:
        """Itself, for those who take a data plane in Rust."""
        return cast("DataPlane", self)

    topics: dict[str, TopicConfig] = field(default_factory=dict)
    groups: dict[str, SubscriptionGroupConfig] = field(default_factory=dict)
    subscriptions: dict[tuple[str, str], SubscriptionData] = field(default_factory=dict)
    online: dict[str, str | None] = field(default_factory=dict)
    committed: dict[str, dict[int, int]] = field(default_factory=dict)
    changed: dict[str, None] = field(default_factory=dict)
    clients: dict[int, str] = field(default_factory=dict)
    resets: list[tuple[object, ...]] = field(default_factory=list)
    permission: int | None = None
    counted: Sequence[Counter] = ()

    def put_client(self, connection: int, client_id: str) -> None:
        self.clients[connection] = client_id

    def remove_client(self, connection: int) -> None:
        self.clients.pop(connection, None)

    def note_reset(self, *row: object) -> None:
        self.resets.append(row)

    def put_topic(self, config: TopicConfig) -> None:
        self.topics[config.topic_name] = config

    def remove_topic(self, name: str) -> None:
        self.topics.pop(name, None)

    def put_group(self, config: SubscriptionGroupConfig) -> None:
        self.groups[config.group_name] = config

    def remove_group(self, name: str) -> None:
        self.groups.pop(name, None)

    def put_subscription(self, group: str, subscription: SubscriptionData) -> str | None:
        self.subscriptions[group, subscription.topic] = subscription
        if subscription.is_tag_type:
            return None
        if subscription.expression_type != "SQL92":
            return "no such filter"
        return compile_problem(subscription.sub_string)

    def check_filter(self, _expression_type: str, expression: str) -> tuple[int, str] | None:
        problem = compile_problem(expression)
        return None if problem is None else (23, problem)

    def remove_subscription(self, group: str, topic: str) -> None:
        self.subscriptions.pop((group, topic), None)

    def put_consumer_group(self, group: str, message_model: str | None) -> None:
        self.online[group] = message_model

    def remove_consumer_group(self, group: str) -> None:
        self.online.pop(group, None)

    def commit_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        self.committed.setdefault(f"{topic}@{group}", {})[queue_id] = offset
        self.changed[f"{topic}@{group}"] = None

    def offset(self, group: str, topic: str, queue_id: int) -> int:
        return self.committed.get(f"{topic}@{group}", {}).get(queue_id, -1)

    def offsets(self, *, group: str | None = None, topic: str | None = None) -> dict[str, dict[int, int]]:
        def is_wanted(key: str) -> bool:
            of_topic, _, of_group = key.partition("@")
            return group in {None, of_group} and topic in {None, of_topic}

        return {key: dict(queues) for key, queues in self.committed.items() if is_wanted(key)}

    def remove_offsets(self, group: str, topic: str | None = None) -> None:
        for key in [key for key in self.committed if key.endswith(f"@{group}")]:
            if topic is None or key == f"{topic}@{group}":
                del self.committed[key]
                self.changed[key] = None

    def take_changed_offsets(self, limit: int) -> list[tuple[str, str | None]]:
        keys = list(self.changed)[:limit]
        self.changed = dict.fromkeys(list(self.changed)[limit:])
        return [(key, json.dumps(self.committed[key]) if key in self.committed else None) for key in keys]

    def set_permission(self, perm: int) -> None:
        self.permission = perm

    def counters(self) -> Sequence[Counter]:
        return self.counted


def compile_problem(expression: str) -> str | None:
    """The one mistake that tests with this double make."""
    return "it ends too early" if expression.endswith(">") else None


class QueuesByHand(LiveStore):
    """The live side of a store of which only the bounds of queues are known."""

    def __init__(self, bounds: dict[tuple[str, int], tuple[int, int]]) -> None:
        self.bounds = bounds

    def queue_bounds(self, topic: str, queue_id: int) -> tuple[int, int]:
        return self.bounds.get((topic, queue_id), (0, 0))

    def unit(self, topic: str, queue_id: int, queue_offset: int) -> tuple[int, int, int] | None:
        return None

    def record(self, physical_offset: int) -> bytes | None:
        return None

    def store_time(self, topic: str, queue_id: int, queue_offset: int) -> int:
        return -1

    def offset_for_time(self, topic: str, queue_id: int, when: int) -> int:
        return when

    def query(self, topic: str, key: str, max_num: int, begin: int, end: int) -> tuple[list[bytes], int, int]:
        return [], 0, 0

    def log_bounds(self) -> tuple[int, int]:
        return 0, 0

    def earliest_store_time(self, topic: str | None = None, queue_id: int | None = None) -> int:
        return -1


class Topics:
    """Makes every topic but those in `refused`; new ones are as asked for."""

    def __init__(self, *topics: TopicConfig, refused: frozenset[str] = frozenset()) -> None:
        self.table = {topic.topic_name: topic for topic in topics}
        self.refused = refused

    def make(self, name: str, queues: int, perm: int, sys_flag: int) -> TopicConfig | None:
        if name in self.refused:
            return None
        new = TopicConfig(
            topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm, topic_sys_flag=sys_flag
        )
        return self.table.setdefault(name, new)


class Groups:
    def __init__(self, *groups: SubscriptionGroupConfig) -> None:
        self.table = {group.group_name: group for group in groups}

    def find(self, name: str) -> SubscriptionGroupConfig | None:
        return self.table.get(name)


def subscription(topic: str, sub_string: str = "*", version: int = 1, expression_type: str = "TAG") -> SubscriptionData:
    """A subscription as a Java client makes it; tags have one letter, whose hash is its code."""
    tags = () if sub_string == "*" or expression_type != "TAG" else tuple(sub_string.split(" || "))
    return SubscriptionData(
        topic=topic,
        sub_string=sub_string,
        tags_set=tags,
        code_set=tuple(map(ord, tags)),
        sub_version=version,
        expression_type=expression_type,
    )


def consumer(group: str, *subscriptions: SubscriptionData, model: str = "CLUSTERING") -> ConsumerData:
    """A group of push consumers in a heartbeat."""
    return ConsumerData(
        group_name=group,
        consume_type="CONSUME_PASSIVELY",
        message_model=model,
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscriptions=subscriptions,
    )


def client(line: Line, client_id: str = "c", *, now: int = 0, version: int = 401) -> ClientChannel:
    """A client that sends a heartbeat."""
    return ClientChannel(line, client_id, "JAVA", version, now)


def request(code: int, line: Line | None = None, body: bytes = b"", version: int = VERSION, **fields: Any) -> Request:
    """A request with header fields."""
    ext_fields = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in fields.items()}
    return Request(code, ext_fields, body, line or Line(), version=version)
