"""Limits of one pull, as a broker has them.

Source: RocketMQ's `MessageStoreConfig`, `DefaultMessageStore`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rmqfast.arguments import check_fields, suggests_names
from rmqfast.errors import ArgumentError
from rmqfast.system import physical_memory

__all__ = ["GetLimits"]


@suggests_names
@dataclass(frozen=True, kw_only=True)
class GetLimits:
    """The caps of a broker on one pull.

    A message that lies further behind the log's end than `access_ratio` per cent of the memory is taken to be on the
    disk alone.

    Args:
        count_in_memory: Most messages (`maxTransferCountOnMessageInMemory`).
        bytes_in_memory: Most bytes of records (`maxTransferBytesOnMessageInMemory`); the first record always fits.
        count_in_disk: Most messages that come from the disk (`maxTransferCountOnMessageInDisk`).
        bytes_in_disk: Most bytes that come from the disk (`maxTransferBytesOnMessageInDisk`).
        access_ratio: Percent of memory assumed to cache the log's end (`accessMessageInMemoryMaxRatio`).
        physical_memory: Bytes of memory of the broker's machine. Default: this machine's.

    Raises:
        ArgumentError: A value out of range.

    Example:
        >>> GetLimits(count_in_disk=16).bytes_in_disk
        65536
    """

    count_in_memory: int = 32
    bytes_in_memory: int = 256 << 10
    count_in_disk: int = 8
    bytes_in_disk: int = 64 << 10
    access_ratio: int = 40
    physical_memory: int | None = None

    def __post_init__(self) -> None:
        """Checks what Rust's types do not."""
        check_fields(self)
        for name in ("count_in_memory", "bytes_in_memory", "count_in_disk", "bytes_in_disk", "access_ratio"):
            value = getattr(self, name)
            if not 0 <= value <= (1 << 31) - 1:
                raise ArgumentError(f"{name}: expected 0 to {(1 << 31) - 1}, got {value}")
        if self.physical_memory is not None and not 0 <= self.physical_memory < 1 << 63:
            raise ArgumentError(f"physical_memory: expected 0 to {(1 << 63) - 1}, got {self.physical_memory}")

    def with_system_values(self) -> GetLimits:
        """Fills in the values of this system."""
        if self.physical_memory is not None:
            return self
        return replace(self, physical_memory=physical_memory())
