"""A store with tens of thousands of topics and groups, from our broker to a real 4.9.4 and back."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from rmqfast import Admin
from rmqfast.broker import Broker, BrokerConfig
from rmqfast.broker.metadata import Metadata
from rmqfast.remoting import RemotingClient, RequestCode
from rmqfast.remoting.fastjson import decode
from rmqfast.store import ConsumerOffsetTable, SubscriptionGroupTable, TopicConfigTable
from rmqfast.store.config import SubscriptionGroupConfig, TopicConfig
from tests.interop.rocketmq import RocketMQ
from tests.store.test_handover import GEOMETRY

TOPICS, GROUPS = 50_000, 10_000
OFFSET = {"consumerGroup": "g7", "topic": "t7", "queueId": "0"}


def ours(store: Path) -> Broker:
    sizes = dict(pair.split("=") for pair in GEOMETRY)
    return Broker(BrokerConfig({"storePathRootDir": str(store), "listenPort": "0"} | sizes))


def fill(store: Path) -> None:
    """Makes topics, groups and offsets as a broker does, without a request for each."""
    with ours(store):
        pass
    with closing(Metadata(store)) as metadata:
        for table in (TopicConfigTable, SubscriptionGroupTable, ConsumerOffsetTable):
            metadata.load(table)
        for number in range(TOPICS):
            topic = TopicConfig(topic_name=f"t{number}", read_queue_nums=1 + number % 8)
            metadata.put(TopicConfigTable, topic.topic_name, topic.to_json())
        for number in range(GROUPS):
            group = SubscriptionGroupConfig(group_name=f"g{number}", retry_max_times=number % 17)
            metadata.put(SubscriptionGroupTable, group.group_name, group.to_json())
            metadata.put(ConsumerOffsetTable, f"t{number}@g{number}", {0: number})


def table_of(client: RemotingClient, code: int, member: str) -> dict[str, dict[str, object]]:
    """All topics or groups, as a broker gives them."""
    table: dict[str, dict[str, object]] = decode(client.request(code, timeout=60.0).body)[member]
    return table


def check(address: str, topics: set[str]) -> None:
    """Compares what a broker knows with what was made."""
    with RemotingClient(address) as client:
        found = table_of(client, RequestCode.GET_ALL_TOPIC_CONFIG, "topicConfigTable")
        groups = table_of(client, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, "subscriptionGroupTable")
        assert {f"t{number}" for number in range(TOPICS)} | topics <= found.keys()
        assert all(found[f"t{number}"]["readQueueNums"] == 1 + number % 8 for number in range(TOPICS))
        assert all(groups[f"g{number}"]["retryMaxTimes"] == number % 17 for number in range(GROUPS))
        assert client.ask(RequestCode.QUERY_CONSUMER_OFFSET, OFFSET).ext_fields == {"offset": "7"}


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("is_killed", [False, True])
def test_fifty_thousand_topics_go_to_a_real_broker_and_back(tmp_path: Path, *, is_killed: bool) -> None:
    store = tmp_path / "mq" / "store"
    fill(store)
    with ours(store) as broker:
        check(broker.address, set())
        with RemotingClient(broker.address) as client:
            made = {"topic": "ours", "readQueueNums": "2", "writeQueueNums": "2", "perm": "6"}
            client.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, made | {"topicFilterType": "SINGLE_TAG"})
    with RocketMQ("4.9.4", tmp_path / "mq", *GEOMETRY, clean=not is_killed) as cluster:
        check(cluster.broker, {"ours"})
        cluster.create_topic("theirs", 3)
        with Admin(name_server=cluster.name_server) as admin:
            assert {"ours", "theirs"} <= set(admin.topics.all())
    with ours(store) as broker:
        check(broker.address, {"ours", "theirs"})
