"""Answers the requests that remove old files and unused queues.

Source: RocketMQ's `AdminBrokerProcessor`.
"""

from __future__ import annotations

from collections.abc import Callable

from rmqfast.broker.topics.topic_manager import TopicManager
from rmqfast.errors import ResponseError, RmqError
from rmqfast.logs import logger_of
from rmqfast.remoting import Later, Processor, Request, RequestCode, Response, ResponseCode
from rmqfast.store import WritableStore

_log = logger_of(__name__)


class CleanProcessor:
    """Answers requests 306, 316 and 329. Each runs on a thread of its own, since it may take long."""

    def __init__(self, store: WritableStore, topics: TopicManager) -> None:
        self._store = store
        self._topics = topics

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: self.clean_expired_consume_queue,
            RequestCode.CLEAN_UNUSED_TOPIC: self.clean_unused_topic,
            RequestCode.DELETE_EXPIRED_COMMITLOG: self.delete_expired_commit_log,
        }

    def clean_expired_consume_queue(self, request: Request) -> Later:
        """Answers request 306: removes consume queues without messages."""
        return _later(request, self._store.clean_expired_queues)

    def clean_unused_topic(self, request: Request) -> Later:
        """Answers request 316: removes the consume queues of deleted topics."""
        # Hold the topic names, or a topic created in the meantime would lose its queues.
        return _later(request, lambda: self._topics.hold(self._store.clean_unused_topics))

    def delete_expired_commit_log(self, request: Request) -> Later:
        """Answers request 329: removes expired files of the log, at any hour of the day."""
        # `manual` removes files outside of `deleteWhen`, too, as `executeDeleteFilesManually` does.
        return _later(request, lambda: self._store.clean(manual=True))


def _later(request: Request, clean: Callable[[], object]) -> Later:
    def work() -> Response:
        try:
            report = clean()
        except RmqError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from error
        _log.info("%s asked to clean (%d): %s", request.channel.remote_address, request.code, report)
        return Response()

    return Later(work)
