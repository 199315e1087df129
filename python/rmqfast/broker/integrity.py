"""Reports to operators which files another process has changed, and which messages pulls have skipped."""

from __future__ import annotations

from collections.abc import Mapping

from rmqfast._native import DataPlane
from rmqfast.logs import logger_of
from rmqfast.remoting.log_limit import limited

_log = limited(logger_of("rmqfast.broker"))


class Integrity:
    """Logs and counts the damage that the data plane has found."""

    def __init__(self, data_plane: DataPlane) -> None:
        self._data_plane = data_plane

    def run_once(self) -> None:
        """Logs as errors the files and messages that were found since the last call."""
        for line in self._data_plane.take_harm_lines():
            _log.error("%s", line)
        for topic, queue_id, queue_offset, physical_offset, size, reason in self._data_plane.take_skipped_messages():
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
        """Returns `storeHarm` and `messagesPassedOver` for the runtime statistics. Empty without damage."""
        harm, skipped = self._data_plane.harm, self._data_plane.skipped_messages
        figures = {"storeHarm": harm} if harm else {}
        return figures | ({"messagesPassedOver": str(skipped)} if skipped else {})
