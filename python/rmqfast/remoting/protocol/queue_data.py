"""The queues and permissions of a topic on one broker.

Source: `QueueData`, `TopicSysFlag`, `PermName`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_UNIT, _UNIT_SUB = 1, 2


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
    def is_unit(self) -> bool:
        return bool(self.topic_sys_flag & _UNIT)

    @property
    def has_unit_sub(self) -> bool:
        return bool(self.topic_sys_flag & _UNIT_SUB)

    def to_json(self) -> dict[str, Any]:
        return {
            "brokerName": self.broker_name,
            "perm": self.perm,
            "readQueueNums": self.read_queue_nums,
            "topicSysFlag": self.topic_sys_flag,
            "writeQueueNums": self.write_queue_nums,
        }
