"""A body that was changed on a broker's disk: consumers give it out, unless they compare bodies with their CRC."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from rmqfast import (
    EmbeddedCluster,
    LitePullConsumer,
    Message,
    MessageQueue,
    Producer,
    PullConsumer,
    PushConsumer,
)
from rmqfast._native import MessageView
from rmqfast.client.instance import ClientConfig
from rmqfast.client.push import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, PushOptions
from rmqfast.errors import CorruptError
from tests.waiting import PATIENCE, until

SMALL = {"mappedFileSizeCommitLog": "1048576", "maxHashSlotNum": "1000", "maxIndexNum": "4000"}
BODIES = [b"as it was", b"before", b"as it is"]
SINCE = [b"as it was", b"BEFORE", b"as it is"]
QUEUE = MessageQueue("orders", "broker-a", 0)


@pytest.fixture(scope="module")
def name_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """That of a cluster in whose log the second of three bodies was changed."""
    store: Path = tmp_path_factory.mktemp("changed") / "store"
    with EmbeddedCluster(store, config=SMALL) as cluster:
        with Producer("p", name_server=cluster.name_server) as producer:
            for body in BODIES:
                producer.send(Message("orders", body), QUEUE, PATIENCE)
        [log] = (store / "commitlog").iterdir()
        with log.open("r+b") as file:
            file.seek(log.read_bytes().index(BODIES[1]))
            file.write(SINCE[1])
        yield cluster.name_server


def by_push(config: ClientConfig) -> list[MessageView]:
    seen: list[MessageView] = []

    def listen(messages: Sequence[MessageView], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        seen.extend(messages)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    options = PushOptions(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer = PushConsumer(f"push-{config.verify_crc}", config=config, options=options)
    consumer.subscribe("orders")
    consumer.register_message_listener(listen)
    with consumer:
        until(lambda: len(seen) == len(BODIES))
    return sorted(seen, key=lambda view: view.queue_offset)


def by_lite_pull(config: ClientConfig) -> list[MessageView]:
    seen: list[MessageView] = []
    with LitePullConsumer("lite", config=config) as consumer:
        consumer.assign([QUEUE])
        consumer.seek(QUEUE, 0)
        while len(seen) < len(BODIES):
            seen += consumer.poll(PATIENCE)
    return seen


def by_pull(config: ClientConfig) -> list[MessageView]:
    with PullConsumer("pull", config=config) as consumer:
        return list(consumer.pull(QUEUE, "*", 0, 32).messages)


@pytest.mark.parametrize("consume", [by_push, by_lite_pull, by_pull])
@pytest.mark.parametrize("is_verified", [False, True])
def test_a_changed_body_is_an_error_where_the_crc_is_asked_for(
    name_server: str, consume: Callable[[ClientConfig], list[MessageView]], is_verified: bool
) -> None:
    views = consume(ClientConfig(name_server=name_server, verify_crc=is_verified))
    assert [views[0].body, views[2].body] == [BODIES[0], BODIES[2]]
    if not is_verified:
        assert views[1].body == SINCE[1]
        return
    for view in (views[1], pickle.loads(pickle.dumps(views[1]))):  # noqa: S301 - made here
        with pytest.raises(CorruptError, match=r"offset 1 of queue 0 of orders: expected one whose CRC is 0x"):
            _ = view.body
        assert view.to_message_ext().body is None


@pytest.mark.parametrize("is_verified", [False, True])
def test_a_changed_body_is_null_in_arrow_where_the_crc_is_asked_for(name_server: str, is_verified: bool) -> None:
    bodies: list[bytes | None] = []
    config = ClientConfig(name_server=name_server, verify_crc=is_verified)
    with LitePullConsumer("arrow", config=config) as consumer:
        consumer.assign([QUEUE])
        consumer.seek(QUEUE, 0)
        while len(bodies) < len(BODIES):
            bodies += pa.record_batch(consumer.poll_arrow(PATIENCE, columns=["body"])).column("body").to_pylist()
    assert bodies == ([BODIES[0], None, BODIES[2]] if is_verified else SINCE)
