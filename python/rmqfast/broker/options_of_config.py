"""Maps `broker.conf` to options of the store, the data plane, retention and transaction checks.

Source: RocketMQ's `MessageStoreConfig`, `BrokerConfig`, `BrokerFastFailure`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.broker.transactions.check_round import TransactionCheckOptions
from rmqfast.errors import ArgumentError
from rmqfast.remoting import RequestCode
from rmqfast.remoting.tls import TlsMode, TlsOptions, server_tls
from rmqfast.store import AppendOptions, RetentionOptions
from rmqfast.store.config.delay_levels import DelayLevels
from rmqfast.system import physical_memory

#: Largest frame for slaves; a RocketMQ slave reads into a buffer of 4 MiB.
_MAX_FRAME = 1 << 20
_MIN_FRAME = 1 << 10


def append_options(config: BrokerConfig) -> AppendOptions:
    busy = config.number("osPageCacheBusyTimeOutMills")
    return AppendOptions(
        flush="sync" if _is_sync(config) else "async",
        file_size=config.number("mappedFileSizeCommitLog"),
        queue_file_size=config.number("mappedFileSizeConsumeQueue"),
        index_slots=config.number("maxHashSlotNum"),
        index_entries=config.number("maxIndexNum"),
        max_message_size=config.number("maxMessageSize"),
        store_host=config.broker_address,
        multi_dispatch=config.flag("enableMultiDispatch") and config.flag("enableLmq"),
        max_lmq_queues=config.number("maxLmqConsumeQueueNum"),
        sync_flush_timeout=config.number("syncFlushTimeout") / 1000,
        busy_after=busy / 1000 if busy > 0 else None,
        file_permission=int(config.text("storeFilePermission"), 8),
        delay_levels=tuple(millis // 1000 for millis in DelayLevels(config.text("messageDelayLevel")).values()),
    )


def retention_options(config: BrokerConfig) -> RetentionOptions:
    return RetentionOptions(
        file_reserved_hours=config.number("fileReservedTime"),
        delete_when=config.text("deleteWhen"),
        disk_max_used_ratio=config.number("diskMaxUsedSpaceRatio"),
        force_ratio=config.percent("rocketmq.broker.diskSpaceCleanForciblyRatio", RetentionOptions.force_ratio),
        warning_ratio=config.percent("rocketmq.broker.diskSpaceWarningLevelRatio", RetentionOptions.warning_ratio),
        clean_forcibly=config.flag("cleanFileForciblyEnable"),
    )


@dataclass(frozen=True, slots=True)
class DataPlaneOptions:
    """Options of the data plane. Times are in seconds, sizes in bytes.

    Attributes:
        address: `ip:port` given to name servers and written into records as store host.
        sync_flush: Whether a send is answered only when the message is on disk (`flushDiskType=SYNC_FLUSH`).
        max_offsets: `maxConsumerOffsetCount`.
        new_names: `newNamesBurst` and `newNamesPerSecond`.
        memory: Bytes at the log's end that count as in memory.
        checks_bodies: `checkCRCOnDelivery`: whether to withhold bodies that differ from their CRC.
        vip_port: Port of the second listener, which accepts no pulls.
        hands_over_all: Whether every request goes to the control plane first, for access control.
        accepts_sends_from: `startAcceptSendRequestTimeStamp`, in milliseconds since 1970.
        slave_read: `slaveReadEnable`: whether to redirect pulls of messages outside of memory to a slave.
        is_slave: `brokerRole=SLAVE`: accepts no sends, and has the offsets of its master.
        checks_offsets_in_slave: `offsetCheckInSlave`.
        sync_replication: `slaveTimeout` and `haSlaveFallbehindMax` of a `SYNC_MASTER`, whose sends wait for a slave.
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


def data_plane_options(config: BrokerConfig, *, vip_port: int | None, checks_rights: bool) -> DataPlaneOptions:
    return DataPlaneOptions(
        broker_name=config.text("brokerName"),
        cluster_name=config.text("brokerClusterName"),
        address=config.broker_address,
        region=config.text("regionId"),
        trace_on=config.flag("traceOn"),
        sync_flush=_is_sync(config),
        sync_flush_timeout=config.number("syncFlushTimeout") / 1000,
        max_message_size=config.number("maxMessageSize"),
        max_offsets=config.number("maxConsumerOffsetCount"),
        new_names=(config.number("newNamesBurst"), config.number("newNamesPerSecond")),
        max_count_in_memory=config.number("maxTransferCountOnMessageInMemory"),
        max_bytes_in_memory=config.number("maxTransferBytesOnMessageInMemory"),
        max_count_in_disk=config.number("maxTransferCountOnMessageInDisk"),
        max_bytes_in_disk=config.number("maxTransferBytesOnMessageInDisk"),
        memory=physical_memory() * config.number("accessMessageInMemoryMaxRatio") // 100,
        long_polling=config.flag("longPollingEnable"),
        short_polling=config.number("shortPollingTimeMills") / 1000,
        property_filter=config.flag("enablePropertyFilter"),
        checks_bodies=config.flag("checkCRCOnDelivery"),
        rejects_transactions=config.flag("rejectTransactionMessage"),
        vip_port=vip_port,
        hands_over_all=checks_rights,
        accepts_sends_from=config.number("startAcceptSendRequestTimeStamp"),
        slave_read=config.flag("slaveReadEnable"),
        is_slave=config.is_slave,
        checks_offsets_in_slave=config.flag("offsetCheckInSlave"),
        sync_replication=_sync_replication(config),
    )


class HaOptions(TypedDict):
    """The arguments of `DataPlane.serve_log`."""

    slaves: list[str] | None
    max_frame: int
    heartbeat: float
    housekeeping: float
    tls: TlsOptions | None


def ha_options(config: BrokerConfig, *, is_checked: bool) -> HaOptions:
    """Returns the options of the HA port.

    The HA port knows no accounts, so with access control only the addresses in `haSlaveAddresses` get the log.
    """
    named = [address.strip() for address in config.text("haSlaveAddresses").split(",") if address.strip()]
    # RocketMQ's default would cost a report and two system calls per 32 KiB.
    max_frame = config.number("haTransferBatchSize") if "haTransferBatchSize" in config.explicit else _MAX_FRAME
    return HaOptions(
        slaves=named if named or is_checked else None,
        max_frame=min(max(max_frame, _MIN_FRAME), _MAX_FRAME),
        # With shorter intervals, only empty frames would be sent, and no slave could report in time.
        heartbeat=max(config.number("haSendHeartbeatInterval"), 100) / 1000,
        housekeeping=max(config.number("haHousekeepingInterval"), 1000) / 1000,
        tls=_ha_tls(config),
    )


def _ha_tls(config: BrokerConfig) -> TlsOptions | None:
    if not config.flag("haUseTLS"):
        return None
    tls = server_tls(config)
    if tls.mode is TlsMode.DISABLED:
        raise ArgumentError("haUseTLS=true: expected TLS with tls.server.certPath, got tls.server.mode=disabled")
    return tls


def transaction_options(config: BrokerConfig) -> TransactionCheckOptions:
    return TransactionCheckOptions(
        timeout=config.number("transactionTimeOut"),
        max_checks=config.number("transactionCheckMax"),
        reserved_hours=config.number("fileReservedTime"),
    )


def request_ages(config: BrokerConfig) -> dict[int, float]:
    """Returns the seconds after which a waiting request is not answered any more, by request code."""
    if not config.flag("brokerFastFailureEnable"):
        return {}
    return {
        RequestCode.HEART_BEAT: config.number("waitTimeMillsInHeartbeatQueue") / 1000,
        RequestCode.END_TRANSACTION: config.number("waitTimeMillsInTransactionQueue") / 1000,
    }


def _sync_replication(config: BrokerConfig) -> tuple[float, int] | None:
    if not config.is_sync_master:
        return None
    return max(config.number("slaveTimeout"), 0) / 1000, max(config.number("haSlaveFallbehindMax"), 0)


def _is_sync(config: BrokerConfig) -> bool:
    return config.text("flushDiskType") == "SYNC_FLUSH"
