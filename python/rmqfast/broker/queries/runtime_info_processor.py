"""Answers GET_BROKER_RUNTIME_INFO: statistics of the broker, and the usage of its disks.

Source: RocketMQ's `AdminBrokerProcessor`, `DefaultMessageStore`, `UtilAll`, `MixAll`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from rmqfast._native import used_percent
from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.broker.statistics.store_stats import StoreStats
from rmqfast.remoting import VERSION, Processor, Request, RequestCode, Response
from rmqfast.remoting.fastjson import encode, java_double
from rmqfast.store import LiveStore

#: `Integer.MAX_VALUE`, as RocketMQ reports if the pool is off.
_NO_TRANSIENT_STORE_POOL = (1 << 31) - 1
_KIB = 1024


class RuntimeInfoProcessor:
    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        path: str | os.PathLike[str],
        live: LiveStore,
        stats: StoreStats,
        *,
        schedule: Callable[[], Mapping[str, str]],
        unflushed: Callable[[], int],
        integrity: Callable[[], Mapping[str, str]],
        now: Callable[[], int],
    ) -> None:
        self._config = config
        self._path = Path(path)
        self._live = live
        self._stats = stats
        self._schedule = schedule
        self._unflushed = unflushed
        self._integrity = integrity
        self._now = now

    def processors(self) -> dict[int, Processor]:
        return {RequestCode.GET_BROKER_RUNTIME_INFO: self.get_broker_runtime_info}

    def get_broker_runtime_info(self, _request: Request) -> Response:
        figures = self._stats.runtime_info(self._now()) | dict(self._schedule()) | self._store_info()
        return Response(body=encode({"table": figures | self._disk_info() | self._queue_info()}))

    def _store_info(self) -> dict[str, str]:
        low, high = self._live.log_bounds()
        return {
            "brokerVersion": str(VERSION),
            "brokerVersionDesc": "V4_9_4",
            "commitLogMinOffset": str(low),
            "commitLogMaxOffset": str(high),
            "earliestMessageTimeStamp": str(self._live.earliest_store_time(None, None)),
            "remainHowManyDataToFlush": readable_bytes(self._unflushed()),
            "remainTransientStoreBufferNumbs": str(_NO_TRANSIENT_STORE_POOL),
            "dispatchMaxBuffer": "0",
            "dispatchBehindBytes": "0",  # a message is listed before its put is answered
            "pageCacheLockTimeMills": "0",
            "startAcceptSendRequestTimeStamp": self._config()["startAcceptSendRequestTimeStamp"],
            **self._integrity(),
        }

    def _disk_info(self) -> dict[str, str]:
        log = self._path / "commitlog"
        ratio = java_double(used_ratio(log))
        info = {
            f"commitLogDiskRatio_{log}": ratio,
            "commitLogDiskRatio": ratio,
            "consumeQueueDiskRatio": java_double(used_ratio(self._path / "consumequeue")),
        }
        disk = _usage(self._path)
        if disk is not None:
            total, _, free = map(readable_bytes, disk)
            info["commitLogDirCapacity"] = f"Total : {total}, Free : {free}."
        return info

    def _queue_info(self) -> dict[str, str]:
        """Returns the statistics of request queues. Always empty, since requests do not wait for threads here."""
        config = self._config()
        # RocketMQ's defaults, since dashboards divide by these numbers.
        capacities = {
            "sendThreadPoolQueueCapacity": config.get("sendThreadPoolQueueCapacity", "10000"),
            "pullThreadPoolQueueCapacity": config.get("pullThreadPoolQueueCapacity", "100000"),
            "queryThreadPoolQueueCapacity": config.get("queryThreadPoolQueueCapacity", "20000"),
            "EndTransactionThreadPoolQueueCapacity": config.get("endTransactionPoolQueueCapacity", "100000"),
        }
        sizes = [f"{pool}ThreadPoolQueueSize" for pool in ("send", "pull", "query")]
        waits = [f"{pool}ThreadPoolQueueHeadWaitTimeMills" for pool in ("send", "pull", "query")]
        return capacities | dict.fromkeys([*sizes, *waits, "EndTransactionQueueSize"], "0")


def used_ratio(path: Path) -> float:
    """Returns which part of a path's disk is used, from 0 to 1, rounded up to hundredths. -1 if it is unknown."""
    percent = used_percent(path)
    return -1.0 if percent is None else percent / 100


def readable_bytes(count: int) -> str:
    """Formats a number of bytes as RocketMQ does.

    Example:
        >>> readable_bytes(409), readable_bytes(1142), readable_bytes(270_000_000_000)
        ('409 B', '1.1 KiB', '251.5 GiB')
    """
    if count < _KIB:
        return f"{count} B"
    power = (count.bit_length() - 1) // 10
    return f"{count / _KIB**power:.1f} {'KMGTPE'[power - 1]}iB"


def _usage(path: Path) -> tuple[int, int, int] | None:
    """Returns total, used and available bytes of the disk. None if the system does not tell."""
    try:
        return shutil.disk_usage(path)
    except OSError:
        return None
