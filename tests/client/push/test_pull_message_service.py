"""What a push consumer asks of brokers, and what it does with their answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rmqfast import EmbeddedCluster, Producer
from rmqfast._native import Fetched, MessageView
from rmqfast.client.consumer import build_subscription_data
from rmqfast.client.instance import ClientConfig, FoundBroker
from rmqfast.client.instance.scheduler import Scheduler
from rmqfast.client.pulling.broker_choice import BrokerChoice
from rmqfast.client.pulling.pulled_queues import PulledQueue, PulledQueues
from rmqfast.client.push import ConsumeConcurrentlyStatus, PushOptions
from rmqfast.client.push.counters import ConsumeCounters
from rmqfast.client.push.process_queue import ProcessQueue
from rmqfast.client.push.pull_message_service import PullMessageService, make_puller
from rmqfast.message import MessageQueue
from tests.client.pulling.test_pulled_queues import FIRST, REAL, Broker
from tests.client.push.listening import consumer, send
from tests.waiting import PATIENCE, until


class Receiver:
    """A consumer as pulls see it."""

    def __init__(self) -> None:
        self.is_choosy = False
        self.told: list[tuple[str, int]] = []

    def messages(self, _queue: MessageQueue, fetched: Fetched) -> list[MessageView]:
        return [] if self.is_choosy else fetched.messages

    def consume(
        self, messages: list[MessageView], size: int, process_queue: ProcessQueue, _queue: MessageQueue
    ) -> None:
        process_queue.put(messages, size)
        self.told.append(("consume", len(messages)))

    def correct_offset(self, _queue: MessageQueue, _process_queue: ProcessQueue, offset: int) -> None:
        self.told.append(("correct", offset))

    def give_up(self, _pulled: PulledQueue[ProcessQueue], fetched: Fetched) -> None:
        self.told.append(("give up", fetched.next_begin_offset))


class Scene:
    """A service whose pulls go to a broker that notes them."""

    def __init__(self, broker: Broker, offset: int = FIRST, *, in_order: bool = False, **options: Any) -> None:
        self.receiver, self.process_queue = Receiver(), ProcessQueue()
        self._threads = Scheduler("test", 1)
        self.queues: PulledQueues[ProcessQueue] = PulledQueues(
            self._threads.later,
            subscription=lambda topic: build_subscription_data(topic, "*", now=7),
            begin=lambda _: 0,
        )
        wanted = PushOptions(pull_suspend_millis=0, **options)
        puller = make_puller("g", wanted, ClientConfig(name_server="127.0.0.1:1"), in_order=in_order)
        self.queues.open(puller, BrokerChoice(lambda *_: FoundBroker(broker.address, False, 401), lambda _topic: None))
        self.service = PullMessageService(self.receiver, self.queues, ConsumeCounters())
        self.service.start("g")
        self.queues.start(PulledQueue(REAL, self.process_queue, offset, commit_offset=5))

    def close(self) -> None:
        self.queues.close()
        self._threads.stop(PATIENCE)
        self.service.join(PATIENCE)


@pytest.fixture
def broker() -> Iterator[Broker]:
    made = Broker()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({}, 1),
        ({"in_order": True}, 0),
        ({"message_model": "BROADCASTING"}, 0),
        ({"post_subscription_when_pull": True}, 5),
    ],
)
def test_a_pull_says_what_else_the_broker_is_to_do(broker: Broker, options: dict[str, Any], flag: int) -> None:
    scene = Scene(broker, pull_batch_size=20, **options)
    until(lambda: broker.asked)
    scene.close()
    asked = broker.asked[0]
    assert (asked["sysFlag"], asked["commitOffset"]) == (str(flag), "5" if flag & 1 else "0")
    assert (asked["maxMsgNums"], asked["subVersion"], asked["consumerGroup"]) == ("20", "7", "g")
    assert ("subscription" in asked) == bool(flag & 4)


def test_messages_are_consumed_and_offsets_corrected_only_where_nothing_is_left_to_do(broker: Broker) -> None:
    scene = Scene(broker)
    until(lambda: len(broker.asked) > 3)
    assert scene.receiver.told == [("consume", 1)], "there is a message: nothing is corrected"
    ((run, index),) = [scene.process_queue.first() or pytest.fail("no message")]
    scene.process_queue.remove(run, [index])
    scene.service.on_consumed(scene.process_queue)
    until(lambda: ("correct", FIRST + 1) in scene.receiver.told)
    scene.close()


def test_what_nobody_wants_counts_no_more(broker: Broker) -> None:
    scene = Scene(broker, pull_threshold_for_queue=1)
    scene.receiver.is_choosy = True
    until(lambda: ("correct", FIRST + 1) in scene.receiver.told)
    scene.close()


def test_an_offset_that_the_queue_does_not_have_gives_it_up(broker: Broker) -> None:
    scene = Scene(broker, FIRST + 5)
    until(lambda: scene.receiver.told == [("give up", FIRST)])
    scene.close()


def test_a_queue_that_was_dropped_is_pulled_no_more(broker: Broker) -> None:
    scene = Scene(broker)
    until(lambda: scene.receiver.told)
    scene.process_queue.is_dropped = True
    until(lambda: scene.queues.get(REAL) is None)
    scene.close()


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
