"""The runtime status of brokers as metrics, under the names of RocketMQ's exporter.

Source: RocketMQ Exporter's `BrokerRuntimeStats`, `RMQMetricsCollector`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from rmqfast.admin import BrokerSnapshot
from rmqfast.metrics import Family, Kind, Sample

LABELS = ("cluster", "brokerIP", "brokerHost", "des", "boottime", "broker_version")
_SIZE = re.compile(r"([0-9.]+) ?([KMGTPE]?)(?:iB|B)")
_FREE, _TOTAL = re.compile(r"Free : ([^,]+?)\.?(?:$|,)"), re.compile(r"Total : ([^,]+)")
_RANGE = re.compile(r"\[([^\]]+)\]:(\d+)")


def runtime_families(brokers: Iterable[BrokerSnapshot]) -> list[Family]:
    """Returns a family for each figure of the status. A broker that does not tell a figure has no sample of it."""
    told = [(_labels(broker, broker.status), broker.status) for broker in brokers if broker.status is not None]
    return [
        Family(
            f"rocketmq_brokeruntime_{name}",
            Kind.GAUGE,
            text,
            LABELS,
            [Sample(labels, value) for labels, status in told if (value := read(status)) is not None],
        )
        for name, text, read in _FIGURES
    ]


def bytes_of(text: str) -> float | None:
    """Parses a size as RocketMQ prints it.

    Example:
        >>> bytes_of("251.5 GiB"), bytes_of("409 B"), bytes_of("many")
        (270046068736.0, 409.0, None)
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    return float(match[1]) * 1024.0 ** ("KMGTPE".index(match[2]) + 1 if match[2] else 0)


def _labels(broker: BrokerSnapshot, status: Mapping[str, str]) -> tuple[str, ...]:
    # The exporter leaves the host empty.
    facts = (status.get(key, "") for key in ("brokerVersionDesc", "bootTimestamp", "brokerVersion"))
    return (broker.cluster, broker.address, "", *facts)


Read = Callable[[Mapping[str, str]], float | None]


def _number(key: str) -> Read:
    return lambda status: _float(status.get(key, ""))


def _tps(keys: tuple[str, ...], index: int) -> Read:
    def read(status: Mapping[str, str]) -> float | None:
        words = next((status[key] for key in keys if key in status), "").split()
        return _float(words[index]) if index < len(words) else None

    return read


def _put_times(name: str) -> Read:
    return lambda status: _float(dict(_RANGE.findall(status.get("putMessageDistributeTime", ""))).get(name, ""))


def _capacity(pattern: re.Pattern[str]) -> Read:
    def read(status: Mapping[str, str]) -> float | None:
        match = pattern.search(status.get("commitLogDirCapacity", ""))
        return None if match is None else bytes_of(match[1])

    return read


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


_TO_FLUSH = "remainHowManyDataToFlush"
_TPS = (
    ("put_tps", "Messages stored", ("putTps",)),
    ("getfound_tps", "Pulls with messages", ("getFoundTps",)),
    ("getmiss_tps", "Pulls without messages", ("getMissTps",)),
    ("gettotal_tps", "Pulls", ("getTotalTps",)),
    # 5.x spells it right.
    ("gettransfered_tps", "Messages sent to consumers", ("getTransferedTps", "getTransferredTps")),
)
_PUT_TIMES = {
    "0ms": "<=0ms",
    "0to10ms": "0~10ms",
    "10to50ms": "10~50ms",
    "50to100ms": "50~100ms",
    "100to200ms": "100~200ms",
    "200to500ms": "200~500ms",
    "500to1s": "500ms~1s",
    "1to2s": "1~2s",
    "2to3s": "2~3s",
    "3to4s": "3~4s",
    "4to5s": "4~5s",
    "5to10s": "5~10s",
    "10stomore": "10s~",
}
#: Name, meaning, and the key of the status.
_NUMBERS = (
    ("msg_put_total_today_now", "Messages stored until now.", "msgPutTotalTodayNow"),
    ("msg_gettotal_today_now", "Messages sent to consumers until now.", "msgGetTotalTodayNow"),
    ("msg_puttotal_todaymorning", "Messages stored until this morning.", "msgPutTotalTodayMorning"),
    ("msg_gettotal_todaymorning", "Messages sent until this morning.", "msgGetTotalTodayMorning"),
    ("msg_puttotal_yesterdaymorning", "Messages stored until yesterday morning.", "msgPutTotalYesterdayMorning"),
    ("msg_gettotal_yesterdaymorning", "Messages sent until yesterday morning.", "msgGetTotalYesterdayMorning"),
    ("putmessage_times_total", "Puts.", "putMessageTimesTotal"),
    ("put_message_size_total", "Bytes stored.", "putMessageSizeTotal"),
    ("put_message_average_size", "Bytes of a message.", "putMessageAverageSize"),
    ("putmessage_entire_time_max", "Milliseconds of the longest put.", "putMessageEntireTimeMax"),
    ("getmessage_entire_time_max", "Milliseconds of the longest get.", "getMessageEntireTimeMax"),
    ("put_latency_99", "Milliseconds of 99 % of the puts.", "putLatency99"),
    ("put_latency_999", "Milliseconds of 99.9 % of the puts.", "putLatency999"),
    ("dispatch_behind_bytes", "Bytes of the log that are not listed.", "dispatchBehindBytes"),
    ("dispatch_maxbuffer", "Requests that wait to be listed.", "dispatchMaxBuffer"),
    ("remain_transientstore_buffer_numbs", "Free buffers.", "remainTransientStoreBufferNumbs"),
    ("pagecache_lock_time_mills", "Milliseconds that the log has been locked.", "pageCacheLockTimeMills"),
    ("commitlog_disk_ratio", "Used part of the log's disk.", "commitLogDiskRatio"),
    ("consumequeue_disk_ratio", "Used part of the queues' disk.", "consumeQueueDiskRatio"),
    ("commitlog_minoffset", "First offset of the log.", "commitLogMinOffset"),
    ("commitlog_maxoffset", "End of the log.", "commitLogMaxOffset"),
    ("earliest_message_timestamp", "Store time of the oldest message.", "earliestMessageTimeStamp"),
    ("start_accept_sendrequest_time", "Time from which sends are accepted.", "startAcceptSendRequestTimeStamp"),
    ("send_threadpoolqueue_capacity", "Requests that may wait.", "sendThreadPoolQueueCapacity"),
    ("pull_threadpoolqueue_capacity", "Requests that may wait.", "pullThreadPoolQueueCapacity"),
    # These two names are spelt as the exporter spells them.
    ("query_threadpool_queue_capacity", "Requests that may wait.", "queryThreadPoolQueueCapacity"),
    ("send_threadpool_queue_size", "Requests that wait.", "sendThreadPoolQueueSize"),
    ("pull_threadpoolqueue_size", "Requests that wait.", "pullThreadPoolQueueSize"),
    ("query_threadpoolqueue_size", "Requests that wait.", "queryThreadPoolQueueSize"),
    ("send_threadpoolqueue_headwait_timemills", "Wait of the first one.", "sendThreadPoolQueueHeadWaitTimeMills"),
    ("pull_threadpoolqueue_headwait_timemills", "Wait of the first one.", "pullThreadPoolQueueHeadWaitTimeMills"),
    ("query_threadpoolqueue_headwait_timemills", "Wait of the first one.", "queryThreadPoolQueueHeadWaitTimeMills"),
)
_FIGURES: tuple[tuple[str, str, Read], ...] = (
    *((name, text, _number(key)) for name, text, key in _NUMBERS),
    *(
        (f"{name}{seconds}", f"{text} per second, in {seconds} seconds.", _tps(keys, index))
        for name, text, keys in _TPS
        for index, seconds in enumerate((10, 60, 600))
    ),
    *((f"pmdt_{name}", f"Puts of {key} in a minute.", _put_times(key)) for name, key in _PUT_TIMES.items()),
    # The exporter leaves the unit out, so that 900 B are more than 1 KiB.
    (
        "remain_howmanydata_toflush",
        "Bytes that are not flushed.",
        lambda it: bytes_of(it.get("remainHowManyDataToFlush", "")),
    ),
    ("commitlogdir_capacity_total", "Bytes of the disk.", _capacity(_TOTAL)),
    ("commitlogdir_capacity_free", "Free bytes of the disk.", _capacity(_FREE)),
)
