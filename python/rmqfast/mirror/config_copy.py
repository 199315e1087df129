"""Copies a broker's configuration to its mirror: topics, groups and offsets, the same as slaves copy.

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

_log = logger_of(__name__)
#: Each answer's body is the content of the file.
REQUESTS: tuple[tuple[int, type[ConfigFile]], ...] = (
    (RequestCode.GET_ALL_TOPIC_CONFIG, TopicConfigTable),
    (RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, SubscriptionGroupTable),
    (RequestCode.GET_ALL_CONSUMER_OFFSET, ConsumerOffsetTable),
    (RequestCode.GET_ALL_DELAY_OFFSET, DelayOffsetTable),
)


#: Tables that refer to messages; stored only when the copy has these messages.
OFFSETS = (ConsumerOffsetTable, DelayOffsetTable)


class ConfigCopy:
    """Passes on the master's tables that have changed. Offsets wait until the copy has the messages before them."""

    def __init__(self, client: AdminClient) -> None:
        self._client = client
        self._taken: dict[str, Any] = {}
        #: Waiting offsets, and the log position up to which the copy must have listed the log.
        self._held: list[ConfigFile] = []
        self._held_to = 0

    def update(
        self, address: str, take: Callable[[ConfigFile], object], end: Callable[[], int]
    ) -> frozenset[str] | None:
        """Requests all tables and passes on changed tables. A failed request is logged, and repeated next time.

        `take` stores a table, `end` returns the end of the master's log. Returns the master's topics, or `None` if
        they have not changed.
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
                # A later table of a kind replaces an earlier one.
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
        """Requests the log's end, after the offsets were requested: messages before the offsets are before that end."""
        try:
            self._held_to = end()
        except RmqError:
            # Without the end, request the offsets again next time.
            for table in self._held:
                self._taken.pop(table.FILE_NAME, None)
            self._held = []
            raise

    def give_held(self, listed_to: int, take: Callable[[ConfigFile], object]) -> None:
        """Passes on the offsets that wait, once the copy has listed the log up to the end that `_hold` requested."""
        if self._held and listed_to >= self._held_to:
            held, self._held = self._held, []
            for table in held:
                take(table)
