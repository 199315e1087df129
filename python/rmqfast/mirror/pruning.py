"""Removes the queues of topics that a master has deleted: their messages stand in its log still.

A slave of RocketMQ keeps such queues, and where the topic is made again it passes over its first messages.

Source: `DefaultMessageStore.cleanUnusedTopic`.
"""

from __future__ import annotations

import logging
from collections import defaultdict

from rmqfast.admin.admin_client import AdminClient
from rmqfast.admin.topics import topic_offsets_of_body
from rmqfast.broker.topics.topic_names import HALF_TOPIC, OP_TOPIC, SCHEDULE_TOPIC
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
        replica: The copy, which lists the log up to `known_to` at least.
        topics: The topics that the master has.
        known_to: Where its log ended before it was asked for them, some time ago: by now its own queues list so much.
            Queues that have a message behind that may be of newer topics.

    Raises:
        RemotingError: The master does not answer.
    """
    # before the master is asked for its ends: a queue that goes on never ends behind those
    by_topic: dict[str, list[CopiedQueue]] = defaultdict(list)
    for queue in replica.queues():
        if queue.last_record < known_to and not _is_brokers_own(queue.topic):
            by_topic[queue.topic].append(queue)
    ended: list[CopiedQueue] = []
    for topic, queues in by_topic.items():
        ends = _ends(client, address, topic) if topic in topics else None
        ended += [queue for queue in queues if ends is None or queue.next_offset > _end(client, address, queue, ends)]
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
