"""What clients and brokers say to one another: each value is read as it was written."""

from __future__ import annotations

import pytest

from rmqfast.errors import ResponseError
from rmqfast.remoting.protocol.broker_data import BrokerData
from rmqfast.remoting.protocol.heartbeat_data import ConsumerData, HeartbeatData
from rmqfast.remoting.protocol.queue_data import QueueData
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.remoting.protocol.topic_route_data import TopicRouteData

#: As a client of 4.9.4 sends it.
HEARTBEAT = (
    b'{"clientID":"10.0.0.1@1234#567","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET",'
    b'"consumeType":"CONSUME_PASSIVELY","groupName":"cg","messageModel":"CLUSTERING","subscriptionDataSet":['
    b'{"classFilterMode":false,"codeSet":[65,66],"expressionType":"TAG","subString":"A || B","subVersion":123,'
    b'"tagsSet":["A","B"],"topic":"t"}],"unitMode":false}],"producerDataSet":[{"groupName":"pg"}]}'
)


def test_a_heartbeat_has_the_bytes_of_javas() -> None:
    subscription = SubscriptionData(
        topic="t", sub_string="A || B", tags_set=("A", "B"), code_set=(65, 66), sub_version=123
    )
    consumer = ConsumerData(
        group_name="cg",
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscriptions=(subscription,),
    )
    heartbeat = HeartbeatData(client_id="10.0.0.1@1234#567", consumers=(consumer,), producers=("pg",))
    assert heartbeat.encode() == HEARTBEAT
    assert HeartbeatData.of_body(HEARTBEAT, now=0) == heartbeat


ROUTE = TopicRouteData(
    (QueueData("b-a", 8, 8, 6, 0), QueueData("b-b", 4, 2, 4, 0)),
    (BrokerData("c", "b-a", {0: "1.2.3.4:10911", 1: "1.2.3.5:10911"}), BrokerData("c", "b-b", {1: "1.2.3.6:10911"})),
    order_topic_conf="b-a:4",
)


@pytest.mark.parametrize("standard", [False, True])
def test_a_route_is_read_as_it_was_written(standard: bool) -> None:
    assert TopicRouteData.of_body(ROUTE.encode(standard=standard)) == ROUTE


def test_a_route_says_the_same_in_another_order() -> None:
    turned = TopicRouteData(ROUTE.queue_datas[::-1], ROUTE.broker_datas[::-1], order_topic_conf="b-a:4")
    assert turned.says_as(ROUTE)
    assert not turned.says_as(None)
    assert not TopicRouteData(ROUTE.queue_datas, ROUTE.broker_datas[:1], order_topic_conf="b-a:4").says_as(ROUTE)


def test_what_later_releases_add_to_a_route_is_passed_over() -> None:
    body = (
        b'{"brokerDatas":[{"brokerAddrs":{"0":"1.2.3.4:10911"},"brokerName":"b","cluster":"c",'
        b'"enableActingMaster":false,"zoneName":"z"}],"filterServerTable":{},"queueDatas":[{"brokerName":"b","perm":6,'
        b'"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":8}],"topicQueueMappingByBroker":{}}'
    )
    assert TopicRouteData.of_body(body) == TopicRouteData(
        (QueueData("b", 8, 8, 6, 0),), (BrokerData("c", "b", {0: "1.2.3.4:10911"}),)
    )


@pytest.mark.parametrize("queues", ["2000000000", "-1", '"x"'])
def test_a_route_cannot_ask_for_more_queues_than_there_can_be(queues: str) -> None:
    body = f'{{"queueDatas":[{{"brokerName":"b","perm":6,"readQueueNums":{queues}}}]}}'.encode()
    with pytest.raises(ResponseError, match="readQueueNums"):
        TopicRouteData.of_body(body)
