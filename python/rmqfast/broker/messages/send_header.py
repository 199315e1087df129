"""Parses the header of a send request, which has either long or one-letter field names.

Source: RocketMQ's `SendMessageRequestHeader`, `SendMessageRequestHeaderV2`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rmqfast.remoting import Header

_NAMES = (
    "producerGroup",
    "topic",
    "defaultTopic",
    "defaultTopicQueueNums",
    "queueId",
    "sysFlag",
    "bornTimestamp",
    "flag",
    "properties",
    "reconsumeTimes",
    "unitMode",
    "maxReconsumeTimes",
    "batch",
)
#: SEND_MESSAGE_V2 and batches call the fields a to m, in this order.
_LONG_NAMES = dict(zip("abcdefghijklm", _NAMES, strict=True))


@dataclass(frozen=True, slots=True)
class SendHeader:
    """The header of a send.

    Attributes:
        default_topic: Topic whose settings a new topic inherits.
        queue_id: The queue; a negative one lets the broker choose.
        born_timestamp: Creation time at the client, in milliseconds since 1970.
        reconsume_times: Number of failed attempts to consume the message.
        max_reconsume_times: The client's own limit of attempts.
    """

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: int
    queue_id: int
    sys_flag: int
    born_timestamp: int
    flag: int
    properties: str
    reconsume_times: int | None
    is_unit: bool
    max_reconsume_times: int | None
    is_batch: bool

    @classmethod
    def parse(cls, ext_fields: Mapping[str, str], *, is_short: bool) -> SendHeader:
        """Parses the header of a request. Raises `ResponseError` for a missing or malformed field."""
        # Ignore long names in a short header, since access control checked only the short ones.
        of_short = {long: ext_fields[name] for name, long in _LONG_NAMES.items() if name in ext_fields}
        header = Header(of_short if is_short else ext_fields)
        return cls(
            producer_group=header.text("producerGroup"),
            topic=header.text("topic"),
            default_topic=header.text("defaultTopic"),
            default_topic_queue_nums=header.number("defaultTopicQueueNums"),
            queue_id=header.number("queueId"),
            sys_flag=header.number("sysFlag"),
            born_timestamp=header.number("bornTimestamp"),
            flag=header.number("flag"),
            properties=header.optional_text("properties") or "",
            reconsume_times=_optional_number(header, "reconsumeTimes"),
            is_unit=header.flag("unitMode"),
            max_reconsume_times=_optional_number(header, "maxReconsumeTimes"),
            is_batch=header.flag("batch"),
        )

    def to_fields(self) -> dict[str, str]:
        """Returns the fields under their long names. Fields without a value are left out."""
        texts = {
            "producerGroup": self.producer_group,
            "topic": self.topic,
            "defaultTopic": self.default_topic,
            "defaultTopicQueueNums": str(self.default_topic_queue_nums),
            "queueId": str(self.queue_id),
            "sysFlag": str(self.sys_flag),
            "bornTimestamp": str(self.born_timestamp),
            "flag": str(self.flag),
            "properties": self.properties,
            "unitMode": str(self.is_unit).lower(),
        }
        return texts if self.reconsume_times is None else texts | {"reconsumeTimes": str(self.reconsume_times)}


def _optional_number(header: Header, name: str) -> int | None:
    return None if header.optional_text(name) is None else header.number(name)
