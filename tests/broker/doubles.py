"""What stands around the control plane: connections that keep what they are sent, topics and groups in a dict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rmqfast.remoting import VERSION, Request, Response
from rmqfast.store.config import SubscriptionGroupConfig, TopicConfig


@dataclass(eq=False)
class RecordingChannel:
    """`answer` answers requests; it may raise."""

    remote_address: str = "10.1.2.3:4567"
    local_address: str = "127.0.0.1:10911"
    is_open: bool = True
    sent: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    answer: Callable[[], Response] = Response

    def request(self, code: int, ext_fields: Mapping[str, str], body: bytes = b"", *, timeout: float = 3.0) -> Response:
        self.sent.append((code, dict(ext_fields), body))
        return self.answer()

    def send_oneway(self, code: int, ext_fields: Mapping[str, str], body: bytes = b"") -> None:
        self.sent.append((code, dict(ext_fields), body))

    def close(self) -> None:
        self.is_open = False


def request(code: int, fields: Mapping[str, object], body: bytes = b"", version: int = VERSION) -> Request:
    texts = {name: str(value) for name, value in fields.items()}
    return Request(code, texts, body, RecordingChannel(), version=version)


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


class Offsets:
    """Consumer offsets as the data plane has them."""

    def __init__(self) -> None:
        self.table: dict[tuple[str, str, int], int] = {}

    def commit_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        self.table[group, topic, queue_id] = offset

    def offset(self, group: str, topic: str, queue_id: int) -> int:
        return self.table.get((group, topic, queue_id), -1)
