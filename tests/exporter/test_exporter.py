"""The exporter tells what administrators are told, under the names that dashboards for RocketMQ's exporter ask for."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqfast import Admin, ClientConfig, EmbeddedCluster
from rmqfast.errors import RemotingError, ResponseError
from rmqfast.exporter import Exporter
from rmqfast.message import MessageQueue
from rmqfast.remoting import Request, RequestCode, ResponseCode
from tests.metrics.reading import scrape, value
from tests.waiting import until

from .conftest import GROUP, TOPIC

#: All names of RocketMQ's exporter.
NAMES = Path(__file__).with_name("names.txt").read_text().split()
#: Those that it lists and never fills, and the one that needs a slave.
UNFILLED = {"rocketmq_group_dlqdiff", "rocketmq_group_consume_tps", "rocketmq_group_consume_total_offset"}
OF_SLAVES = {"rocketmq_broker_commitlog_diff"}
HOUR = 3600


@pytest.fixture(scope="module")
def exporter(cluster: EmbeddedCluster) -> Iterator[Exporter]:
    """An exporter that has gone through everything once."""
    config = ClientConfig(name_server=cluster.name_server)
    with Exporter(config, port=0, interval=0.5) as running:
        until(lambda: "rmqfast_exporter_round_seconds" in scrape(running.address), patience=60)
        until(lambda: "rocketmq_client_consume_rt" in scrape(running.address), patience=60)
        yield running


@pytest.fixture(scope="module")
def admin(cluster: EmbeddedCluster) -> Iterator[Admin]:
    with Admin(name_server=cluster.name_server) as started:
        yield started


def test_offsets_are_those_that_administrators_are_told(exporter: Exporter, admin: Admin) -> None:
    place = {"cluster": "DefaultCluster", "broker": "broker-a", "topic": TOPIC}
    until(lambda: value(scrape(exporter.address), "rocketmq_consumer_offset", **place, group=GROUP) == 4)
    found = scrape(exporter.address)
    ends = sum(row.max_offset for row in admin.topics.status(TOPIC))
    progress = admin.groups.progress(GROUP, TOPIC)
    assert value(found, "rocketmq_producer_offset", **place) == ends == 10
    passed = sum(row.consumer_offset for row in progress)
    assert value(found, "rocketmq_consumer_offset", **place, group=GROUP) == passed == 4
    labels = {"group": GROUP, "topic": TOPIC, "countOfOnlineConsumers": "2", "msgModel": "1"}
    assert value(found, "rocketmq_group_diff", **labels) == progress.diff_total == 6
    own = {"cluster": "DefaultCluster", "node_type": "broker", "node_id": "broker-a", "topic": TOPIC, "group": GROUP}
    assert value(found, "rmqfast_group_lag_messages", **own) == 6


def test_lag_in_time_is_the_age_of_the_first_unread_message(exporter: Exporter, admin: Admin) -> None:
    stored = [
        admin.messages.by_offset(MessageQueue(TOPIC, "broker-a", queue_id), 2).store_timestamp for queue_id in (0, 1)
    ]
    own = {"topic": TOPIC, "group": GROUP}
    found = scrape(exporter.address)
    milliseconds = value(found, "rocketmq_group_get_latency_by_storetime", broker="broker-a", **own)
    seconds = value(found, "rmqfast_group_lag_seconds", **own)
    left = value(found, "rmqfast_group_retention_seconds", **own)
    assert seconds is not None
    assert left is not None
    assert milliseconds == pytest.approx(seconds * 1000)
    assert left == pytest.approx(2 * HOUR - seconds)
    # A later scrape: the age grows by what passed between the two.
    before = time.time() - min(stored) / 1000
    later = value(scrape(exporter.address), "rmqfast_group_lag_seconds", **own)
    assert later is not None
    # RocketMQ's brokers tell the age, and not since when: it is as old as the answer took.
    assert before - 1 <= later <= time.time() - min(stored) / 1000 + 1


def test_members_are_counted_and_say_how_they_get_on(exporter: Exporter, admin: Admin) -> None:
    members = admin.groups.connections(GROUP).connections
    found = scrape(exporter.address)
    addresses, ids = ",".join(each.client_addr for each in members), ",".join(each.client_id for each in members)
    assert value(found, "rocketmq_group_count", caddr=addresses, localaddr=ids, group=GROUP) == 2
    for name, expected in (
        ("client_consumer_pull_rt", 1.5),
        ("client_consumer_pull_tps", 2.5),
        ("client_consume_rt", 3.5),
        ("client_consume_ok_msg_tps", 4.5),
        ("client_consume_fail_msg_tps", 5.5),
        ("client_consume_fail_msg_count", 6),
    ):
        for member in members:
            labels = {"clientAddr": member.client_addr, "clientId": member.client_id, "group": GROUP, "topic": TOPIC}
            assert value(found, f"rocketmq_{name}", **labels) == expected
    assert value(found, "rocketmq_producer_count", broker="broker-a", group="export_makers") == 1
    assert value(found, "rmqfast_group_subscription_conflict", topic=TOPIC, group=GROUP) == 1


def test_the_runtime_status_is_told_in_figures(exporter: Exporter, admin: Admin) -> None:
    status = admin.brokers.status("broker-a")
    found = scrape(exporter.address)
    labels = {
        "cluster": "DefaultCluster",
        "brokerIP": admin.clusters.brokers()[0].address,
        "brokerHost": "",
        "des": status["brokerVersionDesc"],
        "boottime": status["bootTimestamp"],
        "broker_version": status["brokerVersion"],
    }
    end = value(found, "rocketmq_brokeruntime_commitlog_maxoffset", **labels)
    assert end is not None
    assert 0 < end <= int(status["commitLogMaxOffset"])
    assert value(found, "rocketmq_brokeruntime_commitlogdir_capacity_total", **labels) == pytest.approx(
        float(status["commitLogDirCapacity"].split()[2]) * 2**30
    )
    assert value(found, "rmqfast_up", node_id="broker-a") == 1


def test_each_name_of_rocketmqs_exporter_has_a_value(exporter: Exporter) -> None:
    # Rates of ten seconds and more come when the broker has run as long.
    later = {name for name in NAMES if name.endswith(("tps10", "tps60", "tps600"))}

    def missing() -> set[str]:
        return set(NAMES) - scrape(exporter.address).keys() - UNFILLED - OF_SLAVES - later

    until(lambda: not missing(), missing)


def test_no_more_requests_are_sent_than_promised(exporter: Exporter) -> None:
    before = scrape(exporter.address)
    until(
        lambda: (
            value(scrape(exporter.address), "rmqfast_exporter_questions_total")
            != value(before, "rmqfast_exporter_questions_total")
        )
    )
    after = scrape(exporter.address)
    asked = [value(found, "rmqfast_exporter_questions_total") or 0 for found in (before, after)]
    assert 0 < asked[1] - asked[0] <= 20
    assert value(after, "rmqfast_exporter_questions_failed_total") == 0


def test_how_far_slaves_are_behind_is_told() -> None:
    with EmbeddedCluster(replicas=1) as cluster, Admin(name_server=cluster.name_server) as admin:
        until(lambda: len(admin.clusters.brokers()) == 2)
        (slave,) = [row for row in admin.clusters.brokers() if not row.is_master]
        labels = {"cluster": slave.cluster, "brokerIP": slave.address, "broker": slave.broker_name}
        with Exporter(ClientConfig(name_server=cluster.name_server), port=0, interval=0.5) as exporter:
            until(lambda: value(scrape(exporter.address), "rocketmq_broker_commitlog_diff", **labels) == 0)


def test_what_an_account_may_not_ask_is_told(caplog: pytest.LogCaptureFixture) -> None:
    def check(request: Request) -> None:
        if request.code == RequestCode.GET_BROKER_CONFIG:
            raise ResponseError(ResponseCode.NO_PERMISSION, "not for you")

    with EmbeddedCluster(check=check) as cluster, caplog.at_level(logging.WARNING, "rmqfast"):
        with Exporter(ClientConfig(name_server=cluster.name_server), port=0) as exporter:
            until(lambda: (value(scrape(exporter.address), "rmqfast_exporter_questions_failed_total") or 0) > 0)
        assert "not for you" in caplog.text


def test_a_cluster_that_is_gone_is_told_by_what_is_missing() -> None:
    with EmbeddedCluster() as cluster:
        config = ClientConfig(name_server=cluster.name_server)
        exporter = Exporter(config, port=0, interval=0.2, stale_after=2, timeout=0.5)
        exporter.start()
        until(lambda: "rmqfast_up" in scrape(exporter.address))
    try:
        until(lambda: (value(scrape(exporter.address), "rmqfast_exporter_failures_total") or 0) > 0)
        until(lambda: "rmqfast_up" not in scrape(exporter.address))
        assert (value(scrape(exporter.address), "rmqfast_exporter_snapshot_age_seconds") or 0) >= 2
    finally:
        exporter.stop()
    with pytest.raises(RemotingError):
        Exporter(ClientConfig(name_server="127.0.0.1:1"), port=0).start()
