"""Answers where a queue begins and ends, and which offset belongs to a time.

Source: `AdminBrokerProcessor`.
"""

from __future__ import annotations

from rmqfast.remoting import Header, Processor, Request, RequestCode, Response
from rmqfast.store import LiveStore


class QueueBoundsProcessor:
    """Requests 29, 30, 31 and 32; a queue that is not there is an empty one."""

    def __init__(self, live: LiveStore) -> None:
        self._live = live

    def processors(self) -> dict[int, Processor]:
        """Who answers, by request code."""
        return {
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self.search_offset_by_timestamp,
            RequestCode.GET_MAX_OFFSET: self.get_max_offset,
            RequestCode.GET_MIN_OFFSET: self.get_min_offset,
            RequestCode.GET_EARLIEST_MSG_STORETIME: self.get_earliest_msg_store_time,
        }

    def search_offset_by_timestamp(self, request: Request) -> Response:
        """29: the offset of the message nearest to a time.

        Source: `AdminBrokerProcessor.searchOffsetByTimestamp`.
        """
        topic, queue_id = _queue(request)
        when = Header(request.ext_fields).number("timestamp")
        offset = 0 if queue_id < 0 else self._live.offset_for_time(topic, queue_id, when)
        return Response(ext_fields={"offset": str(offset)})

    def get_max_offset(self, request: Request) -> Response:
        """30: the offset that the next message of a queue gets.

        Source: `AdminBrokerProcessor.getMaxOffset`.
        """
        return Response(ext_fields={"offset": str(self._bounds(request)[1])})

    def get_min_offset(self, request: Request) -> Response:
        """31: the offset of the first message that is still there.

        Source: `AdminBrokerProcessor.getMinOffset`.
        """
        return Response(ext_fields={"offset": str(self._bounds(request)[0])})

    def get_earliest_msg_store_time(self, request: Request) -> Response:
        """32: when the first message that is still there was stored; -1 where there is none.

        Source: `AdminBrokerProcessor.getEarliestMsgStoretime`.
        """
        topic, queue_id = _queue(request)
        time = -1 if queue_id < 0 else self._live.earliest_store_time(topic, queue_id)
        return Response(ext_fields={"timestamp": str(time)})

    def _bounds(self, request: Request) -> tuple[int, int]:
        topic, queue_id = _queue(request)
        return (0, 0) if queue_id < 0 else self._live.queue_bounds(topic, queue_id)


def _queue(request: Request) -> tuple[str, int]:
    header = Header(request.ext_fields)
    return header.text("topic"), header.integer("queueId")
