"""Copies a broker's configuration to its mirror: topics, groups, offsets, as slaves do.

Source: `SlaveSynchronize.syncAll`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from rmqfast.admin.admin_client import AdminClient
from rmqfast.errors import RmqError
from rmqfast.logs import logger_of
from rmqfast.remoting import RequestCode
from rmqfast.remoting.fastjson import decode
from rmqfast.store.config import ConsumerOffsetTable, DelayOffsetTable, SubscriptionGroupTable, TopicConfigTable
from rmqfast.store.config.file import ConfigFile

__all__ = ["ConfigCopy"]

_log = logger_of(__name__)
#: The body of each answer is the file.
REQUESTS: tuple[tuple[int, type[ConfigFile]], ...] = (
    (RequestCode.GET_ALL_TOPIC_CONFIG, TopicConfigTable),
    (RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, SubscriptionGroupTable),
    (RequestCode.GET_ALL_CONSUMER_OFFSET, ConsumerOffsetTable),
    (RequestCode.GET_ALL_DELAY_OFFSET, DelayOffsetTable),
)


#: What speaks of messages: it is kept once the copy has those.
OFFSETS = (ConsumerOffsetTable, DelayOffsetTable)


class ConfigCopy:
    """Passes on each configuration table of the master that changed; offsets wait until the copy has their messages."""

    def __init__(self, client: AdminClient) -> None:
        self._client = client
        self._taken: dict[str, Any] = {}
        #: Offsets that wait, and up to where the copy is to list the log for them.
        self._held: list[ConfigFile] = []
        self._held_to = 0

    def update(
        self, address: str, take: Callable[[ConfigFile], object], end: Callable[[], int]
    ) -> frozenset[str] | None:
        """Asks for all tables and passes on those that changed. A request that fails is logged and repeated next time.

        Args:
            address: The master, `host:port`.
            take: Stores a table.
            end: Returns the end of the master's log.

        Returns:
            The master's topics, if they changed.
        """
        topics, are_new = None, False
        for code, table in REQUESTS:
            try:
                members = decode(self._client.ask(address, code).body)
            except RmqError as error:
                _log.warning("%s: the configuration of %s is not copied now: %s", table.FILE_NAME, address, error)
                continue
            text = json.dumps(members, sort_keys=True)
            if self._taken.get(table.FILE_NAME) == text:
                continue
            content = table.of_members(members)
            if isinstance(content, OFFSETS):
                # the last one of a kind is the newest
                self._held = [held for held in self._held if not isinstance(held, table)] + [content]
                are_new = True
            else:
                take(content)
            self._taken[table.FILE_NAME] = text
            if isinstance(content, TopicConfigTable):
                topics = frozenset(content)
        if are_new:
            self._hold(end)
        return topics

    def _hold(self, end: Callable[[], int]) -> None:
        """Reads the log's end after the offsets, which refer to messages before it."""
        try:
            self._held_to = end()
        except RmqError:
            # nobody knows up to where: they are asked for again
            for table in self._held:
                self._taken.pop(table.FILE_NAME, None)
            self._held = []
            raise

    def give_held(self, listed_to: int, take: Callable[[ConfigFile], object]) -> None:
        """Passes on waiting offsets once the copy has listed the log up to them."""
        if self._held and listed_to >= self._held_to:
            held, self._held = self._held, []
            for table in held:
                take(table)
