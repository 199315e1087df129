"""What a broker says of files that another process has changed, and of messages that it cannot give."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from rmqfast.remoting.log_limit import limited

__all__ = ["Integrity", "WatchedPlane"]

_log = limited(logging.getLogger("rmqfast.broker"))


class WatchedPlane(Protocol):
    """The data plane, as far as it tells what is wrong with its store."""

    @property
    def harm(self) -> str | None:
        """The file that another process has changed, so that nothing is stored any more; None where all is well."""

    def take_harm_lines(self) -> list[str]:
        """What is to be told of such files, since it was taken last."""

    @property
    def skipped_messages(self) -> int:
        """How many messages pulls could not give."""

    def take_skipped_messages(self) -> list[tuple[str, int, int, int, int, str]]:
        """Topic, queue, queue offset, physical offset, size and reason of those that nobody was told of yet."""


class Integrity:
    """Writes to the log what the data plane has found, and has figures of it.

    Args:
        plane: The data plane.
    """

    def __init__(self, plane: WatchedPlane) -> None:
        self._plane = plane

    def run_once(self) -> None:
        """Tells what was found since the last call: a file is an error, and so is a place with a message."""
        for line in self._plane.take_harm_lines():
            _log.error("%s", line)
        for topic, queue_id, queue_offset, physical_offset, size, reason in self._plane.take_skipped_messages():
            _log.error(
                "message %d of queue %d of topic %s cannot be given to consumers, who go on behind it: %s "
                "(physical offset %d, %d bytes)",
                queue_offset,
                queue_id,
                topic,
                reason,
                physical_offset,
                size,
            )

    def figures(self) -> Mapping[str, str]:
        """For the figures of a broker: `storeHarm` and `messagesPassedOver`, none where all is well, as of RocketMQ."""
        harm, skipped = self._plane.harm, self._plane.skipped_messages
        found = {"storeHarm": harm} if harm else {}
        return found | ({"messagesPassedOver": str(skipped)} if skipped else {})
