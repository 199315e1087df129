"""Timers of RocketMQ 5, as real brokers have them or not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rmqfast import Message, PullConsumer
from rmqfast.client.consumer import MessageView
from rmqfast.client.producer import Producer
from rmqfast.errors import ClientError
from tests.interop.rocketmq import RocketMQ
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]
#: A broker of 5.x rounds down to this (`timerPrecisionMs`).
PRECISION = 1000


def test_a_broker_of_5_delivers_each_at_its_time(tmp_path: Path) -> None:
    with RocketMQ("5.3.3", tmp_path, clean=False) as real:
        real.create_topic("timed", 1)
        with Producer("p", name_server=real.name_server) as producer:
            moment = datetime.now(UTC) + timedelta(seconds=8)
            results = [
                producer.send(Message("timed", b"last", deliver_at=moment)),
                producer.send(Message("timed", b"second", delay=4.5)),
                producer.send(Message("timed", b"at once")),
            ]
        with PullConsumer("g", name_server=real.name_server) as consumer:

            def arrived() -> list[MessageView]:
                return list(consumer.pull(results[2].queue, "*", 0, 32).messages)

            until(lambda: len(arrived()) == 3)
            first, second, last = arrived()
        assert [first.body, second.body, last.body] == [b"at once", b"second", b"last"]
        assert second.store_timestamp - second.born_timestamp >= 4500 - PRECISION
        assert last.store_timestamp >= int(moment.timestamp() * 1000) - PRECISION


def test_a_broker_of_4_9_4_is_not_sent_what_it_would_deliver_at_once(tmp_path: Path) -> None:
    with RocketMQ("4.9.4", tmp_path, clean=False) as real:
        real.create_topic("timed", 1)
        with Producer("p", name_server=real.name_server) as producer:
            with pytest.raises(ClientError, match=r"broker-a at .* is older \(version 401\)"):
                producer.send(Message("timed", b"later", delay=60))
            assert producer.send(Message("timed", b"later", delay_level=1)).queue_offset == 0
