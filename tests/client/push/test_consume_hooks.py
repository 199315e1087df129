"""What hooks are told of calls of a listener, and what filters take out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rmqfast import EmbeddedCluster, Message
from rmqfast.client.consumer import FilterContext
from rmqfast.client.producer import Producer
from rmqfast.client.push import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from tests.client.consumer.watching import Watcher
from tests.waiting import PATIENCE

from .listening import Make, Seen, send
from .messages import messages
from .test_services import QUEUE, Scene, concurrently, orderly

SUCCESS, LATER = ConsumeConcurrentlyStatus.CONSUME_SUCCESS, ConsumeConcurrentlyStatus.RECONSUME_LATER
ORDERLY = ConsumeOrderlyStatus
BODIES = [b"0"]


def raising(*_: Any) -> Any:
    raise SystemExit


def watched(scene: Scene) -> Watcher:
    watcher = Watcher()
    scene.hooks.add(watcher)
    return watcher


@pytest.mark.parametrize(
    ("answer", "status", "is_success", "kind"),
    [
        (lambda *_: SUCCESS, "CONSUME_SUCCESS", True, "SUCCESS"),
        (lambda *_: LATER, "RECONSUME_LATER", False, "FAILED"),
        (lambda *_: None, "RECONSUME_LATER", False, "RETURNNULL"),
        (lambda *_: True, "RECONSUME_LATER", False, "RETURNNULL"),
        (raising, "RECONSUME_LATER", False, "EXCEPTION"),
    ],
)
def test_hooks_are_told_how_a_call_ended_and_do_not_change_it(
    answer: Callable[..., Any], status: str, is_success: bool, kind: str
) -> None:
    without, _ = concurrently(answer, 1)
    scene, process_queue = concurrently(answer, 0)
    watcher = watched(scene)
    scene.service.submit(process_queue.put(messages(8)[:1], 100), process_queue, QUEUE)
    error = SystemExit if kind == "EXCEPTION" else None
    assert watcher.seen == [
        ("before", None, False, None, None, BODIES),
        ("after", status, is_success, kind, error, BODIES),
    ]
    assert (scene.offsets.updates, scene.broker.taken) == (without.offsets.updates, without.broker.taken)
    (context,) = watcher.contexts
    assert (context.consumer_group, context.queue, context.namespace) == ("g", QUEUE, "")


@pytest.mark.parametrize(
    ("status", "is_success", "kind"),
    [
        (ORDERLY.SUCCESS, True, "SUCCESS"),
        (ORDERLY.COMMIT, True, "SUCCESS"),
        (ORDERLY.ROLLBACK, False, "SUCCESS"),  # as in Java
        (ORDERLY.SUSPEND_CURRENT_QUEUE_A_MOMENT, False, "FAILED"),
        (None, False, "RETURNNULL"),
    ],
)
def test_in_order_hooks_are_told_as_well(status: ORDERLY | None, is_success: bool, kind: str) -> None:
    scene, process_queue, _ = orderly(lambda *_: status, 1)
    watcher = watched(scene)
    scene.service.submit([], process_queue, QUEUE)
    said = str(ORDERLY.SUSPEND_CURRENT_QUEUE_A_MOMENT if status is None else status)
    assert watcher.seen[:2] == [
        ("before", None, False, None, None, BODIES),
        ("after", said, is_success, kind, None, BODIES),
    ]


def test_a_listener_that_takes_too_long_has_timed_out_whatever_it_says() -> None:
    def answer(*_: Any) -> ORDERLY:
        scene.time.pass_(15 * 60)
        return ORDERLY.SUCCESS

    scene, process_queue, _ = orderly(answer, 1)
    watcher = watched(scene)
    scene.service.submit([], process_queue, QUEUE)
    assert watcher.seen[1][:4] == ("after", "SUCCESS", True, "TIME_OUT")


class OnlyEven:
    """Takes odd numbers out."""

    name = "only even"

    def __init__(self) -> None:
        self.groups: set[str] = set()

    def filter(self, context: FilterContext) -> None:
        self.groups.add(context.consumer_group)
        context.messages[:] = [message for message in context.messages if int(message.body or b"1") % 2 == 0]


class Failing:
    """Fails."""

    name = "failing"

    def filter(self, context: FilterContext) -> None:
        raise ValueError


def test_a_consumer_tells_its_hooks_and_never_shows_what_its_filters_take_out(
    cluster: EmbeddedCluster, producer: Producer, make: Make
) -> None:
    seen, watcher, even = Seen(), Watcher(), OnlyEven()
    send(producer, "numbers", [b"%d" % number for number in range(10)])
    one = make(cluster, "hooked", seen, "numbers")
    one.register_filter_hook(Failing())
    one.register_filter_hook(even)
    with one:
        seen.wait(5)
        one.register_consume_hook(watcher)  # is told from now on
        for body in (b"11", b"12"):
            producer.send(Message("numbers", body), timeout=PATIENCE)
        seen.wait(6)
    assert sorted(seen.bodies, key=int) == [b"0", b"2", b"4", b"6", b"8", b"12"]
    assert [(when, bodies) for when, *_, bodies in watcher.seen] == [("before", [b"12"]), ("after", [b"12"])]
    assert even.groups == {"hooked"}
    assert {context.queue.topic for context in watcher.contexts} == {"numbers"}
