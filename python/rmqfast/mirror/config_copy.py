"""A broker's configuration in its copy: topics, groups, offsets, as its slaves have them.

Source: `SlaveSynchronize.syncAll`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from rmqfast.admin.admin_client import AdminClient
from rmqfast.errors import RmqError
from rmqfast.remoting import RequestCode
from rmqfast.remoting.fastjson import decode
from rmqfast.store.config import ConsumerOffsetTable, DelayOffsetTable, SubscriptionGroupTable, TopicConfigTable
from rmqfast.store.config.file import ConfigFile

__all__ = ["ConfigCopy"]

_log = logging.getLogger(__name__)
#: The body of each answer is the file.
REQUESTS: tuple[tuple[int, type[ConfigFile]], ...] = (
    (RequestCode.GET_ALL_TOPIC_CONFIG, TopicConfigTable),
    (RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, SubscriptionGroupTable),
    (RequestCode.GET_ALL_CONSUMER_OFFSET, ConsumerOffsetTable),
    (RequestCode.GET_ALL_DELAY_OFFSET, DelayOffsetTable),
)


class ConfigCopy:
    """Gives what a master answers to who keeps a copy, as often as it changes."""

    def __init__(self, client: AdminClient) -> None:
        self._client = client
        self._taken: dict[str, Any] = {}

    def update(self, address: str, take: Callable[[ConfigFile], object]) -> frozenset[str] | None:
        """Gives what changed; what is not answered stays as it was, and the log says so.

        Args:
            address: Of the master, `host:port`.
            take: Keeps a table.

        Returns:
            The topics that the master has, where they changed.
        """
        topics = None
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
            take(content)
            self._taken[table.FILE_NAME] = text
            if isinstance(content, TopicConfigTable):
                topics = frozenset(content)
        return topics
