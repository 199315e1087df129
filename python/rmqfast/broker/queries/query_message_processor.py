"""Answers requests for messages by key or by physical offset.

Source: RocketMQ's `QueryMessageProcessor`, `DefaultMessageStore`.
"""

from __future__ import annotations

from collections.abc import Callable

from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.broker.messages.stored_message import StoredMessage
from rmqfast.errors import ResponseError
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response, ResponseCode
from rmqfast.store import LiveStore

#: Largest body that fits into a frame of 16 MiB beside its header.
MAX_BODY = (16 << 20) - (64 << 10)


class QueryMessageProcessor:
    def __init__(self, live: LiveStore, config: Callable[[], BrokerConfig]) -> None:
        self._live = live
        self._config = config

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.QUERY_MESSAGE: self.query_message,
            RequestCode.VIEW_MESSAGE_BY_ID: self.view_message_by_id,
        }

    def query_message(self, request: Request) -> Response:
        """Answers request 12: the records of a topic with a given key, in log order.

        Keys with equal hashes count as equal.
        """
        header = Header(request.ext_fields)
        begin, end = header.number("beginTimestamp"), header.number("endTimestamp")
        topic = header.text("topic")
        found, last_time, last_offset = self._live.query(topic, header.text("key"), self._count(header), begin, end)
        # A record of another topic may have the same hash, and the client may have no right to read it.
        records = [record for record in found if StoredMessage.parse(record).topic == topic]
        if not records:
            last_time = last_offset = 0
        fields = {"indexLastUpdateTimestamp": str(last_time), "indexLastUpdatePhyoffset": str(last_offset)}
        if not records:
            remark = "can not find message, maybe time range not correct"
            return Response(ResponseCode.QUERY_NOT_FOUND, remark, ext_fields=fields)
        return Response(ext_fields=fields, body=b"".join(newest(records, MAX_BODY)))

    def view_message_by_id(self, request: Request) -> Response:
        """Answers request 33: the record at a physical offset."""
        offset = Header(request.ext_fields).number("offset")
        record = self._live.record(offset) if offset >= 0 else None
        if record is None:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {offset}")
        return Response(body=record)

    def _count(self, header: Header) -> int:
        count = header.integer("maxNum")
        config = self._config()
        # For unique keys, only the broker's own limit counts.
        if header.optional_text("_UNIQUE_KEY_QUERY") == "true":
            count = config.number("defaultQueryMaxNum")
        if count < 0:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"maxNum: expected at least 0, got {count}")
        return min(count, config.number("maxMsgsNumBatch"))


def newest(records: list[bytes], most: int) -> list[bytes]:
    """Returns as many of the last records as fit into `most` bytes."""
    first, size = len(records), 0
    while first > 0 and size + len(records[first - 1]) <= most:
        first -= 1
        size += len(records[first])
    return records[first:]
