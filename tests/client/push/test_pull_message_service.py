"""The fields of a push consumer's pulls, and the limit of what it holds."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import Any

import pytest

from rmqfast import EmbeddedCluster, Producer
from rmqfast.client.instance import ClientConfig
from rmqfast.client.push import ConsumeConcurrentlyStatus, PushOptions
from rmqfast.client.push.pull_message_service import make_puller
from tests.client.pulling.test_pulled_queues import FIRST, REAL, Broker
from tests.client.push.listening import consumer, send
from tests.waiting import PATIENCE, until


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({}, 1),
        ({"in_order": True}, 0),
        ({"message_model": "BROADCASTING"}, 0),
        ({"post_subscription_when_pull": True}, 5),
    ],
)
def test_a_pull_says_what_else_the_broker_is_to_do(options: dict[str, Any], flag: int) -> None:
    in_order = options.pop("in_order", False)
    wanted = PushOptions(pull_suspend_millis=0, pull_batch_size=20, **options)
    puller = make_puller("g", "10.0.0.1@C1", wanted, ClientConfig(name_server="127.0.0.1:1"), in_order=in_order)
    with closing(Broker()) as broker, closing(puller):
        puller.assign(REAL, broker.address, FIRST, sub_version=7, commit_offset=5)
        until(lambda: broker.asked)
    asked = broker.asked[0]
    assert (asked["sysFlag"], asked["commitOffset"]) == (str(flag), "5" if flag & 1 else "0")
    assert (asked["maxMsgNums"], asked["subVersion"], asked["consumerGroup"]) == ("20", "7", "g")
    assert ("subscription" in asked) == bool(flag & 4)
    assert asked["clientId"] == "10.0.0.1@C1"


def test_no_more_than_the_threshold_and_one_answer_is_here_however_slow_the_listener() -> None:
    gate = threading.Event()

    def listen(_messages: object, _context: object) -> ConsumeConcurrentlyStatus:
        gate.wait(PATIENCE)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    with EmbeddedCluster() as cluster, Producer("filler", name_server=cluster.name_server) as producer:
        queues = send(producer, "many", [b"m%d" % number for number in range(300)])
        with consumer(cluster, "slow", listen, "many", pull_threshold_for_queue=50, pull_batch_size=32) as one:

            def here() -> int:
                info = one.running_info()["mqTable"].get(queues[0])
                return -1 if info is None else int(info["cachedMsgCount"])

            until(lambda: here() >= 50)
            assert here() < 50 + 32
            gate.set()
            until(lambda: here() == 0)
