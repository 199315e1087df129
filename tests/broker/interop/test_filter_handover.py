"""Groups that filter by SQL92, from our broker to a real 4.9.4 and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rmqfast import EmbeddedCluster, Message, Producer
from rmqfast.client.consumer import MessageSelector
from rmqfast.client.instance import ClientConfig
from rmqfast.client.push import PushConsumer
from tests.client.push.listening import Seen
from tests.interop.rocketmq import RocketMQ
from tests.store.test_handover import GEOMETRY
from tests.waiting import PATIENCE, until

TOPIC, GROUP = "numbers", "large"
CLIENT = ClientConfig(request_timeout=PATIENCE, connect_timeout=PATIENCE)


def filtered(name_server: str, first: int) -> list[int]:
    """Sends ten numbers; returns those that a consumer of `n > ...` gets, once it has got the last one."""
    seen = Seen()
    consumer = PushConsumer(
        GROUP, name_server=name_server, config=CLIENT, consume_from_where="CONSUME_FROM_FIRST_OFFSET"
    )
    consumer.register_message_listener(seen)
    consumer.subscribe(TOPIC, MessageSelector.by_sql(f"n > {first + 5}"))
    with Producer("p", name_server=name_server, config=CLIENT) as producer:
        producer.create_topic(TOPIC, 1)
        with consumer:
            for number in range(first, first + 10):
                producer.send(Message(TOPIC, b"%d" % number, properties={"n": str(number)}), timeout=PATIENCE)
            until(lambda: b"%d" % (first + 9) in seen.bodies)
    return [int(body) for body in seen.bodies]


def saved_expression(store: Path) -> dict[str, object]:
    """What a broker saved of the group."""
    table = json.loads((store / "config" / "consumerFilter.json").read_text())
    members: dict[str, object] = table["filterDataByTopic"][TOPIC]["groupFilterData"][GROUP]
    return members


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_group_goes_on_filtering_on_a_real_broker_and_on_ours_again(tmp_path: Path) -> None:
    store = tmp_path / "mq" / "store"
    sizes = dict(pair.split("=") for pair in GEOMETRY) | {"enablePropertyFilter": "true"}
    with EmbeddedCluster(store, config=sizes) as ours:
        assert filtered(ours.name_server, 0) == [6, 7, 8, 9]
    saved = saved_expression(store)
    # RocketMQ then takes the file for one of another Bloom filter, and has heartbeats bring the expressions again
    assert "bloomFilterData" not in saved
    assert saved["expression"] == "n > 5"
    with RocketMQ("4.9.4", tmp_path / "mq", *GEOMETRY, "enablePropertyFilter=true") as theirs:
        assert filtered(theirs.name_server, 10) == [16, 17, 18, 19]
    saved = saved_expression(store)
    assert "bloomFilterData" in saved
    assert saved["expression"] == "n > 15"
    with EmbeddedCluster(store, config=sizes) as ours:
        assert filtered(ours.name_server, 20) == [26, 27, 28, 29]
