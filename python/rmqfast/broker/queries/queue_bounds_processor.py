"""Answers where a queue begins and ends, and which offset belongs to a time.

Source: RocketMQ's `AdminBrokerProcessor`.
"""

from __future__ import annotations

from rmqfast.remoting import Header, Processor, Request, RequestCode, Response
from rmqfast.store import LiveStore


class QueueBoundsProcessor:
    """Requests 29 to 32; a queue that does not exist counts as empty."""

    def __init__(self, live: LiveStore) -> None:
        self._live = live

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self.search_offset_by_timestamp,
            RequestCode.GET_MAX_OFFSET: self.get_max_offset,
            RequestCode.GET_MIN_OFFSET: self.get_min_offset,
            RequestCode.GET_EARLIEST_MSG_STORETIME: self.get_earliest_msg_store_time,
        }

    def search_offset_by_timestamp(self, request: Request) -> Response:
        topic, queue_id = _queue(request)
        when = Header(request.ext_fields).number("timestamp")
        offset = 0 if queue_id < 0 else self._live.offset_for_time(topic, queue_id, when)
        return Response(ext_fields={"offset": str(offset)})

    def get_max_offset(self, request: Request) -> Response:
        return Response(ext_fields={"offset": str(self._bounds(request)[1])})

    def get_min_offset(self, request: Request) -> Response:
        return Response(ext_fields={"offset": str(self._bounds(request)[0])})

    def get_earliest_msg_store_time(self, request: Request) -> Response:
        """32: -1 for an empty queue."""
        topic, queue_id = _queue(request)
        time = -1 if queue_id < 0 else self._live.earliest_store_time(topic, queue_id)
        return Response(ext_fields={"timestamp": str(time)})

    def _bounds(self, request: Request) -> tuple[int, int]:
        topic, queue_id = _queue(request)
        return (0, 0) if queue_id < 0 else self._live.queue_bounds(topic, queue_id)


def _queue(request: Request) -> tuple[str, int]:
    header = Header(request.ext_fields)
    return header.text("topic"), header.integer("queueId")
