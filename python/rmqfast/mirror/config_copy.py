"""A broker's configuration in its copy: topics, groups, offsets, as its slaves have them.

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
    """Gives what a master answers to who keeps a copy, where it changed; offsets once the copy has the messages."""

    def __init__(self, client: AdminClient) -> None:
        self._client = client
        self._taken: dict[str, Any] = {}
        #: Offsets that wait, and up to where the copy is to list the log for them.
        self._held: list[ConfigFile] = []
        self._held_to = 0

    def update(
        self, address: str, take: Callable[[ConfigFile], object], end: Callable[[], int]
    ) -> frozenset[str] | None:
        """Gives what changed; what is not answered stays as it was, and the log says so.

        Args:
            address: Of the master, `host:port`.
            take: Keeps a table.
            end: Asks the master where its log ends.

        Returns:
            The topics that the master has, where they changed.
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
        """Asks behind the offsets: they speak of what stands before the end of now."""
        try:
            self._held_to = end()
        except RmqError:
            # nobody knows up to where: they are asked for again
            for table in self._held:
                self._taken.pop(table.FILE_NAME, None)
            self._held = []
            raise

    def give_held(self, listed_to: int, take: Callable[[ConfigFile], object]) -> None:
        """Gives the offsets that waited for the copy to list the log so far."""
        if self._held and listed_to >= self._held_to:
            held, self._held = self._held, []
            for table in held:
                take(table)
