"""Push consumers with RocketMQ's own brokers, beside its own consumers; and the same with ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rmqfast import Admin as BlockingAdmin
from rmqfast.client.instance import ClientConfig
from rmqfast.client.producer import Producer
from rmqfast.client.push import ConsumeConcurrentlyStatus, PushConsumer
from rmqfast.errors import ResponseError
from tests.broker.interop.cluster import Cluster, version_of
from tests.broker.interop.mqadmin import Admin
from tests.interop.rocketmq import running
from tests.waiting import until

from .listening import Seen, send

pytestmark = [pytest.mark.long, pytest.mark.soak, pytest.mark.timeout(600)]

SUCCESS, LATER = ConsumeConcurrentlyStatus.CONSUME_SUCCESS, ConsumeConcurrentlyStatus.RECONSUME_LATER


@pytest.fixture(scope="module")
def producer(each_cluster: Cluster) -> Iterator[Producer]:
    with Producer("sends", name_server=each_cluster.name_server) as started:
        yield started


def consumer(
    each_cluster: Cluster, group: str, listener: Any, topic: str, tags: str = "*", **options: Any
) -> PushConsumer:
    orderly = options.pop("orderly", None)
    config = options.pop("config", ClientConfig(rebalance_interval=2.0, persist_offset_interval=0.5))
    made = PushConsumer(group, name_server=each_cluster.name_server, config=config, **options)
    made.subscribe(topic, tags)
    made.register_message_listener(listener, orderly=orderly)
    return made


@pytest.mark.parametrize(("length", "kept"), [(120, ["ours", "4.9.4", "5.3.3", "5.5.0"]), (248, ["5.3.3"]), (255, [])])
def test_a_group_of_any_length_is_served_and_its_retries_as_far_as_brokers_store_them(
    each_cluster: Cluster, producer: Producer, request: pytest.FixtureRequest, length: int, kept: list[str]
) -> None:
    topic, group = f"long{length}", "g" * length
    if length > 120 and version_of(each_cluster) == "5.5.0":  # it serves no such group
        refused = pytest.raises(ResponseError, match="max length: 120")
        with BlockingAdmin(name_server=each_cluster.name_server) as admin, refused:
            admin.create_group(group)
        return
    send(producer, topic, [b"x"], queues=1)
    seen = Seen(lambda messages, _context: SUCCESS if messages[0].reconsume_times else LATER)
    with (
        BlockingAdmin(name_server=each_cluster.name_server) as admin,
        consumer(each_cluster, group, seen, topic, consume_from_where="CONSUME_FROM_FIRST_OFFSET") as one,
    ):
        seen.wait(2)  # a retry that no broker stores stays with its member
        until(lambda: f"%RETRY%{group}" in admin.topics.all())
        assert admin.groups.connections(group).client_ids == [one.client_id]
        retries = sum(row.max_offset for row in admin.topics.status(f"%RETRY%{group}"))
    assert retries == (1 if request.node.callspec.params["cluster"] in kept else 0)


def test_mqadmin_shows_what_it_does(each_cluster: Cluster, producer: Producer) -> None:
    send(producer, "shown", [b"0", b"1"])
    seen = Seen()
    with (
        consumer(each_cluster, "g-shown", seen, "shown", "a || b || *") as one,
        running(version_of(each_cluster), "Admin", "--stdin", log=each_cluster.directory / "mqadmin.log") as process,
    ):
        admin = Admin(process, each_cluster.name_server)
        status = admin(["consumerStatus", "-g", "g-shown", "-i", one.client_id])
        assert "#Consumer Properties#" in status
        assert "PROP_CONSUMEORDERLY" in status
        assert "#Consumer MQ Detail#" in status
        assert "#Consumer RT&TPS#" in status
        assert one.client_id in admin(["consumerConnection", "-g", "g-shown"])
