"""Records that a real broker wrote, stored once more."""

from __future__ import annotations

import struct

import rmqfast
from tests.broker.control_plane import ControlPlane


def append(plane: ControlPlane, record: bytes) -> None:
    """Stores what a record says, at the time that it says."""
    queue_id, flag, _, _, sys_flag, born = struct.unpack_from(">iiqqiq", record, 12)
    host, port, stored = struct.unpack_from(">4siq", record, 48)
    times, prepared, size = struct.unpack_from(">iqi", record, 72)
    body, rest = record[88 : 88 + size], record[88 + size :]
    topic, properties = rest[1 : 1 + rest[0]].decode(), rest[3 + rest[0] :].decode()
    pairs = dict(pair.split("\x01") for pair in properties.split("\x02") if pair)
    pairs.pop("DELAY", None)  # it was delivered: to delay it once more would hide it
    plane.now = stored
    plane.store.append(
        rmqfast.Message(topic, body, properties=pairs, queue_id=queue_id, flag=flag, born_timestamp=born),
        born_host=f"{'.'.join(map(str, host))}:{port}",
        sys_flag=sys_flag,
        reconsume_times=times,
        prepared_transaction_offset=prepared,
    )
