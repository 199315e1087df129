"""What the driver of a topic's stream decides, on a broker in this process; no Spark is needed for that.

What it decides of values alone, and of the time, is tested beside `rust/spark/src/topic/admission.rs`.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import rmqfast
from rmqfast._native import SparkStream, TopicRead, read_piece
from rmqfast.broker import Broker
from rmqfast.client.instance import ClientConfig
from rmqfast.errors import ArgumentError, DataLossError, UnknownTopicError
from rmqfast.nameserver import NameServer, NamesrvConfig
from rmqfast.remoting import RequestCode
from rmqfast.store import COLUMNS
from rmqfast.store.config import TopicConfig
from tests.client.pull.waiters import check_ends_by_ctrl_c
from tests.client.ranges.clusters import RestartableCluster
from tests.embedded.client import broker_config
from tests.proxy import Proxy
from tests.waiting import PATIENCE, until

COUNT = 3000


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RestartableCluster]:
    """A broker with a queue of `orders`."""
    with RestartableCluster(tmp_path / "store", fileReservedTime="0") as started:
        started.create("orders")
        started.fill("orders", COUNT)
        yield started


def stream(cluster: RestartableCluster, config: ClientConfig | None = None, **changes: str) -> SparkStream:
    options = {"nameServer": cluster.name_server, "startingOffsets": "earliest"}
    options |= {"retryTimeoutMs": str(round(PATIENCE * 1000))} | changes
    if not {"subscribe", "subscribePattern", "assign"} & options.keys():
        options["topic"] = "orders"
    return SparkStream.of_topic(TopicRead("topic stream", options, COLUMNS, config=config))


def without_times(text: str) -> str:
    """The offsets of a checkpoint alone: when messages were stored is for `test_topics_made_anew.py`."""
    topics = json.loads(text)
    return json.dumps(
        {topic: {name: queues for name, queues in all_of.items() if queues} for topic, all_of in topics.items()}
    )


def latest(of: SparkStream, start: str | None, *, is_limited: bool) -> str:
    """How far the next batch goes, without times."""
    return without_times(of.latest(start, is_limited=is_limited))


def at(offset: int) -> str:
    """The queue's offset as a checkpoint has it."""
    return f'{{"orders": {{"broker-a": {{"0": {offset}}}}}}}'


def test_a_batch_takes_what_there_is_or_as_much_as_allowed(
    cluster: RestartableCluster, caplog: pytest.LogCaptureFixture
) -> None:
    of = stream(cluster, maxOffsetsPerTrigger="1000")
    assert of.report() is None
    start = without_times(of.initial())
    assert start == at(0)
    with caplog.at_level(logging.INFO, logger="rmqfast.spark"):
        assert latest(of, start, is_limited=True) == at(1000)
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("INFO", f"topic orders: a batch of 1000 offsets, {COUNT} wait")
    assert latest(of, start, is_limited=False) == at(COUNT)
    assert latest(of, None, is_limited=False) == at(COUNT)
    assert of.report() == at(COUNT)
    (piece,) = of.pieces(at(5), at(1000))
    assert read_piece(piece) == (cluster.broker, [("orders", "broker-a", 0, 5, 1000)])
    assert of.pieces(at(5), at(1000)) == [piece]
    assert of.pieces(at(5), at(5)) == []
    of.close()


def test_a_query_is_told_how_far_it_is_behind(cluster: RestartableCluster) -> None:
    of = stream(cluster)
    assert of.metrics(at(7)) == {}
    latest(of, at(0), is_limited=True)
    assert of.metrics(None) == {}
    told = of.metrics(at(7))
    assert float(told.pop("maxSecondsBehindLatest")) >= 0
    behind = str(COUNT - 7)
    assert told == {
        "minOffsetsBehindLatest": behind,
        "maxOffsetsBehindLatest": behind,
        "avgOffsetsBehindLatest": f"{behind}.0",
        "behind.orders.broker-a.0": behind,
    }
    assert of.metrics(at(COUNT))["maxSecondsBehindLatest"] == "0.000"
    of.close()


def test_a_trigger_for_what_is_available_now_goes_no_further(cluster: RestartableCluster) -> None:
    of = stream(cluster, minOffsetsPerTrigger=str(2 * COUNT))
    start = without_times(of.initial())
    of.aim()
    cluster.fill("orders", 10)
    assert latest(of, start, is_limited=True) == at(COUNT)
    assert latest(of, at(COUNT), is_limited=True) == at(COUNT)
    of.close()


def test_a_queue_that_is_new_is_read_from_its_beginning_where_spark_did_not_say_where_the_stream_was(
    cluster: RestartableCluster,
) -> None:
    of = stream(cluster, subscribePattern="orders|bills")
    cluster.create("bills")
    cluster.fill("bills", 7)
    both = f'{{"bills": {{"broker-a": {{"0": 7}}}}, "orders": {{"broker-a": {{"0": {COUNT}}}}}}}'
    assert latest(of, None, is_limited=False) == both
    (piece,) = of.pieces(at(COUNT), both)
    assert read_piece(piece) == (cluster.broker, [("bills", "broker-a", 0, 0, 7)])
    of.close()


def test_a_cluster_that_is_away_leaves_a_stream_where_it_is(
    cluster: RestartableCluster, caplog: pytest.LogCaptureFixture
) -> None:
    of = stream(cluster)
    assert latest(of, at(100), is_limited=True) == at(COUNT)
    cluster.stop()
    assert latest(of, at(100), is_limited=True) == at(100)
    assert "topic orders: its route is not to be had now: no name server answers" in caplog.text
    (piece,) = of.pieces(at(100), at(200))
    assert read_piece(piece)[0] == cluster.broker
    cluster.start()
    until(lambda: latest(of, at(100), is_limited=True) == at(COUNT))  # nobody tries an address again at once
    of.close()


def test_a_broker_that_is_away_leaves_a_stream_where_it_is(cluster: RestartableCluster) -> None:
    of = stream(cluster)
    assert latest(of, at(100), is_limited=True) == at(COUNT)
    assert cluster.running is not None
    cluster.running.brokers[0].stop()  # the name server forgets the topic
    assert latest(of, at(100), is_limited=True) == at(100)
    of.close()


def test_a_stream_begins_with_what_comes_unless_it_is_told_otherwise(cluster: RestartableCluster) -> None:
    given = {"nameServer": cluster.name_server, "topic": "orders"}
    for options, offset in (({}, COUNT), ({"startingTimestamp": "5"}, 0), ({"startingOffsets": "earliest"}, 0)):
        of = SparkStream.of_topic(TopicRead("topic stream", given | options, COLUMNS))
        assert without_times(of.initial()) == at(offset)
        of.close()


def of_both(orders: int, bills: int) -> str:
    return f'{{"bills": {{"broker-a": {{"0": {bills}}}}}, "orders": {{"broker-a": {{"0": {orders}}}}}}}'


@pytest.mark.parametrize("options", [{"subscribe": "orders,bills"}, {"subscribePattern": "orders|bills"}], ids=str)
def test_a_topic_that_is_new_begins_at_its_first_message_and_one_that_vanishes_stays(
    cluster: RestartableCluster, options: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    cluster.create("bills")
    cluster.fill("bills", 7)
    of = stream(cluster, None, **options)
    # as the checkpoint of a stream of `orders` alone has it
    joined = latest(of, at(COUNT), is_limited=True)
    assert joined == of_both(COUNT, 0)
    end = latest(of, joined, is_limited=True)
    assert end == of_both(COUNT, 7) == of.report()
    (piece,) = of.pieces(of_both(COUNT - 5, 0), end)
    assert read_piece(piece)[1] == [("bills", "broker-a", 0, 0, 7), ("orders", "broker-a", 0, COUNT - 5, COUNT)]
    assert sorted(name for name in of.metrics(joined) if name.startswith("behind.")) == [
        "behind.bills.broker-a.0",
        "behind.orders.broker-a.0",
    ]
    with rmqfast.Admin(name_server=cluster.name_server) as admin:
        admin.topics.delete("bills")
    cluster.fill("orders", 5)
    assert latest(of, end, is_limited=True) == of_both(COUNT + 5, 7)
    assert ("topic bills: its route is not to be had now: unknown topic" in caplog.text) == ("subscribe" in options)
    of.close()
    again = stream(cluster, None, **options)
    if "subscribe" in options:
        with pytest.raises(UnknownTopicError, match="unknown topic 'bills'"):
            latest(again, end, is_limited=True)
    else:
        assert latest(again, end, is_limited=True) == of_both(COUNT + 5, 7)
    again.close()


def test_a_pattern_that_nothing_matches_is_an_empty_batch_and_a_stream_that_asks_once_for_each_batch(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked: Counter[int] = Counter()
    config = NamesrvConfig(kv_config_path=str(tmp_path / "kv.json"), listen_port=0)
    with (
        NameServer(config, check=lambda request: asked.update([request.code])) as name_server,
        Broker(broker_config(tmp_path / "store", namesrvAddr=name_server.address)) as broker,
    ):
        options = {"nameServer": name_server.address, "subscribePattern": "orders.*"}
        batch = TopicRead("topic batch", options, COLUMNS)
        batch.check()
        assert batch.plan() == []
        assert caplog.text.count("topics like 'orders.*': there is none now") == 2
        of = SparkStream.of_topic(TopicRead("topic stream", options, COLUMNS))
        assert without_times(of.initial()) == "{}"
        asked.clear()
        for _ in range(3):
            assert latest(of, "{}", is_limited=True) == "{}"
        assert of.pieces("{}", "{}") == []
        assert asked[RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER] == 3
        assert (of.report(), of.metrics("{}")) == (None, {})
        for name in ("%DLQ%lake", "%RETRY%lake", "orders"):
            broker.state.topics.update(TopicConfig(topic_name=name, read_queue_nums=1, write_queue_nums=1))
        until(lambda: latest(of, "{}", is_limited=True) == at(0))
        of.close()
        # neither topics of groups, nor those of the broker, the cluster and RocketMQ
        for pattern, name in ((".*", "orders"), ("%DLQ%.*", "%DLQ%lake"), (".*RETRY%.*|%RETRY%.*", "%RETRY%lake")):
            of = SparkStream.of_topic(TopicRead("topic stream", options | {"subscribePattern": pattern}, COLUMNS))
            assert without_times(of.initial()) == f'{{"{name}": {{"broker-a": {{"0": 0}}}}}}'
            of.close()


@pytest.mark.parametrize("silent", ["name server", "broker"])
def test_ctrl_c_ends_a_question_that_nobody_answers(
    cluster: RestartableCluster, silent: str, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Proxy(cluster.name_server if silent == "name server" else cluster.broker)
    if silent == "name server":
        config = ClientConfig(name_server=gate.address, request_timeout=PATIENCE)
    else:
        through = gate.address
        config = ClientConfig(
            name_server=cluster.name_server, request_timeout=PATIENCE, translate_address=lambda _: through
        )
    of = stream(cluster, config=config)
    assert latest(of, at(100), is_limited=True) == at(COUNT)
    gate.shut()

    def wait() -> None:
        of.latest(at(100), is_limited=True)

    check_ends_by_ctrl_c(wait)
    # nobody was away; a server of the test before may tell late that the gate cut its connection
    assert [record for record in caplog.records if record.name == "rmqfast.spark"] == []
    gate.open()
    assert latest(of, at(100), is_limited=True) == at(COUNT)
    of.close()
    gate.close()


def test_ctrl_c_ends_a_question_while_an_address_is_translated(
    cluster: RestartableCluster, caplog: pytest.LogCaptureFixture
) -> None:
    comes: list[str] = []

    def translate(address: str) -> str:
        if comes:
            raise KeyboardInterrupt(comes.pop())
        return address

    of = stream(cluster, config=ClientConfig(name_server=cluster.name_server, translate_address=translate))
    assert latest(of, at(100), is_limited=True) == at(COUNT)
    comes.append("now")
    with pytest.raises(KeyboardInterrupt, match="now"):
        of.latest(at(100), is_limited=True)
    assert [record for record in caplog.records if record.name == "rmqfast.spark"] == []
    assert latest(of, at(100), is_limited=True) == at(COUNT)
    of.close()


def test_retention_that_overtakes_a_stream_fails_or_is_told_once(
    cluster: RestartableCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.expire()
    of = stream(cluster)
    with pytest.raises(DataLossError, match=r"broker-a, queue 0: .* offset 7 has expired, .*\nfailOnDataLoss=f"):
        latest(of, at(7), is_limited=True)
    of.close()
    careless = stream(cluster, maxOffsetsPerTrigger="10", failOnDataLoss="false")
    found = latest(careless, at(7), is_limited=True)
    assert found == latest(careless, at(7), is_limited=True)
    assert found not in {at(offset) for offset in range(18)}
    assert caplog.text.count("has expired") == 1
    careless.close()


def test_a_group_without_a_broker_has_no_offsets_and_the_stream_goes_on(
    cluster: RestartableCluster, caplog: pytest.LogCaptureFixture
) -> None:
    of = stream(cluster, commitOffsets="true", group="lake")
    of.commit(at(7))
    assert caplog.text == ""
    of.commit('{"orders": {"broker-b": {"0": 7}}}')
    assert (
        "group lake: the offset 7 of topic orders, queue 0 at broker-b is not stored: broker broker-b is not in"
        in caplog.text
    )
    of.close()
    cluster.stop()
    away = stream(cluster, commitOffsets="true", group="lake")
    away.commit(at(7))
    assert "group lake: no offset is stored: no name server answers" in caplog.text
    away.close()


def test_offsets_of_a_checkpoint_are_those_of_its_topic(cluster: RestartableCluster) -> None:
    of = stream(cluster)
    for other in (
        '{"bills": {}}',
        '{"log": 7}',
        "[]",
        '{"orders": {"b": {"x": 1}}}',
        "{}",
        '{"orders": {"b": {}}}',
        at(-1),
    ):
        with pytest.raises(ArgumentError, match=r"checkpoint: .*; give this stream a checkpointLocation of its own"):
            latest(of, other, is_limited=True)
    of.close()
