"""What clients and brokers say to one another: each value is read as it was written."""

from __future__ import annotations

from rmqfast.remoting.protocol.heartbeat_data import ConsumerData, HeartbeatData
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

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
