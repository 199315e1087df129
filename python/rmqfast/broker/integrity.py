"""What a broker tells of its own files when another process, or the disk, has harmed them."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from rmqfast.broker.plane.native_data_plane import NativeDataPlane
from rmqfast.remoting.log_limit import limited

__all__ = ["Integrity"]

_log = limited(logging.getLogger(__name__))


class Integrity:
    """Looks after the store, and tells of what it finds: once of each, as an error in the log.

    Args:
        data_plane: Knows whether messages can be stored, and which could not be given.
    """

    def __init__(self, data_plane: NativeDataPlane) -> None:
        self._data_plane = data_plane
        self._told: str | None = None

    def look(self) -> None:
        """Tells of what is new; to be called every second."""
        failure = self._data_plane.failure
        if failure is not None and failure != self._told:
            self._told = failure
            _log.error("THE STORE IS READ-ONLY until the broker is started anew: %s", failure)
        for topic, queue_id, queue_offset, physical_offset, size in self._data_plane.take_harmed():
            what = f"{size} bytes at {physical_offset} of the log are no record" if size else "its unit is zeroes"
            _log.error(
                "topic %s, queue %d, offset %d: consumers pass over this message, as %s; see `rmqfast store verify`",
                topic,
                queue_id,
                queue_offset,
                what,
            )

    def runtime_info(self) -> Mapping[str, str]:
        """What the broker's runtime info says of it: nothing while all is well."""
        failure, harmed = self._data_plane.failure, self._data_plane.harmed
        told = {} if failure is None else {"storeFailure": failure}
        return told if harmed == 0 else told | {"harmedMessages": str(harmed)}
