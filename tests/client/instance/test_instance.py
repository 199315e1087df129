"""Client instances against a cluster in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rmqfast import EmbeddedCluster
from rmqfast.client.instance import ClientConfig, ClientInstance, heartbeats
from rmqfast.errors import ClientError, ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting import RemotingClient, RequestCode, fastjson
from tests.client.instance.doubles import FakeConsumer, FakeProducer
from tests.embedded.client import send
from tests.proxy import Proxy
from tests.waiting import PATIENCE, until

#: Seconds of an interval that never comes round: what happens is then done by something else.
NEVER = 3600.0


@pytest.fixture
def make(rmqfast_cluster: EmbeddedCluster) -> Iterator[Callable[..., ClientInstance]]:
    """Makes instances of the cluster, and ends them."""
    made: list[ClientInstance] = []

    def make_one(name: str = "i", **options: Any) -> ClientInstance:
        config = ClientConfig(name_server=rmqfast_cluster.name_server, instance_name=name, **options)
        made.append(ClientInstance.of(config, config.client_id()))
        return made[-1]

    yield make_one
    for instance in made:
        for group in ("cg", "other"):
            instance.unregister_consumer(group)
            instance.unregister_producer(group)
        instance.release()


def address_of(cluster: EmbeddedCluster) -> str:
    return cluster.brokers[0].address


def clients_of(cluster: EmbeddedCluster, group: str) -> list[str]:
    """The members of a group, as the broker knows them."""
    with RemotingClient(address_of(cluster)) as client:
        answer = client.request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": group})
    return list(fastjson.decode(answer.body)["consumerIdList"]) if answer.code == 0 else []


def consuming(instance: ClientInstance, cluster: EmbeddedCluster, group: str = "cg", topic: str = "t") -> FakeConsumer:
    """A consumer that the broker knows of."""
    send(address_of(cluster), topic, b"x")
    consumer = FakeConsumer(group, topic)
    instance.register_consumer(group, consumer)
    instance.start()
    until(lambda: instance.update_route(topic) or instance.routes.get(topic))
    until(instance.send_heartbeats)
    return consumer


def test_clients_of_one_id_share_an_instance_that_ends_with_its_last_user_and_is_made_anew(
    rmqfast_cluster: EmbeddedCluster,
) -> None:
    config = ClientConfig(name_server=rmqfast_cluster.name_server, instance_name="users")
    one, two = (ClientInstance.of(config, config.client_id()) for _ in range(2))
    assert one is two
    before = set(threading.enumerate())
    one.start()
    two.start()
    started = {
        each for each in threading.enumerate() if each.name.startswith(("rmqfast-timer", "rmqfast-reb"))
    } - before
    assert len(started) == 2
    one.release()
    assert one.api.cluster_info().clusters
    two.release()
    with pytest.raises(Exception, match="closed"):
        one.api.cluster_info()
    with pytest.raises(ClientError, match="shut down"):
        one.start()
    again = ClientInstance.of(config, config.client_id())
    assert again is not one
    again.start()
    again.release()
    until(lambda: not any(thread.is_alive() for thread in started))


def test_a_group_has_one_consumer_and_one_producer_in_an_instance(make: Callable[..., ClientInstance]) -> None:
    instance = make()
    consumer = FakeConsumer("cg")
    instance.register_consumer("cg", consumer)
    instance.register_producer("cg", FakeProducer())
    with pytest.raises(ClientError, match=r"The consumer group\[cg\] has been created before, specify another name"):
        instance.register_consumer("cg", FakeConsumer("cg"))
    with pytest.raises(ClientError, match=r"The producer group\[cg\] has been created before, specify another name"):
        instance.register_producer("cg", FakeProducer())
    assert instance.consumer("cg") is consumer
    assert instance.consumer("x") is None


def test_a_heartbeat_makes_a_member_and_leaving_unmakes_it(
    make: Callable[..., ClientInstance], rmqfast_cluster: EmbeddedCluster
) -> None:
    instance = make()
    consuming(instance, rmqfast_cluster)
    instance.register_producer("cg", FakeProducer())
    until(instance.send_heartbeats)
    assert clients_of(rmqfast_cluster, "cg") == [instance.client_id]
    assert instance.find_consumer_ids("t", "cg") == [instance.client_id]
    with RemotingClient(address_of(rmqfast_cluster)) as client:
        answer = client.ask(RequestCode.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": "cg"})
        assert fastjson.decode(answer.body)["connectionSet"][0]["clientId"] == instance.client_id
    instance.unregister_consumer("cg")
    assert clients_of(rmqfast_cluster, "cg") == []


def test_who_comes_and_who_goes_wakes_the_rebalance_of_the_others(
    make: Callable[..., ClientInstance], rmqfast_cluster: EmbeddedCluster
) -> None:
    first = make("first", rebalance_interval=NEVER)
    consumer = consuming(first, rmqfast_cluster)
    members: list[set[str]] = []
    consumer.on_rebalance = lambda: members.append(set(first.find_consumer_ids("t", "cg") or ()))
    second = make("second", rebalance_interval=NEVER)
    consuming(second, rmqfast_cluster)
    until(lambda: {first.client_id, second.client_id} in members)
    members.clear()
    second.unregister_consumer("cg")
    until(lambda: {first.client_id} in members)


def test_a_consumer_that_fails_to_rebalance_does_not_keep_the_others_from_it(
    make: Callable[..., ClientInstance], caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> None:
        raise ValueError("of no use")

    instance = make()
    broken, sound = FakeConsumer("cg"), FakeConsumer("other")
    broken.on_rebalance = fails
    instance.register_consumer("cg", broken)
    instance.register_consumer("other", sound)
    instance.start()
    instance.rebalance_immediately()
    until(lambda: sound.rebalanced)
    assert "group cg could not be rebalanced" in caplog.text
    instance.rebalance()
    assert sound.rebalanced >= 2


def test_an_operator_asks_a_consumer_through_its_broker(
    make: Callable[..., ClientInstance], rmqfast_cluster: EmbeddedCluster
) -> None:
    instance = make()
    consumer = consuming(instance, rmqfast_cluster)
    with RemotingClient(address_of(rmqfast_cluster), timeout=PATIENCE) as client:
        fields = {"consumerGroup": "cg", "clientId": instance.client_id, "jstackEnable": "false"}
        info = fastjson.decode(client.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields).body)
        assert info["properties"]["PROP_NAMESERVER_ADDR"] == f"{rmqfast_cluster.name_server};"
        status = client.ask(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, {"topic": "t", "group": "cg"})
        assert list(fastjson.decode(status.body)["consumerTable"]) == [instance.client_id]
        for queue in consumer.queues["t"]:
            instance.api.update_consumer_offset(address_of(rmqfast_cluster), "cg", queue, 1, oneway=False)
        reset = {"topic": "t", "group": "cg", "timestamp": "0", "isForce": "true"}
        client.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset)
    until(lambda: consumer.reset)
    assert consumer.reset == [("t", dict.fromkeys(consumer.queues["t"], 0))]


def test_a_broker_that_restarts_is_told_before_the_next_heartbeat_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "FIRST_DELAY", 0.02)
    to_name_server, to_broker = Proxy(), Proxy()
    config = ClientConfig(
        name_server=to_name_server.address,
        instance_name="restart",
        translate_address=lambda _: to_broker.address,
        heartbeat_interval=NEVER,
        poll_name_server_interval=NEVER,
    )
    instance = ClientInstance.of(config, config.client_id())
    with EmbeddedCluster() as cluster:
        to_name_server.lead_to(cluster.name_server)
        to_broker.lead_to(address_of(cluster))
        consuming(instance, cluster)
    with EmbeddedCluster() as cluster:
        send(address_of(cluster), "t", b"x")
        to_name_server.lead_to(cluster.name_server)
        to_broker.lead_to(address_of(cluster))
        until(lambda: clients_of(cluster, "cg") == [instance.client_id])
        assert instance.api.topic_route("t").queue_datas
        instance.unregister_consumer("cg")
        instance.release()
    to_name_server.close()
    to_broker.close()


def test_expressions_are_compiled_by_a_broker_at_the_start(
    make: Callable[..., ClientInstance], rmqfast_cluster: EmbeddedCluster
) -> None:
    instance = make()
    consuming(instance, rmqfast_cluster)
    instance.check_client_in_broker()
    instance.unregister_consumer("cg")
    instance.register_consumer("cg", FakeConsumer("cg", "t", expression_type="SQL92"))
    with pytest.raises(ClientError, match="enablePropertyFilter=true") as caught:
        instance.check_client_in_broker()
    assert caught.value.response_code == 1


def test_offsets_are_kept_by_the_broker(make: Callable[..., ClientInstance], rmqfast_cluster: EmbeddedCluster) -> None:
    instance, address = make(), address_of(rmqfast_cluster)
    send(address, "t", b"x")
    queue = MessageQueue("t", "broker-a", 0)
    assert (instance.api.min_offset(address, queue), instance.api.max_offset(address, queue)) == (0, 1)
    assert instance.api.earliest_store_time(address, queue) > 1_700_000_000_000
    assert instance.api.search_offset(address, queue, 0) == 0
    assert instance.api.query_consumer_offset(address, "g", queue) == 0
    instance.api.update_consumer_offset(address, "g", queue, 7)
    until(lambda: instance.api.query_consumer_offset(address, "g", queue) == 7)
    with pytest.raises(ResponseError, match=f"BROKER: {address}"):
        instance.api.view_message(address, 1 << 40)
    assert b"x" in instance.api.view_message(address, 0)


def test_queues_are_locked_for_one_client(
    make: Callable[..., ClientInstance], rmqfast_cluster: EmbeddedCluster
) -> None:
    api, address = make().api, address_of(rmqfast_cluster)
    queues = {MessageQueue("t", "broker-a", number) for number in range(2)}
    assert api.lock_batch(address, "g", "one", queues) == queues
    assert api.lock_batch(address, "g", "two", queues) == set()
    api.unlock_batch(address, "g", "one", queues)
    assert api.lock_batch(address, "g", "two", queues) == queues


def test_an_operator_has_one_message_consumed_now(
    make: Callable[..., ClientInstance], rmqfast_cluster: EmbeddedCluster
) -> None:
    instance = make()
    consumer = consuming(instance, rmqfast_cluster)
    sent = send(address_of(rmqfast_cluster), "t", b"looked at", TAGS="a").ext_fields or {}
    with RemotingClient(address_of(rmqfast_cluster), timeout=PATIENCE) as client:
        fields = {"consumerGroup": "cg", "clientId": instance.client_id, "msgId": sent["msgId"]}
        answer = client.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, fields)
    assert fastjson.decode(answer.body)["consumeResult"] == "CR_SUCCESS"
    ((message, broker_name),) = consumer.consumed
    assert (message.body, message.tags, message.broker_name, broker_name) == (b"looked at", "a", "broker-a", "broker-a")


def test_no_name_server_is_said_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    config = ClientConfig(instance_name="nowhere")
    instance = ClientInstance.of(config, config.client_id())
    with pytest.raises(ClientError) as caught:
        instance.start()
    assert caught.value.response_code == 10004
    instance.release()


def test_timers_do_all_by_themselves_once_there_is_a_name_server(rmqfast_cluster: EmbeddedCluster) -> None:
    gate = Proxy()
    send(address_of(rmqfast_cluster), "t", b"x")
    config = ClientConfig(
        name_server=gate.address,
        instance_name="early",
        poll_name_server_interval=0.02,
        heartbeat_interval=0.02,
        persist_offset_interval=0.02,
    )
    instance = ClientInstance.of(config, config.client_id())
    consumer = FakeConsumer("cg", "t")
    instance.register_consumer("cg", consumer)
    instance.start()
    with pytest.raises(ClientError, match=gate.address):
        instance.update_route("t")
    gate.lead_to(rmqfast_cluster.name_server)
    until(lambda: consumer.queues.get("t"))
    until(lambda: clients_of(rmqfast_cluster, "cg") == [instance.client_id])
    until(lambda: consumer.persisted >= 2)
    instance.unregister_consumer("cg")
    instance.release()
    gate.close()
