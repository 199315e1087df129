"""Queues that are consumed in order: LOCK_BATCH_MQ and UNLOCK_BATCH_MQ.

Source: `AdminBrokerProcessor.lockBatchMQ`, `unlockBatchMQ`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rmqfast.broker.clients.queue_lock_manager import QueueLockManager
from rmqfast.message import MessageQueue
from rmqfast.remoting import Processor, Request, RequestCode, Response
from rmqfast.remoting.fastjson import encode
from rmqfast.remoting.protocol.heartbeat_data import MAX_GROUP_NAME, MAX_TOPIC_NAME, checked_name
from rmqfast.remoting.protocol.json_object import JsonObject

#: Queues that one request may name.
MAX_QUEUES = 10_000


class QueueLockProcessor:
    """Gives queues to those who consume them in order."""

    def __init__(self, locks: QueueLockManager, now: Callable[[], int]) -> None:
        self._locks = locks
        self._now = now

    def processors(self) -> dict[int, Processor]:
        """What is answered here, by request code."""
        return {RequestCode.LOCK_BATCH_MQ: self.lock, RequestCode.UNLOCK_BATCH_MQ: self.unlock}

    def lock(self, request: Request) -> Response:
        """41 LOCK_BATCH_MQ: answers which of the queues the client has now."""
        body = QueuesOfClient.of_body(request.body)
        locked = self._locks.lock(body.group, body.client_id, body.queues, now=self._now())
        return Response(body=encode({"lockOKMQSet": locked}))

    def unlock(self, request: Request) -> Response:
        """42 UNLOCK_BATCH_MQ."""
        body = QueuesOfClient.of_body(request.body)
        self._locks.unlock(body.group, body.client_id, body.queues)
        return Response()


@dataclass(frozen=True, slots=True)
class QueuesOfClient:
    """The body of both requests.

    Source: `LockBatchRequestBody`, `UnlockBatchRequestBody`.
    """

    group: str
    client_id: str
    queues: list[MessageQueue]

    @classmethod
    def of_body(cls, body: bytes) -> QueuesOfClient:
        """What a body says.

        Raises:
            ResponseError: A member of another type, or too many queues.
        """
        members = JsonObject.of_body(body)
        group = checked_name("group", members.text("consumerGroup"), MAX_GROUP_NAME)
        queues = members.queues("mqSet", most=MAX_QUEUES)
        for queue in queues:
            checked_name("topic", queue.topic, MAX_TOPIC_NAME)
        return cls(group, members.text("clientId"), queues)
