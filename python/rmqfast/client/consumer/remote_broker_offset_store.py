"""Offsets of a group whose members share the messages: brokers keep them.

Source: `RemoteBrokerOffsetStore`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable

from rmqfast.client.consumer.offset_store import NO_OFFSET, UNREACHABLE, OffsetTable, ReadOffsetType
from rmqfast.client.instance import ClientInstance
from rmqfast.errors import ClientError, RemotingError
from rmqfast.message import MessageQueue

_log = logging.getLogger(__name__)
_TIMEOUT = 5.0


class RemoteBrokerOffsetStore:
    """Keeps offsets in memory and tells brokers of them now and then.

    Args:
        instance: What brokers are reached by.
        group: The group, with its namespace.
    """

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance, self._group = instance, group
        self._table = OffsetTable()
        # is held while an offset is read and sent: an older one never follows a newer one
        self._sending = threading.Lock()

    def load(self) -> None:
        """Nothing is kept on this machine."""

    def update_offset(self, queue: MessageQueue, offset: int, *, increase_only: bool = False) -> None:
        """Notes where to go on."""
        self._table.update(queue, offset, increase_only=increase_only)

    def read_offset(self, queue: MessageQueue, kind: ReadOffsetType) -> int:
        """Where to go on; what a broker says is noted, too."""
        if kind is not ReadOffsetType.READ_FROM_STORE:
            known = self._table.get(queue)
            if known is not None:
                return known
            if kind is ReadOffsetType.READ_FROM_MEMORY:
                return NO_OFFSET
        return self._asked(queue)

    def persist(self, queue: MessageQueue) -> None:
        """Tells the broker how far one queue is; does not wait for an answer."""
        self._told(queue)

    def persist_all(self, queues: Iterable[MessageQueue]) -> None:
        """Tells brokers how far these queues are, and forgets others; nothing where there are none."""
        # in this order: what was noted before `queues` are looked at, and is of none of them, was given up
        others, mine = self._table.clone(), list(queues)
        if not mine:
            return
        for queue in mine:
            others.pop(queue, None)
            self._told(queue)
        self._table.forget(others)

    def remove_offset(self, queue: MessageQueue) -> None:
        """Forgets a queue; the broker does not."""
        self._table.remove(queue)

    def clone(self, topic: str | None = None) -> dict[MessageQueue, int]:
        """What is in memory."""
        return self._table.clone(topic)

    def update_to_broker(self, queue: MessageQueue, offset: int, *, oneway: bool = True) -> None:
        """Tells the broker an offset.

        Raises:
            ClientError: Nobody knows where the broker is.
            RemotingError: It does not take the offset.
        """
        self._instance.api.update_consumer_offset(
            self._address(queue), self._group, queue, offset, oneway=oneway, timeout=_TIMEOUT
        )

    def _asked(self, queue: MessageQueue) -> int:
        try:
            address = self._address(queue)
            offset = self._instance.api.query_consumer_offset(address, self._group, queue, timeout=_TIMEOUT)
        except (ClientError, RemotingError) as error:
            # also a broker that is busy: to take that for a new group, as Java's 4.9 does, would pass over messages
            _log.warning("group %s: the offset of %s cannot be read: %s", self._group, queue, error)
            return UNREACHABLE
        if offset is None:
            return NO_OFFSET
        self._table.update(queue, offset, increase_only=False)
        return offset

    def _told(self, queue: MessageQueue) -> None:
        with self._sending:
            offset = self._table.get(queue)
            if offset is None:
                return
            try:
                self.update_to_broker(queue, offset)
            except (ClientError, RemotingError) as error:
                _log.warning(
                    "group %s: the broker does not get the offset %d of %s: %s", self._group, offset, queue, error
                )

    def _address(self, queue: MessageQueue) -> str:
        found = self._instance.subscribe_address(queue.broker_name, 0, only_this=True)
        if found is None:  # a slave is asked only where the name servers know no master either
            self._instance.update_route(queue.topic)
            found = self._instance.subscribe_address(queue.broker_name, 0)
        if found is None:
            raise ClientError(f"The broker[{queue.broker_name}] not exist", next_step="is it registered and running?")
        return found.address
