"""The limits that a broker puts on one pull.

Source: RocketMQ's `MessageStoreConfig`, `DefaultMessageStore`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rmqfast.arguments import check_fields, suggests_names
from rmqfast.errors import ArgumentError
from rmqfast.system import physical_memory


@suggests_names
@dataclass(frozen=True, kw_only=True)
class GetLimits:
    """The limits that a broker puts on one pull.

    A message counts as being on disk if it lies further behind the log's end than `access_ratio` percent of the memory.

    Args:
        count_in_memory: Maximum number of messages (`maxTransferCountOnMessageInMemory`).
        bytes_in_memory: Maximum bytes of records (`maxTransferBytesOnMessageInMemory`); the first record always fits.
        count_in_disk: Maximum number of messages on disk (`maxTransferCountOnMessageInDisk`).
        bytes_in_disk: Maximum bytes of records on disk (`maxTransferBytesOnMessageInDisk`).
        access_ratio: Percentage of the memory that is assumed to cache the log's end (`accessMessageInMemoryMaxRatio`).
        physical_memory: Bytes of memory of the broker's machine. Default: this machine's.

    Raises:
        ArgumentError: A value out of range.
    """

    count_in_memory: int = 32
    bytes_in_memory: int = 256 << 10
    count_in_disk: int = 8
    bytes_in_disk: int = 64 << 10
    access_ratio: int = 40
    physical_memory: int | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("count_in_memory", "bytes_in_memory", "count_in_disk", "bytes_in_disk", "access_ratio"):
            value = getattr(self, name)
            # Java's int
            if not 0 <= value <= (1 << 31) - 1:
                raise ArgumentError(f"{name}: expected 0 to {(1 << 31) - 1}, got {value}")
        if self.physical_memory is not None and not 0 <= self.physical_memory < 1 << 63:
            raise ArgumentError(f"physical_memory: expected 0 to {(1 << 63) - 1}, got {self.physical_memory}")

    def with_system_values(self) -> GetLimits:
        """Returns a copy in which values of this system replace None."""
        if self.physical_memory is not None:
            return self
        return replace(self, physical_memory=physical_memory())
