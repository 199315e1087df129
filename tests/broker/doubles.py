"""What stands around the control plane: topics and groups in a dict."""

from __future__ import annotations

from collections.abc import Mapping

from rmqfast.remoting import VERSION, Request
from rmqfast.store.config import SubscriptionGroupConfig, TopicConfig
from tests.broker.client_doubles import Line


def request(code: int, fields: Mapping[str, object], body: bytes = b"", version: int = VERSION) -> Request:
    texts = {name: str(value) for name, value in fields.items()}
    return Request(code, texts, body, Line(), version=version)


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
