"""Offsets of queues and of consumers.

Source: `MQClientAPIImpl.queryConsumerOffset`, `updateConsumerOffset`, `getMaxOffset`, `getMinOffset`, `searchOffset`,
`getEarliestMsgStoretime`.
"""

from __future__ import annotations

from rmqfast.client.instance.requests import Requests, as_fields
from rmqfast.errors import ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting import Header, RequestCode, Response, ResponseCode


class OffsetRequests(Requests):
    """Requests about the offsets of one queue; its broker's name in it is not looked at."""

    def query_consumer_offset(
        self, address: str, group: str, queue: MessageQueue, *, timeout: float | None = None
    ) -> int | None:
        """Where a group goes on; `None` where the broker has nothing (22).

        What this client stored before without waiting for an answer is seen.

        Raises:
            ResponseError: Any other error of the broker.
        """
        fields = {"consumerGroup": group, **_queue(queue)}
        try:
            answer = self.ask_behind(address, RequestCode.QUERY_CONSUMER_OFFSET, fields, timeout=timeout)
        except ResponseError as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        return _number(answer, "offset")

    def update_consumer_offset(
        self,
        address: str,
        group: str,
        queue: MessageQueue,
        offset: int,
        *,
        oneway: bool = True,
        timeout: float | None = None,
    ) -> None:
        """Stores where a group goes on.

        Args:
            address: The broker.
            group: The group.
            queue: The queue.
            offset: Of the next message.
            oneway: Whether not to wait for an answer.
            timeout: How long to wait for one, in seconds.
        """
        fields = {"consumerGroup": group, **_queue(queue), "commitOffset": offset}
        if oneway:
            self.connections.send_oneway(address, RequestCode.UPDATE_CONSUMER_OFFSET, as_fields(fields))
        else:
            self.ask_behind(address, RequestCode.UPDATE_CONSUMER_OFFSET, fields, timeout=timeout)

    def max_offset(self, address: str, queue: MessageQueue, *, timeout: float | None = None) -> int:
        """The offset behind the last message."""
        return _number(self.ask(address, RequestCode.GET_MAX_OFFSET, _queue(queue), timeout=timeout), "offset")

    def min_offset(self, address: str, queue: MessageQueue, *, timeout: float | None = None) -> int:
        """The offset of the first message that is still there."""
        return _number(self.ask(address, RequestCode.GET_MIN_OFFSET, _queue(queue), timeout=timeout), "offset")

    def search_offset(self, address: str, queue: MessageQueue, timestamp: int, *, timeout: float | None = None) -> int:
        """The offset of the message that was stored nearest to a time, with 4.9; the first one not before it, with 5.

        Args:
            address: The broker.
            queue: The queue.
            timestamp: Milliseconds since 1970.
            timeout: How long to wait, in seconds.
        """
        fields = {**_queue(queue), "timestamp": timestamp}
        return _number(self.ask(address, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, fields, timeout=timeout), "offset")

    def earliest_store_time(self, address: str, queue: MessageQueue, *, timeout: float | None = None) -> int:
        """When the first message that is still there was stored, in milliseconds since 1970; -1 for an empty queue."""
        code = RequestCode.GET_EARLIEST_MSG_STORETIME
        return _number(self.ask(address, code, _queue(queue), timeout=timeout), "timestamp")


def _queue(queue: MessageQueue) -> dict[str, object]:
    return {"topic": queue.topic, "queueId": queue.queue_id}


def _number(answer: Response, name: str) -> int:
    return Header(answer.ext_fields or {}).number(name)
