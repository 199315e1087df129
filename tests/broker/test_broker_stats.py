"""Statistics: what samples of growing counters say of a minute, an hour and a day."""

from __future__ import annotations

from rmqfast.broker.statistics.broker_stats import (
    DAY_PERIOD,
    HOUR_PERIOD,
    MINUTE_PERIOD,
    BrokerStats,
    Counter,
    StatsSnapshot,
)
from rmqfast.broker.statistics.store_stats import StoreStats, StoreTotals, percentile

START = 1_800_000_000_000


class Counters:
    """Counters that a test sets."""

    def __init__(self, *counters: Counter) -> None:
        self.now = list(counters)

    def __call__(self) -> list[Counter]:
        return self.now


def item_minute(stats: BrokerStats, name: str, key: str) -> StatsSnapshot:
    """The last minute of a statistic that is there."""
    item = stats.item(name, key)
    assert item is not None
    return item.minute


def test_a_minute_is_the_last_seven_samples_of_ten_seconds() -> None:
    counters = Counters()
    stats = BrokerStats(counters)
    for step in range(20):  # 10 a second, in batches of 5
        counters.now = [("TOPIC_PUT_NUMS", "t", step * 20, step * 100)]
        stats.run_once(START + step * MINUTE_PERIOD)
    assert item_minute(stats, "TOPIC_PUT_NUMS", "t") == StatsSnapshot(sum=600, tps=10.0, times=120, avgpt=5.0)


def test_the_first_sample_is_of_the_ten_seconds_before_it() -> None:
    stats = BrokerStats(Counters(("GROUP_GET_NUMS", "t@g", 3, 9)))
    assert stats.item("GROUP_GET_NUMS", "t@g") is not None  # counted, but not sampled yet
    assert stats.tps_group_get_nums("g", "t") == 0.0
    stats.run_once(START)
    assert stats.tps_group_get_nums("g", "t") == 0.9
    assert stats.tps_group_get_nums("nobody", "t") == 0.0


def test_hours_and_days_have_samples_of_their_own() -> None:
    counters = Counters()
    stats = BrokerStats(counters)
    for minute in range(26 * 60 + 1):
        counters.now = [("TOPIC_PUT_NUMS", "t", minute, minute)]
        stats.run_once(START + minute * 60_000)
    item = stats.item("TOPIC_PUT_NUMS", "t")
    assert item is not None
    assert (item.minute.sum, item.hour.sum, item.day.sum) == (6, 60, 24 * 60)
    assert (HOUR_PERIOD, DAY_PERIOD) == (600_000, 3_600_000)


def test_samples_are_taken_when_they_are_due_only() -> None:
    counters = Counters(("TOPIC_PUT_NUMS", "t", 1, 1))
    stats = BrokerStats(counters)
    stats.run_once(START)
    counters.now = [("TOPIC_PUT_NUMS", "t", 100, 100)]
    stats.run_once(START + 9_999)
    assert item_minute(stats, "TOPIC_PUT_NUMS", "t").sum == 1
    stats.run_once(START + 10_000)
    assert item_minute(stats, "TOPIC_PUT_NUMS", "t").sum == 100


def test_a_clock_that_jumps_back_does_not_end_the_samples() -> None:
    counters = Counters(("TOPIC_PUT_NUMS", "t", 1, 1))
    stats = BrokerStats(counters)
    stats.run_once(START)
    counters.now = [("TOPIC_PUT_NUMS", "t", 5, 5)]
    stats.run_once(START - 86_400_000)
    assert item_minute(stats, "TOPIC_PUT_NUMS", "t") == StatsSnapshot(sum=5, tps=0.0, times=5, avgpt=1.0)


def test_a_deleted_topic_begins_at_nothing() -> None:
    names = [
        ("TOPIC_PUT_NUMS", "t"),
        ("GROUP_GET_NUMS", "t@g"),
        ("GROUP_GET_LATENCY", "0@t@g"),
        ("TOPIC_PUT_NUMS", "o"),
    ]
    counters = Counters(*[(name, key, 7, 7) for name, key in names], ("BROKER_PUT_NUMS", "t", 7, 7))
    stats = BrokerStats(counters)
    stats.on_topic_deleted("t")
    assert [stats.item(name, key) is None for name, key in names] == [True, True, True, False]
    assert stats.item("BROKER_PUT_NUMS", "t") is not None  # a cluster may have the name of a topic
    counters.now = [("TOPIC_PUT_NUMS", "t", 9, 9)]
    stats.run_once(START)
    assert item_minute(stats, "TOPIC_PUT_NUMS", "t").sum == 2


def test_a_counter_that_begins_anew_is_taken_as_it_is() -> None:
    counters = Counters(("TOPIC_PUT_NUMS", "t", 7, 7))
    stats = BrokerStats(counters)
    stats.on_topic_deleted("t")
    counters.now = [("TOPIC_PUT_NUMS", "t", 3, 3)]
    stats.run_once(START)
    assert item_minute(stats, "TOPIC_PUT_NUMS", "t").sum == 3


def test_nothing_is_there_that_was_never_counted() -> None:
    stats = BrokerStats(Counters(("BROKER_PUT_NUMS", "DefaultCluster", 0, 0)))
    stats.run_once(START)
    assert stats.item("BROKER_PUT_NUMS", "DefaultCluster") is None


def test_a_deleted_group_begins_at_nothing() -> None:
    counters = Counters(
        ("GROUP_GET_NUMS", "t@g", 1, 1), ("GROUP_GET_NUMS", "t@other", 1, 1), ("TOPIC_PUT_NUMS", "g", 1, 1)
    )
    stats = BrokerStats(counters)
    stats.on_group_deleted("g")
    kept = [stats.item(name, key) is not None for name, key, *_ in counters.now]
    assert kept == [False, True, True]


def test_rates_of_the_store_come_with_their_windows() -> None:
    counters = Counters()
    stats = StoreStats(counters, now=START)
    for second in range(61):
        counters.now = [
            ("TOPIC_PUT_NUMS", "t", second * 5, second * 5),
            ("TOPIC_PUT_SIZE", "t", second * 5, second * 500),
            ("GROUP_GET_NUMS", "t@g", second, second * 4),
            ("STORE_GET_MISS", "", second * 2, second * 2),
        ]
        stats.run_once(START + second * 1000)
    info = stats.runtime_info(START + 61_000)
    assert info["putTps"] == "5.0 5.0 "
    assert info["getFoundTps"] == "1.0 1.0 "
    assert info["getMissTps"] == "2.0 2.0 "
    assert info["getTotalTps"] == "3.0 3.0 0.0"
    assert info["getTransferedTps"] == "4.0 4.0 "
    assert (info["putMessageTimesTotal"], info["putMessageSizeTotal"], info["putMessageAverageSize"]) == (
        "300",
        "30000",
        "100.0",
    )
    assert info["runtime"] == "[ 0 days, 0 hours, 1 minutes, 1 seconds ]"


def test_a_store_without_messages_says_what_rocketmq_says() -> None:
    stats = StoreStats(Counters(), now=START)
    stats.run_once(START)
    info = stats.runtime_info(START)
    assert info["putTps"] == "  "
    assert info["getTotalTps"] == "0.0 0.0 0.0"
    assert info["putMessageTimesTotal"] == "1"  # so as not to divide by nothing
    assert info["putMessageAverageSize"] == "0.0"
    assert info["putMessageDistributeTime"].startswith("[<=0ms]:0 [0~10ms]:0 ")
    assert info["putMessageDistributeTime"].endswith("[5~10s]:0 [10s~]:0 ")


def test_a_day_begins_with_what_had_been_put_and_got() -> None:
    counters = Counters(("TOPIC_PUT_NUMS", "t", 5, 5), ("GROUP_GET_NUMS", "t@g", 1, 3))
    stats = StoreStats(counters, now=START)
    for day in range(1, 3):
        stats.run_once(START + day * 86_400_000)
        counters.now = [("TOPIC_PUT_NUMS", "t", 9, 9), ("GROUP_GET_NUMS", "t@g", 2, 7)]
    info = stats.runtime_info(START + 2 * 86_400_000)
    assert [info[f"msgPutTotal{when}"] for when in ("YesterdayMorning", "TodayMorning", "TodayNow")] == ["5", "9", "9"]
    assert [info[f"msgGetTotal{when}"] for when in ("YesterdayMorning", "TodayMorning", "TodayNow")] == ["3", "7", "7"]


def test_times_of_puts_are_those_of_the_last_minute() -> None:
    counters = Counters(("STORE_PUT_TIME", "<=0ms", 90, 0), ("STORE_PUT_TIME", "10~50ms", 10, 0))
    stats = StoreStats(counters, now=START)
    stats.run_once(START + 60_000)
    info = stats.runtime_info(START + 60_000)
    assert info["putMessageDistributeTime"].startswith("[<=0ms]:90 [0~10ms]:0 [10~50ms]:10 [50~100ms]:0 ")
    assert info["putLatency99"] == "46.00"
    stats.run_once(START + 120_000)
    assert stats.runtime_info(START + 120_000)["putMessageDistributeTime"].startswith("[<=0ms]:0 ")


def test_totals_are_sums_over_topics_and_groups() -> None:
    totals = StoreTotals.from_counters(
        [("TOPIC_PUT_NUMS", "a", 1, 1), ("TOPIC_PUT_NUMS", "b", 2, 2), ("STORE_PUT_FAILED", "", 4, 4), ("X", "", 9, 9)]
    )
    assert (totals.put_times, totals.put_failed, totals.transferred) == (3, 4, 0)
    assert percentile({"10s~": 5}, 0.99) == 10_000.0
