"""Removes the queues of topics that a master has deleted: their messages stand in its log still.

A slave of RocketMQ keeps such queues, and where the topic is made again it passes over its first messages.

Source: `DefaultMessageStore.cleanUnusedTopic`.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable

from rmqfast.admin.admin_client import AdminClient
from rmqfast.admin.topics import topic_offsets_of_body
from rmqfast.broker.topics.topic_names import HALF_TOPIC, OP_TOPIC, SCHEDULE_TOPIC
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode
from rmqfast.remoting.fastjson import decode
from rmqfast.store.config import TopicConfigTable
from rmqfast.store.replica import CopiedQueue, Replica

__all__ = ["prune"]

_log = logging.getLogger(__name__)


def prune(client: AdminClient, address: str, replica: Replica, queues: Iterable[CopiedQueue]) -> None:
    """Removes what a copy lists and its master does not.

    Args:
        client: Asks the master.
        address: Of the master, `host:port`.
        replica: The copy.
        queues: Its queues some time ago: by now the master's own list what these did then, so that a queue that goes on
            does not end before them.

    Raises:
        RemotingError: The master does not answer.
    """
    topics = TopicConfigTable.of_members(decode(client.ask(address, RequestCode.GET_ALL_TOPIC_CONFIG).body)).keys()
    by_topic: dict[str, list[CopiedQueue]] = defaultdict(list)
    for queue in queues:
        if not _is_brokers_own(queue.topic):
            by_topic[queue.topic].append(queue)
    ended: list[CopiedQueue] = []
    for topic, own in by_topic.items():
        ends = _ends(client, address, topic) if topic in topics else None
        ended += [queue for queue in own if ends is None or queue.next_offset > _end(client, address, queue, ends)]
    removed = replica.remove_ended(ended)
    if removed:
        _log.info("%s: queues of topics that the master has deleted: %s", replica.path, removed)


def _is_brokers_own(topic: str) -> bool:
    """Whether a broker keeps the queues, whatever its topics are."""
    return topic.startswith("%LMQ%") or topic in (SCHEDULE_TOPIC, HALF_TOPIC, OP_TOPIC)


def _ends(client: AdminClient, address: str, topic: str) -> dict[int, int]:
    body = client.ask(address, RequestCode.GET_TOPIC_STATS_INFO, {"topic": topic}, slow=True).body
    return {offset.queue_id: offset.max_offset for offset in topic_offsets_of_body(body)}


def _end(client: AdminClient, address: str, queue: CopiedQueue, ends: dict[int, int]) -> int:
    """The master's next offset; asked for by itself where it is not among the queues that producers write to."""
    if queue.queue_id in ends:
        return ends[queue.queue_id]
    return client.api.max_offset(address, MessageQueue(queue.topic, "", queue.queue_id), timeout=client.timeout)
