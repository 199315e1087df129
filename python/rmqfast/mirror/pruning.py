"""Removes the queues of topics that a master has deleted: their messages stand in its log still.

A slave of RocketMQ keeps such queues, and where the topic is made again it passes over its first messages.

Source: `DefaultMessageStore.cleanUnusedTopic`.
"""

from __future__ import annotations

import logging
from collections import defaultdict

from rmqfast.admin.admin_client import AdminClient
from rmqfast.admin.topics import topic_offsets_of_body
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode
from rmqfast.store.replica import CopiedQueue, Replica

__all__ = ["prune"]

_log = logging.getLogger(__name__)


def prune(client: AdminClient, address: str, replica: Replica, topics: frozenset[str], known_to: int) -> None:
    """Removes what a copy lists and its master does not.

    Args:
        client: Asks the master.
        address: Of the master, `host:port`.
        replica: The copy, which reaches to `known_to` at least.
        topics: The topics that the master has.
        known_to: Where its log ended before it was asked for them: the messages of topics that are newer stand behind.

    Raises:
        RemotingError: The master does not answer.
    """
    # before the master is asked for its ends: a queue that goes on never ends behind those
    queues = replica.queues()
    by_topic: dict[str, list[CopiedQueue]] = defaultdict(list)
    for queue in queues:
        by_topic[queue.topic].append(queue)
    newer = {queue.topic for queue in queues if queue.last_record >= known_to}
    removed = replica.store.clean_unused_topics(topics | newer)
    ended: list[CopiedQueue] = []
    for topic in topics & by_topic.keys():
        ends = _ends(client, address, topic)
        ended += [queue for queue in by_topic[topic] if queue.next_offset > _end(client, address, queue, ends)]
    removed += replica.remove_ended(ended)
    if removed:
        _log.info("%s: queues of topics that the master has deleted: %s", replica.path, removed)


def _ends(client: AdminClient, address: str, topic: str) -> dict[int, int]:
    body = client.ask(address, RequestCode.GET_TOPIC_STATS_INFO, {"topic": topic}, slow=True).body
    return {offset.queue_id: offset.max_offset for offset in topic_offsets_of_body(body)}


def _end(client: AdminClient, address: str, queue: CopiedQueue, ends: dict[int, int]) -> int:
    """The master's next offset; asked for by itself where it is not among the queues that producers write to."""
    if queue.queue_id in ends:
        return ends[queue.queue_id]
    return client.api.max_offset(address, MessageQueue(queue.topic, "", queue.queue_id), timeout=client.timeout)
