"""Which broker a queue is pulled from, and where that begins: real pulls, of brokers that answer as a test has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rmqfast import MessageQueue
from rmqfast._native import Puller
from rmqfast.client.consumer import build_subscription_data
from rmqfast.client.instance import FoundBroker
from rmqfast.client.pulling.pulled_queues import BrokerChoice, PulledQueue, PulledQueues
from rmqfast.errors import ClientError
from rmqfast.remoting import RemotingServer, Request, Response
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from tests.client.native.records import golden_rows
from tests.waiting import until

A, B = MessageQueue("t", "broker-a", 0), MessageQueue("t", "broker-b", 1)
ROWS, RECORDS = golden_rows("basic-4.9.4")
ROW, RECORD = ROWS[0], RECORDS[0]
#: The queue of which there is a message, at `FIRST`.
REAL, FIRST = MessageQueue(ROW["topic"], "broker-a", ROW["queue_id"]), ROW["queue_offset"]


class Broker:
    """Has one message, at `FIRST`; notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        self.suggests = 0
        self._server = RemotingServer({11: self._pull})
        self.address = self._server.listen("127.0.0.1:0")

    def close(self) -> None:
        self._server.close()

    def offsets(self) -> list[tuple[str, int]]:
        return [(fields["queueId"], int(fields["queueOffset"])) for fields in self.asked]

    def _pull(self, request: Request) -> Response:
        self.asked.append(dict(request.ext_fields or {}))
        offset = int(self.asked[-1]["queueOffset"])
        code = 21 if offset < FIRST or offset > FIRST + 1 else 0 if offset == FIRST else 19
        end = {0: FIRST + 1, 21: FIRST}.get(code, offset)
        fields = {"nextBeginOffset": end, "minOffset": FIRST, "maxOffset": FIRST + 1}
        shown = {name: str(value) for name, value in fields.items()} | {"suggestWhichBrokerId": str(self.suggests)}
        return Response(code=code, ext_fields=shown, body=RECORD if code == 0 else b"")


class World:
    """Brokers that are there, and work that is done when the test says so."""

    def __init__(self) -> None:
        self.broker, self.slave, self.other = Broker(), Broker(), Broker()
        self.brokers: dict[tuple[str, int], FoundBroker] = {
            ("broker-a", 0): FoundBroker(self.broker.address, False, 401),
            ("broker-a", 1): FoundBroker(self.slave.address, True, 401),
            ("broker-b", 0): FoundBroker(self.other.address, False, 401),
        }
        self.due: list[tuple[float, Callable[[], None]]] = []
        self.begins: list[int] = []
        self.subscription: SubscriptionData | None = build_subscription_data("t", "*")
        self.on_find: Callable[[], object] = lambda: None
        self.queues: PulledQueues[None] = PulledQueues(
            self.later, subscription=lambda _topic: self.subscription, begin=self._begin
        )
        self.puller = Puller(consumer_group="g", suspend=0.0, retry=0.01)
        self.queues.open(self.puller, BrokerChoice(self._find, lambda _topic: None))

    def later(self, delay: float, work: Callable[[], None]) -> None:
        self.due.append((delay, work))

    def run(self) -> list[float]:
        """Does what is due; after how long it was."""
        due, self.due = self.due, []
        for _, work in due:
            work()
        return [delay for delay, _ in due]

    def started(self, *queues: MessageQueue, offset: int = -1) -> World:
        for queue in queues:
            self.queues.start(PulledQueue(queue, None, offset))
        return self

    def taken(self, is_enough: Callable[[list[Any]], object] = bool) -> list[Any]:
        """Takes until it is enough."""
        taken: list[Any] = []

        def enough() -> bool:
            if not is_enough(taken):
                taken.extend(fetched for _, fetched in self.queues.take(1.0) or ())
            return bool(is_enough(taken))

        until(enough)
        return taken

    def close(self) -> None:
        self.queues.close()
        for broker in (self.broker, self.slave, self.other):
            broker.close()

    def _begin(self, queue: MessageQueue) -> int:
        if not self.begins:
            raise ClientError(f"the broker of {queue} does not answer")
        return self.begins.pop(0)

    def _find(self, name: str, broker_id: int) -> FoundBroker | None:
        self.on_find()
        return self.brokers.get((name, broker_id))


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()


def test_where_to_begin_is_asked_again_after_three_seconds(world: World) -> None:
    world.started(A).run()
    assert [delay for delay, _ in world.due] == [3.0]
    world.begins = [-1]
    world.run()
    world.begins = [FIRST]
    assert world.run() == [3.0]
    until(lambda: world.broker.asked)


def test_a_broker_that_nobody_knows_is_looked_for_every_second(world: World) -> None:
    known = dict(world.brokers)
    world.brokers.clear()
    world.started(A, offset=FIRST).run()
    world.brokers.update(known)
    assert world.run() == [1.0]
    until(lambda: world.broker.asked)


def test_sql92_waits_until_the_brokers_release_is_known(world: World) -> None:
    world.subscription = SubscriptionData(topic="t", sub_string="a > 1", expression_type="SQL92", sub_version=9)
    world.brokers["broker-a", 0] = FoundBroker(world.broker.address, False, 0)
    world.started(A, offset=FIRST).run()
    world.brokers["broker-a", 0] = FoundBroker(world.broker.address, False, 401)
    assert world.run() == [1.0]
    until(lambda: world.broker.asked)
    asked = world.broker.asked[0]
    assert (asked["subscription"], asked["expressionType"], asked["subVersion"]) == ("a > 1", "SQL92", "9")


def test_a_queue_goes_on_at_the_slave_that_its_master_suggests(world: World) -> None:
    world.broker.suggests, world.slave.suggests = 1, 1
    world.started(REAL, offset=FIRST).run()
    (fetched,) = world.taken()
    assert (fetched.begin_offset, len(fetched)) == (FIRST, 1)
    world.run()
    until(lambda: world.slave.asked)
    assert world.slave.offsets()[0] == (str(REAL.queue_id), FIRST + 1)
    world.slave.suggests = 0
    seen = len(world.broker.asked)
    until(lambda: world.queues.take(1.0) is not None and world.due)
    world.run()
    until(lambda: len(world.broker.asked) > seen)


def test_a_queue_that_is_gone_or_wanted_by_nobody_is_not_begun(world: World) -> None:
    world.started(A, B, offset=FIRST)
    world.queues.stop([B])
    world.run()
    until(lambda: world.broker.asked)
    world.subscription = None
    world.started(B, offset=FIRST).run()
    assert world.other.asked == []


def test_a_queue_that_is_sought_while_its_broker_is_looked_for_is_begun_there(world: World) -> None:
    def seek() -> None:
        world.on_find = lambda: None
        assert world.queues.seek(A, FIRST + 1)

    world.on_find = seek
    world.started(A, offset=FIRST).run()
    assert world.broker.asked == []
    world.run()
    until(lambda: world.broker.asked)
    assert world.broker.offsets()[0] == ("0", FIRST + 1)


def test_after_the_end_nothing_is_begun(world: World) -> None:
    world.started(A, offset=FIRST)
    world.queues.close()
    world.run()
    assert world.broker.asked == []
    assert world.queues.take(1.0) is None
