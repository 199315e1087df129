"""Removes queues of topics that the master has deleted. The master's log may still have messages of these topics.

Slaves of RocketMQ keep such queues. If the topic is created again, they skip its first messages.

Source: `DefaultMessageStore.cleanUnusedTopic`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from rmqfast.admin.admin_client import AdminClient
from rmqfast.admin.topics import topic_offsets_of_body
from rmqfast.broker.topics.topic_manager import WAITING_TOPICS
from rmqfast.logs import logger_of
from rmqfast.message import MessageQueue
from rmqfast.mirror.source import log_bounds
from rmqfast.remoting import RequestCode
from rmqfast.remoting.fastjson import decode
from rmqfast.store.config import TopicConfigTable
from rmqfast.store.replica import CopiedQueue, Replica
from rmqfast.system import monotonic

_log = logger_of(__name__)
#: Seconds between noting a copy's queues and asking the master, so that topics deleted together cost one check.
PRUNE_AFTER = 10.0


@dataclass(frozen=True)
class _TopicChange:
    """A change of the master's topics, at the time when the master's log ended at `known_to`.

    `queues` are the queues of the copy when it had listed the log up to `listed_to`, at least to `known_to`. `after` is
    the time for asking the master.
    """

    known_to: int
    queues: tuple[CopiedQueue, ...] = ()
    listed_to: int = 0
    after: float = math.inf


class Pruning:
    """Decides when to look for queues that the master does not have any more."""

    def __init__(self, client: AdminClient) -> None:
        self._client = client
        self._change: _TopicChange | None = None

    def topics_changed(self, known_to: int) -> None:
        """Records that the master's topics have changed, and where the master's log ended at that time."""
        self._change = _TopicChange(known_to)

    def was_cut(self) -> None:
        """Forgets the list of the copy's queues: they may be shorter after a cut. The next `look` lists them again."""
        if self._change is not None:
            self._change = _TopicChange(self._change.known_to)

    def look(self, address: str, replica: Replica, listed_to: int) -> None:
        change = self._change
        if change is None or listed_to < change.known_to:
            return
        if change.after == math.inf:
            after = monotonic() + PRUNE_AFTER
            self._change = replace(change, queues=tuple(replica.queues()), listed_to=listed_to, after=after)
        elif monotonic() >= change.after and log_bounds(self._client, address).listed_to >= change.listed_to:
            # A master that lists its log late has shorter queues than the copy until then.
            _prune(self._client, address, replica, change.queues)
            self._change = None


def _prune(client: AdminClient, address: str, replica: Replica, queues: Iterable[CopiedQueue]) -> None:
    """Removes those of the given queues that the master does not have any more."""
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
    """Returns the end of a queue at the master. Asks for it separately if producers no longer write to the queue."""
    if queue.queue_id in ends:
        return ends[queue.queue_id]
    return client.api.max_offset(address, MessageQueue(queue.topic, "", queue.queue_id), timeout=client.timeout)
