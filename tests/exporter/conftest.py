"""A cluster with traffic of all kinds: ours, and one whose broker tells no more than RocketMQ's do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from rmqfast import Admin, EmbeddedCluster, Message, Producer, SendResult
from rmqfast.message import MessageQueue
from rmqfast.remoting import RemotingClient, Request, RequestCode
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from tests.admin.members import online, wants

TOPIC, GROUP = "exported", "exporters"


def hide_details(request: Request) -> None:
    """Leaves out the field by which our brokers tell more in one answer than RocketMQ's."""
    ext_fields: Any = request.ext_fields
    ext_fields.pop("isDetailed", None)


def said_by(own: SubscriptionData) -> dict[str, Any]:
    """What a member says of itself."""
    rates = {"pullRT": 1.5, "pullTPS": 2.5, "consumeRT": 3.5, "consumeOKTPS": 4.5, "consumeFailedTPS": 5.5}
    return {
        "mqTable": {},
        "properties": {"PROP_CONSUME_TYPE": "CONSUME_PASSIVELY"},
        "statusTable": {TOPIC: rates | {"consumeFailedMsgs": 6}},
        "subscriptionSet": [own.to_json()],
    }


@pytest.fixture(scope="module", params=["ours", "as RocketMQ's"])
def cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    with ExitStack() as stack:
        check = hide_details if request.param != "ours" else None
        cluster = stack.enter_context(EmbeddedCluster(config={"fileReservedTime": "2"}, check=check))
        admin = stack.enter_context(Admin(name_server=cluster.name_server))
        producer = stack.enter_context(Producer("export_makers", name_server=cluster.name_server))
        admin.create_topic(TOPIC, queues=2)
        sent = [
            producer.send(Message(TOPIC, b"x"), MessageQueue(TOPIC, "broker-a", number % 2)) for number in range(10)
        ]
        retries = wants(f"%RETRY%{GROUP}", "*")
        for name, expression, version in (("C1", "TagA", 1), ("C2", "TagB", 2)):
            own = wants(TOPIC, expression, version)
            stack.enter_context(
                online(cluster.name_server, name, GROUP, [own, retries], running_info=partial(said_by, own))
            )
        for queue_id in range(2):
            admin.offsets.reset(GROUP, MessageQueue(TOPIC, "broker-a", queue_id), 2, force=True)
        send_back(cluster, sent[0])
        admin.offsets.reset(GROUP, MessageQueue(f"%RETRY%{GROUP}", "broker-a", 0), 0, force=True)
        yield cluster


def send_back(cluster: EmbeddedCluster, sent: SendResult) -> None:
    """Makes a dead letter of a message."""
    offset = str(int(sent.offset_msg_id[16:], 16))
    fields = {"offset": offset, "group": GROUP, "delayLevel": "-1", "originTopic": TOPIC, "originMsgId": sent.msg_id}
    with RemotingClient(cluster.brokers[0].address) as client:
        assert client.request(RequestCode.CONSUMER_SEND_MSG_BACK, fields).code == 0
