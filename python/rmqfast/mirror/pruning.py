"""Removes the queues of topics that a master has deleted: their messages stand in its log still.

A slave of RocketMQ keeps such queues, and where the topic is made again it passes over its first messages.

Source: `DefaultMessageStore.cleanUnusedTopic`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from rmqfast.admin.admin_client import AdminClient
from rmqfast.admin.topics import topic_offsets_of_body
from rmqfast.broker.topics.topic_names import WAITING_TOPICS
from rmqfast.logs import logger_of
from rmqfast.message import MessageQueue
from rmqfast.mirror.source import log_bounds
from rmqfast.remoting import RequestCode
from rmqfast.remoting.fastjson import decode
from rmqfast.store.config import TopicConfigTable
from rmqfast.store.replica import CopiedQueue, Replica
from rmqfast.system import monotonic

__all__ = ["Pruning"]

_log = logger_of(__name__)
#: Between noting a copy's queues and asking the master about them: topics that change together are one look.
PRUNE_AFTER = 10.0


@dataclass(frozen=True)
class _Noted:
    """The master's topics changed when its log ended at `known_to`.

    Attributes:
        queues: Those that the copy had once it listed so much, and up to where it listed the log then.
    """

    known_to: int
    queues: tuple[CopiedQueue, ...] = ()
    listed_to: int = 0
    after: float = math.inf


class Pruning:
    """When to look for queues of a copy that its master does not have any more.

    Args:
        client: Asks the master.
    """

    def __init__(self, client: AdminClient) -> None:
        self._client = client
        self._noted: _Noted | None = None

    def topics_changed(self, known_to: int) -> None:
        """The master has other topics than before, and its log ended at `known_to` then."""
        self._noted = _Noted(known_to)

    def was_cut(self) -> None:
        """The copy is shorter than it was: queues that were noted may be longer than they are now."""
        if self._noted is not None:
            self._noted = _Noted(self._noted.known_to)

    def look(self, address: str, replica: Replica, listed_to: int) -> None:
        """Removes queues, if it is time.

        Args:
            address: Of the master, `host:port`.
            replica: The copy.
            listed_to: Up to where it lists the master's log.

        Raises:
            RemotingError: The master does not answer.
        """
        noted = self._noted
        if noted is None or listed_to < noted.known_to:
            return
        if noted.after == math.inf:
            after = monotonic() + PRUNE_AFTER
            self._noted = replace(noted, queues=tuple(replica.queues()), listed_to=listed_to, after=after)
        elif monotonic() >= noted.after and log_bounds(self._client, address).listed_to >= noted.listed_to:
            # a master that lists late has shorter queues than its copy until then
            _prune(self._client, address, replica, noted.queues)
            self._noted = None


def _prune(client: AdminClient, address: str, replica: Replica, queues: Iterable[CopiedQueue]) -> None:
    """Removes those of `queues`, which the copy had some time ago, that the master has not."""
    topics = TopicConfigTable.of_members(decode(client.ask(address, RequestCode.GET_ALL_TOPIC_CONFIG).body)).keys()
    by_topic: dict[str, list[CopiedQueue]] = defaultdict(list)
    for queue in queues:
        if queue.topic not in WAITING_TOPICS and not queue.topic.startswith("%LMQ%"):
            by_topic[queue.topic].append(queue)
    ended: list[CopiedQueue] = []
    for topic, own in by_topic.items():
        ends = _ends(client, address, topic) if topic in topics else None
        ended += [queue for queue in own if ends is None or queue.next_offset > _end(client, address, queue, ends)]
    removed = replica.remove_ended(ended)
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
