"""`checkpoint`: 4096 bytes, three timestamps in milliseconds; 5.x adds two offsets behind them.

Source: StoreCheckpoint.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

FILE_SIZE = 4096
SAFETY_MILLIS = 3000


@dataclass(frozen=True)
class Checkpoint:
    physic_msg_timestamp: int = 0
    logics_msg_timestamp: int = 0
    index_msg_timestamp: int = 0
    master_flushed_offset: int = 0
    confirm_phy_offset: int = 0

    def encode(self) -> bytes:
        values = (
            self.physic_msg_timestamp,
            self.logics_msg_timestamp,
            self.index_msg_timestamp,
            self.master_flushed_offset,
            self.confirm_phy_offset,
        )
        return struct.pack(">5q", *values).ljust(FILE_SIZE, b"\0")

    @staticmethod
    def decode(data: bytes) -> Checkpoint:
        return Checkpoint(*struct.unpack_from(">5q", data))

    @property
    def min_timestamp(self) -> int:
        return max(0, min(self.physic_msg_timestamp, self.logics_msg_timestamp) - SAFETY_MILLIS)
