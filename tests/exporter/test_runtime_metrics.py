"""The runtime status of brokers, as 4.9.4 and 5.x write it, in figures."""

from __future__ import annotations

from rmqfast.admin import BrokerSnapshot
from rmqfast.exporter.runtime_metrics import runtime_families
from rmqfast.metrics import Sample

STATUS = {
    "bootTimestamp": "1764460800000",
    "brokerVersion": "401",
    "brokerVersionDesc": "V4_9_4",
    "putTps": "10.5 20.25 30.125",
    "getMissTps": "1.0E7 2.0",
    "getFoundTps": "",
    "putMessageDistributeTime": "[<=0ms]:7 [0~10ms]:6 [10~50ms]:5 [500ms~1s]:4 [10s~]:3 ",
    "commitLogDirCapacity": "Total : 251.5 GiB, Free : 37.0 GiB.",
    "remainHowManyDataToFlush": "1.5 KiB",
    "putLatency99": "1.25",
    "commitLogDiskRatio": "null",
}


def figures(**changes: str | None) -> dict[str, float]:
    """The figures of a broker with this status, by their names without the prefix."""
    status = {key: text for key, text in {**STATUS, **changes}.items() if text is not None}
    broker = BrokerSnapshot(cluster="C", broker_name="b", address="10.0.0.1:10911", status=status)
    families = runtime_families([broker])
    labels = ("C", "10.0.0.1:10911", "", "V4_9_4", "1764460800000", "401")
    assert {sample.labels for family in families for sample in family.samples} <= {labels}
    return {
        family.name.removeprefix("rocketmq_brokeruntime_"): sample.value
        for family in families
        for sample in family.samples
        if isinstance(sample, Sample)
    }


def test_rates_and_ranges_are_taken_apart() -> None:
    found = figures()
    assert [found[f"put_tps{seconds}"] for seconds in (10, 60, 600)] == [10.5, 20.25, 30.125]
    assert (found["getmiss_tps10"], found["getmiss_tps60"]) == (1e7, 2)
    assert [found[f"pmdt_{name}"] for name in ("0ms", "0to10ms", "10to50ms", "500to1s", "10stomore")] == [7, 6, 5, 4, 3]


def test_sizes_are_bytes() -> None:
    found = figures()
    assert found["commitlogdir_capacity_total"] == 251.5 * 2**30
    assert found["commitlogdir_capacity_free"] == 37 * 2**30
    assert found["remain_howmanydata_toflush"] == 1536


def test_what_a_broker_does_not_tell_is_no_figure() -> None:
    found = figures(putTps=None, commitLogDirCapacity="many", putMessageDistributeTime="null")
    assert found.keys() == {"getmiss_tps10", "getmiss_tps60", "remain_howmanydata_toflush", "put_latency_99"}


def test_later_releases_spell_a_key_right() -> None:
    assert figures(getTransferredTps="4.0 5.0 6.0")["gettransfered_tps600"] == 6
    assert figures(getTransferedTps="7.0")["gettransfered_tps10"] == 7
