"""What a task sends: rows become requests, requests go to queues, and what fails is tried again or tells which row.

Rows of one queue are sent in their order: a queue has one request on its way at a time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rmqfast.client.instance import ClientErrorCode
from rmqfast.client.producer import RowProducer, RowRequest, SendStatus
from rmqfast.errors import (
    ArgumentError,
    ChannelClosedError,
    ClientError,
    RemotingConnectError,
    RemotingError,
    RemotingTimeoutError,
    ResponseError,
    RmqError,
)
from rmqfast.message import Message, MessageQueue
from rmqfast.remoting import ResponseCode
from rmqfast.spark.sink.lanes import Lanes
from rmqfast.spark.sink.options import SinkOptions
from rmqfast.spark.sink.queue_choice import QueueChoice
from rmqfast.spark.sink.row_groups import RowGroup, groups_of, row_text
from rmqfast.spark.sink.written import Written

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Sender"]

_LOG = logging.getLogger("rmqfast.spark")
#: Answers of a broker that will take it in a while.
_PASSING = frozenset({int(ResponseCode.SYSTEM_BUSY), int(ResponseCode.SERVICE_NOT_AVAILABLE)})
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


@dataclass(slots=True)
class _Parcel:
    """A request, the rows it is made of, and where it goes."""

    request: RowRequest
    group: RowGroup
    queue: MessageQueue


class Sender:
    """Sends the rows of a partition.

    Args:
        producer: It runs.
        options: How to send.
        partition: Number of the partition, for errors.

    Source: `DefaultMQProducerImpl.sendDefaultImpl`, for its tries.
    """

    def __init__(self, producer: RowProducer, options: SinkOptions, partition: int) -> None:
        self._producer, self._options, self._partition = producer, options, partition
        self._choice = QueueChoice(producer)
        self._lanes = Lanes(options.in_flight, self._send)
        self._lane_of: dict[MessageQueue, int] = {}
        self._rows, self.written = 0, Written()

    def add(self, batch: pa.RecordBatch) -> None:
        """Sends a batch, or begins to.

        Raises:
            ClientError: A row that cannot be sent, of this batch or one before.
        """
        for group in groups_of(batch, self._rows, self._options.topic):
            for request in self._requests(group):
                part = group.part(request.first, request.rows)
                queue = self._first_queue(part)
                # a queue keeps its lane, so that its rows go in their order
                lane = self._lane_of.setdefault(queue, len(self._lane_of))
                self._lanes.put(lane, _Parcel(request, part, queue))
        self._rows += batch.num_rows

    def finish(self) -> Written:
        """Waits until all is stored.

        Raises:
            ClientError: As `add`.
        """
        self._lanes.finish()
        return self.written

    def stop(self) -> None:
        """Sends no more."""
        self._lanes.stop()

    def _requests(self, group: RowGroup, batch_size: int | None = None) -> Sequence[RowRequest]:
        """The requests of a group, as they are sent; what cannot be sent tells its row.

        Raises:
            ClientError: A row that cannot be sent.
        """
        self._first_queue(group)  # what is wrong with topic and queue comes before what is wrong with rows
        topic = str(group.target.topic)
        if group.target.delay_level:
            return [self._delayed(group, index) for index in range(group.rows.num_rows)]
        try:
            return self._producer.requests(group.rows, topic, batch_size=batch_size or self._options.batch_size)
        except RmqError as error:
            # only after a failure: one by one, to find the row that is wrong
            for index in range(group.rows.num_rows):
                try:
                    self._producer.requests(group.rows.slice(index, 1), topic)
                except ArgumentError as wrong:
                    raise self._failed(group.part(index, 1), str(wrong).removeprefix("row 0: "), wrong) from wrong
            raise self._failed(group, str(error), error) from error

    def _delayed(self, group: RowGroup, index: int) -> RowRequest:
        """The request of a row that is delivered later, which brokers take singly."""
        (row,) = group.rows.slice(index, 1).to_pylist()
        body, level = row["body"], group.target.delay_level
        try:
            if level < 0:
                raise ArgumentError(f"expected a delay_level of 1 or more, 0 or null for none, got {level}")
            message = Message(
                str(group.target.topic),
                body.encode() if isinstance(body, str) else body,
                tags=row.get("tags"),
                keys=row.get("keys"),
                properties={name: value for name, value in row.get("properties") or () if value is not None},
                delay_level=level,
                flag=row.get("flag") or 0,
            )
            request = self._producer.request(message)
        except RmqError as error:
            raise self._failed(group.part(index, 1), str(error), error) from error
        return replace(request, first=index)

    def _first_queue(self, group: RowGroup) -> MessageQueue:
        """The queue to try first; waits for a name server that does not answer."""
        end, pause = self._end(), _FIRST_PAUSE
        passing = {ClientErrorCode.CONNECT_BROKER_EXCEPTION}
        while True:
            try:
                return self._choice.first(group.target)
            except RmqError as error:
                # a topic that is not there at first is the user's mistake
                if getattr(error, "response_code", -1) not in passing:
                    raise self._failed(group, str(error), error) from error
                # a name server that comes back knows no topic before brokers have registered with it
                passing.add(ClientErrorCode.NOT_FOUND_TOPIC_EXCEPTION)
                self._wait(group, error, pause, end)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _end(self) -> float:
        return time.monotonic() + self._options.retry_timeout_ms / 1000

    def _send(self, parcel: _Parcel) -> None:
        """Sends a request until it is stored, by a lane's thread.

        Raises:
            ClientError: It cannot be, or not in time.
        """
        timeout = self._options.send_timeout_ms / 1000
        end = self._end()
        refused_by: set[str] = set()
        pause = _FIRST_PAUSE
        while True:
            try:
                result = self._producer.send(parcel.request, parcel.queue, timeout)
            except (RemotingError, ClientError) as error:
                # the broker's limit may be less than the option, and it does not say what it is
                if _is_too_large(error) and parcel.request.rows > 1:
                    self._send_halves(parcel)
                    return
                # the request may be stored though its answer was lost: it goes again with the same ids
                if _passes(error):
                    self._wait(parcel.group, error, pause, end)
                    self.written.tried_again()
                    pause = min(2 * pause, _LONGEST_PAUSE)
                else:
                    # a broker that refuses is not asked again; another one may have the permission
                    refused_by.add(parcel.queue.broker_name)
                self._choose_again(parcel, refused_by, error)
            else:
                self.written.add(parcel.request.rows, parcel.request.size, is_safe=result.status is SendStatus.SEND_OK)
                return

    def _wait(self, group: RowGroup, error: RmqError, pause: float, end: float) -> None:
        """Waits before the next try, unless the time is over."""
        if time.monotonic() + pause > end:
            seconds = self._options.retry_timeout_ms / 1000
            raise self._failed(group, f"tried for {seconds:g} s (retryTimeoutMs): {error}", error) from error
        _LOG.debug("partition %d, %s: tries again in %.2f s: %s", self._partition, group.target, pause, error)
        # the pause ends at once where another lane has failed
        if self._lanes.stopping.wait(pause):
            raise self._failed(group, f"the task ends: {error}", error) from error

    def _choose_again(self, parcel: _Parcel, refused_by: set[str], error: RmqError) -> None:
        try:
            queue = self._choice.again(parcel.group.target, parcel.queue, refused_by)
        except RmqError:  # no name server, or the broker is in no route while it is down
            queue = None if parcel.queue.broker_name in refused_by else parcel.queue
        if queue is None:
            where = f"topic {parcel.queue.topic}, queue {parcel.queue.queue_id} of {parcel.queue.broker_name}"
            raise self._failed(parcel.group, f"{where}: {error}", error) from error
        parcel.queue = queue

    def _send_halves(self, parcel: _Parcel) -> None:
        """Sends in smaller parts what a broker refuses whole, down to the row that is too large."""
        # rounded up, so that there are two parts and no third of one row
        half = -(-parcel.request.rows // 2)
        for request in self._requests(parcel.group, half):
            self._send(_Parcel(request, parcel.group.part(request.first, request.rows), parcel.queue))

    def _failed(self, group: RowGroup, text: str, error: RmqError) -> ClientError:
        count = group.rows.num_rows
        rest = f" and {count - 1} more with it" if count > 1 else ""
        code = getattr(error, "code", getattr(error, "response_code", -1))
        return ClientError(f"partition {self._partition}, {row_text(group, 0)}{rest}: {text}", response_code=code)


def _passes(error: RmqError) -> bool:
    """Whether it may be taken a little later: nobody answered, or whoever did has too much to do."""
    if isinstance(error, ResponseError):
        return error.code in _PASSING
    return isinstance(error, (ChannelClosedError, ClientError, RemotingConnectError, RemotingTimeoutError))


def _is_too_large(error: RmqError) -> bool:
    return isinstance(error, ResponseError) and error.code == ResponseCode.MESSAGE_ILLEGAL
