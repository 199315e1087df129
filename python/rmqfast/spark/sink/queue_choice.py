"""Which queue rows go to: the one that they name, or one after the other."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

from rmqfast.errors import ClientError
from rmqfast.message import MessageQueue
from rmqfast.spark.sink.row_groups import Target

__all__ = ["QueueChoice"]


class _Routes(Protocol):
    def queues(self, topic: str, *, is_new: bool = False) -> Sequence[MessageQueue]: ...


class QueueChoice:
    """Chooses queues, in turn from anywhere on.

    Args:
        routes: Knows the queues of topics: a `RowProducer`.

    Source: `TopicPublishInfo.selectOneMessageQueue`.
    """

    def __init__(self, routes: _Routes) -> None:
        self._routes = routes
        # tasks begin at once, and would all begin with the same queue
        self._turn = random.getrandbits(16)
        self._known: dict[tuple[str, str | None, int | None], Sequence[MessageQueue]] = {}

    def first(self, target: Target) -> MessageQueue:
        """The next queue of a target.

        Raises:
            ClientError: Nobody has the topic, or not such a queue; or several brokers have it.
        """
        self._turn += 1
        queues = self.of(target)
        return queues[self._turn % len(queues)]

    def again(self, target: Target, last: MessageQueue, refused_by: set[str]) -> MessageQueue | None:
        """Where to try next what could not be sent; None where all brokers refused it.

        Args:
            target: Where it goes.
            last: The queue that was tried.
            refused_by: Names of the brokers that do not want it.

        Raises:
            ClientError: As `first`.
        """
        left = [queue for queue in self.of(target, is_new=True) if queue.broker_name not in refused_by]
        # another broker first, as `TopicPublishInfo.selectOneMessageQueue` with the name of the last one
        others = [queue for queue in left if queue.broker_name != last.broker_name]
        self._turn += 1
        chosen = others or left
        return chosen[self._turn % len(chosen)] if chosen else None

    def of(self, target: Target, *, is_new: bool = False) -> Sequence[MessageQueue]:
        """All queues that a target leaves to choose from; with `is_new` a name server is asked."""
        if not target.topic:
            raise ClientError("expected a topic, got null")
        key = target.topic, target.broker_name, target.queue_id
        queues = self._known.get(key)
        if queues is None or is_new:
            queues = self._known[key] = _matching(target, self._routes.queues(target.topic, is_new=is_new))
        return queues


def _matching(target: Target, queues: Sequence[MessageQueue]) -> Sequence[MessageQueue]:
    matching = [
        queue
        for queue in queues
        if target.broker_name in {None, queue.broker_name} and target.queue_id in {None, queue.queue_id}
    ]
    asked_for = f"queue_id {target.queue_id}, broker_name {target.broker_name}"
    if not matching:
        raise ClientError(
            f"topic {target.topic} has no such queue that may be written to: {asked_for}; {_listed(queues)}"
        )
    # each broker numbers its queues from 0 on
    if target.queue_id is not None and len(matching) > 1:
        brokers = ", ".join(sorted(queue.broker_name for queue in matching))
        raise ClientError(f"topic {target.topic}, {asked_for}: expected a broker_name, as several have it: {brokers}")
    return matching


def _listed(queues: Sequence[MessageQueue]) -> str:
    by_broker: dict[str, list[int]] = {}
    for queue in queues:
        by_broker.setdefault(queue.broker_name, []).append(queue.queue_id)
    return "; ".join(f"{name} has {min(ids)} to {max(ids)}" for name, ids in sorted(by_broker.items()))
