"""The options that a data plane is opened with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DataPlaneOptions:
    """How messages are taken and given out; times in seconds, sizes in bytes.

    Attributes:
        address: `ip:port` that name servers tell, and records name as their store.
        sync_flush: A send is answered once the disk has the message (`flushDiskType=SYNC_FLUSH`).
        max_offsets: `maxConsumerOffsetCount`.
        new_names: `newNamesBurst` and `newNamesPerSecond`.
        memory: Bytes of the log before its end that are taken to be in memory.
        checks_bodies: `checkCRCOnDelivery`: a body that does not have its CRC is not given out.
        vip_port: Port of the second listener, which takes no pulls.
        hands_over_all: Every request goes to the control plane first, as where rights are checked.
        accepts_sends_from: `startAcceptSendRequestTimeStamp`, in milliseconds.
        slave_read: `slaveReadEnable`: who reads what is not in memory is told to read from a slave.
        is_slave: `brokerRole=SLAVE`: it takes no messages, and offsets are its master's.
        checks_offsets_in_slave: `offsetCheckInSlave`.
        sync_replication: `slaveTimeout` and `haSlaveFallbehindMax` on a `SYNC_MASTER`, where a send waits for a slave.

    Source: `BrokerConfig`, `MessageStoreConfig`.
    """

    broker_name: str
    cluster_name: str
    address: str
    region: str = "DefaultRegion"
    trace_on: bool = True
    sync_flush: bool = False
    sync_flush_timeout: float = 5.0
    max_message_size: int = 4 << 20
    max_offsets: int = 1_000_000
    new_names: tuple[int, int] = (10_000, 100)
    max_count_in_memory: int = 32
    max_bytes_in_memory: int = 256 << 10
    max_count_in_disk: int = 8
    max_bytes_in_disk: int = 64 << 10
    memory: int = 1 << 62
    long_polling: bool = True
    short_polling: float = 1.0
    property_filter: bool = False
    checks_bodies: bool = False
    rejects_transactions: bool = False
    vip_port: int | None = None
    hands_over_all: bool = False
    accepts_sends_from: int = 0
    slave_read: bool = False
    is_slave: bool = False
    checks_offsets_in_slave: bool = False
    sync_replication: tuple[float, int] | None = None
