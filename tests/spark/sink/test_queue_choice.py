"""Which queue rows go to: in turn, as they say, and to another broker where one failed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rmqfast.errors import ClientError
from rmqfast.message import MessageQueue
from rmqfast.spark.sink.queue_choice import QueueChoice
from rmqfast.spark.sink.row_groups import Target


class Routes:
    """Two brokers with two queues each; `asked` notes when the route was asked for anew."""

    def __init__(self) -> None:
        self.brokers, self.asked = ["a", "b"], list[bool]()

    def queues(self, topic: str, *, is_new: bool = False) -> Sequence[MessageQueue]:
        self.asked.append(is_new)
        return [MessageQueue(topic, broker, number) for broker in self.brokers for number in range(2)]


def test_queues_come_in_turn_and_the_route_is_asked_for_once() -> None:
    routes = Routes()
    choice = QueueChoice(routes)
    chosen = [choice.first(Target("t")) for _ in range(8)]
    assert chosen[:4] == chosen[4:]
    assert len(set(chosen)) == 4
    assert routes.asked == [False]


def test_what_a_broker_did_not_take_goes_to_another_one_if_it_may() -> None:
    choice = QueueChoice(Routes())
    last = MessageQueue("t", "a", 0)
    found = [choice.again(Target("t"), last, set()) for _ in range(20)]
    assert {queue.broker_name for queue in found if queue is not None} == {"b"}
    assert len(set(found)) == 2
    assert choice.again(Target("t", "a", 0), last, set()) == last
    assert choice.again(Target("t", "a", 0), last, {"a"}) is None
    assert choice.again(Target("t"), last, {"a", "b"}) is None


def test_a_new_route_is_taken_up_after_a_failure() -> None:
    routes = Routes()
    choice = QueueChoice(routes)
    choice.first(Target("t"))
    routes.brokers = ["c"]
    found = choice.again(Target("t"), MessageQueue("t", "a", 0), set())
    assert found is not None
    assert found.broker_name == "c"
    assert {choice.first(Target("t")).broker_name for _ in range(4)} == {"c"}


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (Target("t", None, 1), "queue_id 1, broker_name None: expected a broker_name, as several have it: a, b"),
        (
            Target("t", "a", 2),
            "has no such queue that may be written to: queue_id 2, broker_name a; a has 0 to 1; b has",
        ),
        (Target(None), "expected a topic, got null"),
        (Target(""), "expected a topic, got null"),
    ],
)
def test_a_target_that_is_not_there_is_refused(target: Target, text: str) -> None:
    with pytest.raises(ClientError) as caught:
        QueueChoice(Routes()).first(target)
    assert text in str(caught.value)
