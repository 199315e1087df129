"""The queues and permissions of a topic on one broker.

Source: `QueueData`, `TopicSysFlag`, `PermName`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rmqfast.errors import ResponseError
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.remoting.response_code import ResponseCode
from rmqfast.store.config.topics import PERM_READ, PERM_WRITE

_UNIT, _UNIT_SUB = 1, 2
#: Limit of queues per topic and broker, to refuse absurd routes.
MAX_QUEUES = 65_536
#: Limit of queues per topic on all brokers together.
MAX_QUEUES_IN_ALL = 1 << 18


@dataclass(frozen=True, slots=True)
class QueueData:
    """The numbers of queues and the permissions of a topic on one broker.

    `perm` is the sum of 4 (read), 2 (write) and 1 (new topics inherit from it). `topic_sys_flag` is 1 for a unit, 2 for
    a subscription of a unit.
    """

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    topic_sys_flag: int

    @property
    def is_readable(self) -> bool:
        return bool(self.perm & PERM_READ)

    @property
    def is_writable(self) -> bool:
        return bool(self.perm & PERM_WRITE)

    @property
    def is_unit(self) -> bool:
        return bool(self.topic_sys_flag & _UNIT)

    @property
    def has_unit_sub(self) -> bool:
        return bool(self.topic_sys_flag & _UNIT_SUB)

    @classmethod
    def from_json(cls, members: JsonObject) -> QueueData:
        return cls(
            broker_name=members.text("brokerName"),
            read_queue_nums=members.number_within("readQueueNums", 0, MAX_QUEUES, default=0),
            write_queue_nums=members.number_within("writeQueueNums", 0, MAX_QUEUES, default=0),
            perm=members.number("perm", 0),
            topic_sys_flag=members.number("topicSysFlag", 0),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "brokerName": self.broker_name,
            "perm": self.perm,
            "readQueueNums": self.read_queue_nums,
            "topicSysFlag": self.topic_sys_flag,
            "writeQueueNums": self.write_queue_nums,
        }


def check_in_all(name: str, total: int) -> None:
    """Raises `ResponseError` if all brokers together have too many queues of a topic."""
    if total > MAX_QUEUES_IN_ALL:
        text = f"body: {name}: expected {MAX_QUEUES_IN_ALL} queues of all brokers at most, got {total}"
        raise ResponseError(ResponseCode.SYSTEM_ERROR, text)
