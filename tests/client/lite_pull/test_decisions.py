"""What is decided between a pull and a poll, without brokers, sockets or waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import Queue
from typing import Any

import pytest

from rmqfast import MessageQueue
from rmqfast._native import Puller, PullerEvent
from rmqfast.client.consumer import build_subscription_data
from rmqfast.client.instance import FoundBroker
from rmqfast.client.lite_pull.assigned_queues import AssignedQueues
from rmqfast.client.lite_pull.broker_puller import BrokerPuller
from rmqfast.client.lite_pull.cached_batch import CachedBatch, LiteQueue
from rmqfast.client.lite_pull.options import LitePullOptions
from rmqfast.client.lite_pull.pullers import PullContext, Pullers
from rmqfast.client.lite_pull.task_threads import TaskThreads
from rmqfast.client.lite_pull.topic_watch import TopicWatch
from rmqfast.errors import ChannelClosedError, ClientError
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from tests.waiting import until

A, B = MessageQueue("t", "broker-a", 0), MessageQueue("t", "broker-b", 1)


class Answer:
    """What a puller hands out."""

    def __init__(  # noqa: PLR0917 - a test reads better so
        self, queue: MessageQueue, epoch: int, begin: int, end: int, count: int | None = None, status: str = "FOUND"
    ) -> None:
        self.queue, self.epoch, self.status = queue, epoch, status
        self.begin_offset, self.next_begin_offset = begin, end
        self.min_offset, self.max_offset = 0, 1000
        self.count = end - begin if count is None else count
        self.offsets = (begin, begin + self.count - 1) if self.count else None
        self.size, self.remark, self.suggested_broker_id = self.count * 100, "no reason", 0

    def __len__(self) -> int:
        return self.count


class FakePuller:
    """Notes what it is told."""

    def __init__(self) -> None:
        self._answers: Queue[list[Any] | None] = Queue()
        self._is_at_work = False
        self.told: list[Any] = []
        #: With what the last assignment came.
        self.wanted: dict[str, Any] = {}
        self.epoch = 0
        self.is_closed = threading.Event()

    def assign(self, topic: str, queue_id: int, offset: int, **wanted: Any) -> int:
        self.told.append(("assign", queue_id, offset, wanted["expression"], *["paused"] * wanted["paused"]))
        self.wanted = wanted
        self.epoch += 1
        return self.epoch

    def remove(self, _topic: str, queue_id: int) -> bool:
        self.told.append(("remove", queue_id))
        return True

    def seek(self, _topic: str, queue_id: int, offset: int) -> int:
        self.told.append(("seek", queue_id, offset))
        self.epoch += 1
        return self.epoch

    def pause(self, _topic: str, queue_id: int) -> bool:
        self.told.append(("pause", queue_id))
        return True

    def resume(self, _topic: str, queue_id: int) -> bool:
        self.told.append(("resume", queue_id))
        return True

    def take(self, timeout: float, *, max_items: int = 64) -> list[Any]:
        if self._is_at_work:
            self._answers.task_done()
        answers = self._answers.get()
        self._is_at_work = answers is not None
        if answers is None:
            raise ChannelClosedError("closed")
        return answers

    def hand_out(self, *answers: object) -> None:
        """Gives answers to the thread that takes, and waits until it has done what they mean."""
        self._answers.put(list(answers))
        until(lambda: not self._answers.unfinished_tasks)

    def close(self) -> None:
        self.is_closed.set()
        self._answers.put(None)


def queues_of(*queues: MessageQueue, **options: Any) -> AssignedQueues:
    made = AssignedQueues(LitePullOptions(**options))
    made.replace(queues)
    return made


def put(cache: AssignedQueues, queue: MessageQueue, begin: int, end: int) -> CachedBatch:
    assigned = cache.get(queue)
    assert assigned is not None
    batch = CachedBatch(queue, assigned.process_queue, assigned.epoch, Answer(queue, 0, begin, end))  # type: ignore[arg-type]
    assert cache.advance(assigned, assigned.epoch, end, batch)
    return batch


def offsets(batches: Sequence[CachedBatch]) -> list[tuple[MessageQueue, int]]:
    return [(batch.queue, batch.first) for batch in batches]


def test_the_consume_offset_is_that_of_the_first_message_that_waits_or_behind_the_last() -> None:
    cache = queues_of(A)
    assert cache.consumed() == {A: -1}
    put(cache, A, 5, 8)
    put(cache, A, 10, 12)  # 8 and 9 were left out by a filter
    cache.take(0)
    assert cache.consumed() == {A: 10}
    cache.take(0)
    assert cache.consumed([A, B]) == {A: 12}


def test_batches_come_as_they_were_pulled_and_several_are_of_one_broker() -> None:
    cache = queues_of(A, B)
    put(cache, A, 0, 2)
    put(cache, B, 0, 2)
    put(cache, A, 2, 4)
    assert offsets(cache.take(0, most_messages=100, most_bytes=10_000)) == [(A, 0), (A, 2)]
    put(cache, A, 4, 6)
    assert offsets(cache.take(0)) == [(B, 0)]
    assert offsets(cache.take(0, most_messages=1, most_bytes=1)) == [(A, 4)]
    assert cache.take(0) == []


def test_limits_hold_but_for_the_batch_that_passes_them() -> None:
    cache = queues_of(A)
    for begin in range(0, 10, 2):
        put(cache, A, begin, begin + 2)
    assert offsets(cache.take(0, most_messages=3, most_bytes=10_000)) == [(A, 0), (A, 2)]
    assert offsets(cache.take(0, most_messages=100, most_bytes=250)) == [(A, 4), (A, 6)]


def test_what_is_given_back_waits_first_and_is_not_consumed() -> None:
    cache = queues_of(A)
    for begin in (0, 2, 4):
        put(cache, A, begin, begin + 2)
    taken = cache.take(0, most_messages=100, most_bytes=10_000)
    assert cache.consumed() == {A: 6}
    cache.give_back(taken[1:])
    assert cache.consumed() == {A: 2}
    assert cache.get(A).process_queue.count == 4  # type: ignore[union-attr]
    assert offsets(cache.take(0)) == [(A, 2)]
    cache.seek(A, 100)
    cache.give_back(taken)
    assert cache.take(0) == [], "what was pulled before a seek is of no use"


def test_a_seek_makes_older_pulls_useless() -> None:
    cache = queues_of(A)
    put(cache, A, 0, 2)
    assigned = cache.get(A)
    assert assigned is not None
    before = assigned.epoch
    assert cache.seek(A, 50) is assigned
    assert not cache.advance(assigned, before, 2)
    assert (assigned.pull_offset, cache.consumed(), cache.take(0)) == (50, {A: 50}, [])
    assert cache.seek(B, 0) is None


def test_a_queue_that_is_lost_takes_what_waits_with_it() -> None:
    cache = queues_of(A, B)
    put(cache, A, 0, 2)
    put(cache, B, 0, 2)
    lost = cache.get(A)
    assert lost is not None
    added, gone = cache.update_topic("t", {B}, {})
    assert (added, gone) == ([], [lost])
    assert not cache.advance(lost, lost.epoch, 9)
    assert offsets(cache.take(0)) == [(B, 0)]
    # dropped by the rebalance, which has not told of it yet
    put(cache, B, 2, 4)
    cache.get(B).process_queue.is_dropped = True  # type: ignore[union-attr]
    assert cache.take(0) == []
    assert cache.consumed() == {}
    kept = LiteQueue()
    added, gone = cache.update_topic("t", {B}, {B: kept})
    assert (len(added), len(gone)) == (1, 1)
    assert cache.get(B).process_queue is kept  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        ({"pull_threshold_for_queue": 10}, 11),
        ({"pull_threshold_size_for_queue": 1000}, 11),
        ({"consume_max_span": 10}, 12),
        ({"pull_threshold_for_all": 10, "pull_batch_size": 10}, 2),
    ],
)
def test_each_threshold_is_passed_by_one_message_more_than_it(options: dict[str, int], messages: int) -> None:
    cache = queues_of(A, **options)
    assigned = cache.get(A)
    assert assigned is not None
    for begin in range(messages):
        assert not cache.is_full(assigned)
        put(cache, A, begin, begin + 1)
    assert cache.is_full(assigned)
    cache.take(0)
    assert not cache.is_full(assigned)


class GreedyPuller(FakePuller):
    """Pulls as much as a native puller may, in answers of ten messages: 20 of a queue and 40 of all of them.

    What the last `give` gave counts until the next one, as `Puller.take` has it.
    """

    def __init__(self, queues: Sequence[MessageQueue]) -> None:
        super().__init__()
        self._queues = dict(enumerate(queues, 1))
        self._next = dict.fromkeys(self._queues, 0)
        self._came: list[int] = []
        self._in_hand: list[int] = []
        self._paused: set[int] = set()

    def pause(self, topic: str, queue_id: int) -> bool:
        self._paused.add(queue_id + 1)
        return super().pause(topic, queue_id)

    def resume(self, topic: str, queue_id: int) -> bool:
        self._paused.discard(queue_id + 1)
        return super().resume(topic, queue_id)

    def give(self, most: int) -> list[Any]:
        """As many answers as there are, `most` at most."""
        self._in_hand = []
        self._pull()
        self._in_hand, self._came = self._came[:most], self._came[most:]
        self._pull()
        return [self._answer(epoch) for epoch in self._in_hand]

    def _pull(self) -> None:
        for epoch in [*self._queues] * 2:
            counted = self._came + self._in_hand
            if epoch not in self._paused and counted.count(epoch) < 2 and len(counted) < 4:
                self._came.append(epoch)

    def _answer(self, epoch: int) -> Answer:
        begin = self._next[epoch]
        self._next[epoch] += 10
        return Answer(self._queues[epoch], epoch, begin, begin + 10)


def waiting_of(cache: AssignedQueues, queue: MessageQueue) -> LiteQueue:
    assigned = cache.get(queue)
    assert assigned is not None
    return assigned.process_queue


@pytest.mark.parametrize(
    ("options", "waiting", "threshold", "more"),
    [
        ({"pull_threshold_for_queue": 50}, lambda of: max(each.count for each in of), 50, 20),
        ({"pull_threshold_size_for_queue": 5000}, lambda of: max(each.size for each in of), 5000, 2000),
        ({"consume_max_span": 49}, lambda of: max(each.span for each in of), 49, 20),
        ({"pull_threshold_for_all": 60}, lambda of: sum(each.count for each in of), 60, 40),
    ],
)
def test_behind_a_threshold_only_that_comes_which_a_puller_may_have(
    options: dict[str, int], waiting: Callable[[list[LiteQueue]], int], threshold: int, more: int
) -> None:
    queues = [MessageQueue("t", "broker-a", queue_id) for queue_id in range(3)]
    most = set()
    for at_once in range(1, 6):
        cache, native = queues_of(*queues, **options), GreedyPuller(queues)
        puller = BrokerPuller(native, cache, lambda *_: None, lambda: None)
        for queue in queues:
            begin(puller, cache, queue)
        of = [waiting_of(cache, queue) for queue in queues]
        for _ in range(3):
            while items := native.give(at_once):
                puller.take_all(items)
            assert threshold < waiting(of) <= threshold + more
            most.add(waiting(of))
            while cache.take(0):
                puller.see_to()
    assert max(most) == threshold + more, "there is no smaller bound"


def puller_of(cache: AssignedQueues) -> tuple[BrokerPuller, FakePuller, list[Any]]:
    native, suggested = FakePuller(), list[Any]()
    made = BrokerPuller(native, cache, lambda _assigned, broker_id: suggested.append(broker_id), lambda: None)
    return made, native, suggested


def begin(puller: BrokerPuller, cache: AssignedQueues, queue: MessageQueue, expression: str = "*") -> None:
    assigned = cache.get(queue)
    assert assigned is not None
    cache.advance(assigned, assigned.epoch, 0)
    assert puller.begin(assigned, assigned.epoch, build_subscription_data("t", expression))


def test_what_is_pulled_waits_and_a_full_queue_is_asked_for_no_more() -> None:
    cache = queues_of(A, pull_threshold_for_queue=3)
    puller, native, _ = puller_of(cache)
    begin(puller, cache, A, "x || y")
    assert (native.wanted["expression_type"], native.wanted["sub_version"]) == ("TAG", 0)
    assert native.wanted["tags"] == {"x", "y"}, "which are told apart from others of their hash"
    puller.take(Answer(A, 1, 0, 2))  # type: ignore[arg-type]
    assert native.told == [("assign", 0, 0, "x || y")]
    puller.take(Answer(A, 1, 2, 4))  # type: ignore[arg-type]
    assert native.told[1:] == [("pause", 0)]
    puller.see_to()
    assert native.told[2:] == []
    cache.take(0)
    puller.see_to()
    assert native.told[2:] == [("resume", 0)]


def test_a_queue_that_a_poll_empties_while_it_is_found_full_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = queues_of(A)
    puller, native, _ = puller_of(cache)
    begin(puller, cache, A)
    looks = [True]
    monkeypatch.setattr(cache, "is_full", lambda _assigned: bool(looks) and looks.pop())
    puller.take(Answer(A, 1, 0, 2))  # type: ignore[arg-type]
    assert native.told[1:] == [("pause", 0), ("resume", 0)]


def test_what_a_seek_throws_away_makes_room_for_other_queues() -> None:
    world = World(A, B, pull_threshold_for_all=1, pull_batch_size=1)
    world.begins = [0, 0]
    world.started().run()
    for queue, address in ((A, "a:1"), (A, "a:1"), (B, "b:1")):
        assigned = world.cache.get(queue)
        assert assigned is not None
        world.opened[address].hand_out(Answer(queue, 1, assigned.pull_offset, assigned.pull_offset + 1))
    assert world.opened["b:1"].told[1:] == [("pause", 1)]
    sought = world.cache.seek(A, 50)
    assert sought is not None
    world.pullers.start([sought])
    assert world.opened["b:1"].told[2:] == [("resume", 1)]
    world.pullers.close(5)


def test_a_paused_queue_is_asked_for_no_more_however_empty_it_is() -> None:
    cache = queues_of(A)
    puller, native, _ = puller_of(cache)
    begin(puller, cache, A)
    puller.see_to(cache.pause([A, B], is_paused=True))
    puller.see_to()
    assert native.told[1:] == [("pause", 0)]
    puller.take(Answer(A, 1, 0, 2))  # type: ignore[arg-type]
    assert offsets(cache.take(0)) == [(A, 0)], "what was under way still comes"
    puller.see_to(cache.pause([A], is_paused=False))
    assert native.told[2:] == [("resume", 0)]


def test_a_queue_of_which_nothing_is_wanted_is_not_asked_for_once_wherever_it_begins() -> None:
    cache = queues_of(A)
    puller, native, _ = puller_of(cache)
    cache.pause([A], is_paused=True)
    begin(puller, cache, A)
    assert native.told == [("assign", 0, 0, "*", "paused")]
    sought = cache.seek(A, 50)
    assert sought is not None
    assert puller.begin(sought, sought.epoch, build_subscription_data("t", "*"))
    assert native.told[1:] == [("assign", 0, 50, "*", "paused")]
    puller.see_to(cache.pause([A], is_paused=False))
    assert native.told[2:] == [("resume", 0)]


def test_an_offset_that_is_not_there_is_followed_and_what_is_old_is_left(caplog: pytest.LogCaptureFixture) -> None:
    cache = queues_of(A)
    puller, native, suggested = puller_of(cache)
    begin(puller, cache, A)
    puller.take(Answer(A, 1, 500, 7, 0, "OFFSET_ILLEGAL"))  # type: ignore[arg-type]
    assert native.told[1:] == [("seek", 0, 7)]
    assert "does not have the offset 500" in caplog.text
    puller.take(Answer(A, 1, 0, 2))  # type: ignore[arg-type]
    assert cache.take(0) == [], "that came from before"
    puller.take(Answer(A, 2, 7, 9))  # type: ignore[arg-type]
    assert offsets(cache.take(0)) == [(A, 7)]
    puller.take(Answer(A, 2, 9, 9, 0, "FAILED"))  # type: ignore[arg-type]
    puller.take(Answer(A, 2, 9, 12, 0, "NO_MATCHED_MSG"))  # type: ignore[arg-type]
    assert cache.take(0) == []
    assert cache.get(A).pull_offset == 12  # type: ignore[union-attr]
    assert cache.consumed() == {A: 9}, "what is left out is not consumed"
    assert suggested == [0, 0, 0]
    assert puller.end(A)
    assert native.told[2:] == [("remove", 0)]
    puller.take(Answer(A, 2, 12, 13))  # type: ignore[arg-type]
    assert cache.take(0) == []


def test_a_beginning_that_a_seek_has_overtaken_does_nothing() -> None:
    cache = queues_of(A)
    puller, native, _ = puller_of(cache)
    assigned = cache.seek(A, 5)
    assert assigned is not None
    assert not puller.begin(assigned, 0, build_subscription_data("t", "*"))
    assert puller.begin(assigned, 1, build_subscription_data("t", "*"))
    assert native.told == [("assign", 0, 5, "*")]


class World:
    """Brokers that are there, and work that is done when the test says so."""

    def __init__(self, *queues: MessageQueue, **options: int) -> None:
        self.cache = queues_of(*queues, **options)
        self.brokers: dict[tuple[str, int], FoundBroker] = {
            ("broker-a", 0): FoundBroker("a:1", False, 401),
            ("broker-a", 1): FoundBroker("a:2", True, 401),
            ("broker-b", 0): FoundBroker("b:1", False, 401),
        }
        self.due: list[tuple[float, Any]] = []
        self.opened: dict[str, FakePuller] = {}
        self.begins: list[int] = []
        self.subscription: SubscriptionData | None = build_subscription_data("t", "*")
        self.on_find: Callable[[], object] = lambda: None
        context = PullContext(
            cache=self.cache,
            threads=self,  # type: ignore[arg-type]
            subscription=lambda _topic: self.subscription,
            begin=self._begin,
            find=self._find,
            update_route=lambda _topic: False,
            open=self._open,
        )
        self.pullers = Pullers(context)

    def later(self, delay: float, work: Any) -> None:
        self.due.append((delay, work))

    def run(self) -> list[float]:
        due, self.due = self.due, []
        for _, work in due:
            work()
        return [delay for delay, _ in due]

    def started(self) -> World:
        self.pullers.start(filter(None, map(self.cache.get, self.cache.queues())))
        return self

    def _begin(self, queue: MessageQueue) -> int:
        if not self.begins:
            raise ClientError(f"the broker of {queue} does not answer")
        return self.begins.pop(0)

    def _find(self, name: str, broker_id: int) -> FoundBroker | None:
        self.on_find()
        return self.brokers.get((name, broker_id))

    def _open(self, address: str, _broker_name: str) -> FakePuller:
        return self.opened.setdefault(address, FakePuller())


@pytest.fixture
def world() -> World:
    return World(A, B)


def test_queues_are_pulled_from_their_brokers_where_they_begin(world: World) -> None:
    world.begins = [3, 4]
    world.started().run()
    assert {address: puller.told for address, puller in world.opened.items()} == {
        "a:1": [("assign", 0, 3, "*")],
        "b:1": [("assign", 1, 4, "*")],
    }
    world.pullers.close(5)
    assert all(puller.is_closed.is_set() for puller in world.opened.values())


def test_where_to_begin_is_asked_again_after_three_seconds(world: World) -> None:
    world.started().run()
    world.begins = [-1, 7]
    assert world.run() == [3.0, 3.0]
    assert [delay for delay, _ in world.due] == [3.0]
    world.begins = [8]
    world.run()
    assert world.opened["a:1"].told == [("assign", 0, 8, "*")]
    assert world.opened["b:1"].told == [("assign", 1, 7, "*")]


def test_a_broker_that_nobody_knows_is_looked_for_every_second() -> None:
    world = World(A)
    world.begins = [0]
    known = dict(world.brokers)
    world.brokers.clear()
    world.started().run()
    assert world.opened == {}
    world.brokers.update(known)
    assert world.run() == [1.0]
    assert world.opened["a:1"].told


def test_sql92_waits_until_the_brokers_release_is_known() -> None:
    world = World(A)
    world.begins = [0]
    world.subscription = SubscriptionData(topic="t", sub_string="a > 1", expression_type="SQL92", sub_version=9)
    world.brokers["broker-a", 0] = FoundBroker("a:1", False, 0)
    world.started().run()
    assert world.opened == {}
    world.brokers["broker-a", 0] = FoundBroker("a:1", False, 401)
    world.run()
    assert world.opened["a:1"].told == [("assign", 0, 0, "a > 1")]
    wanted = world.opened["a:1"].wanted
    assert (wanted["expression_type"], wanted["sub_version"], wanted["tags"]) == ("SQL92", 9, None)


def test_a_queue_goes_on_at_the_slave_that_its_master_suggests() -> None:
    world = World(A)
    world.begins = [0]
    world.started().run()
    master, answer = world.opened["a:1"], Answer(A, 1, 0, 2)
    answer.suggested_broker_id = 1
    master.hand_out(answer)
    world.run()
    assert master.told[1:] == [("remove", 0)]
    assert world.opened["a:2"].told == [("assign", 0, 2, "*")]
    master.hand_out(Answer(A, 1, 2, 4))
    assert len(world.cache.take(0, most_messages=9, most_bytes=9999)) == 1, "the master's answers are of no use now"
    world.opened["a:2"].hand_out(Answer(A, 1, 2, 4))
    world.run()
    assert master.told[2:] == [("assign", 0, 4, "*")]
    world.pullers.close(5)


def lost() -> PullerEvent:
    """What a puller says whose broker is not there."""
    puller = Puller("127.0.0.1:1", consumer_group="g")
    puller.assign("t", 0, 0)
    event = until(lambda: puller.take(1.0))[0]
    puller.close()
    assert isinstance(event, PullerEvent)
    return event


def test_a_broker_that_is_lost_is_followed_to_its_new_address() -> None:
    world = World(A)
    world.begins = [0]
    world.started().run()
    world.opened["a:1"].hand_out(lost())
    assert world.run() == [1.0]
    assert world.due == [], "it is nowhere else yet"
    world.brokers["broker-a", 0] = FoundBroker("a:9", False, 401)
    world.opened["a:1"].hand_out(lost())
    world.run()  # looks where it is
    world.run()
    assert world.opened["a:9"].told == [("assign", 0, 0, "*")]
    assert world.opened["a:1"].told[1:] == [("remove", 0)]


def test_a_queue_that_is_gone_is_not_begun(world: World) -> None:
    world.begins = [0, 0]
    world.started()
    _, gone = world.cache.replace([A])
    world.pullers.stop(gone)
    world.run()
    assert set(world.opened) == {"a:1"}
    world.subscription = None
    world.started().run()
    assert len(world.opened["a:1"].told) == 1


def test_a_queue_that_is_sought_while_its_broker_is_looked_for_is_begun_there() -> None:
    world = World(A)
    world.begins = [0]

    def seek() -> None:
        world.on_find = lambda: None
        sought = world.cache.seek(A, 50)
        assert sought is not None
        world.pullers.start([sought])

    world.on_find = seek
    world.started().run()
    assert world.opened["a:1"].told == []
    world.run()
    assert world.opened["a:1"].told == [("assign", 0, 50, "*")]


def test_after_the_end_nothing_is_begun() -> None:
    world = World(A)
    world.begins = [0]
    world.started()
    world.pullers.close()
    world.run()
    assert world.opened == {}


def test_threads_do_what_is_due_while_others_are_busy() -> None:
    threads, go, done = TaskThreads("test", 3), threading.Event(), list[int]()

    def of_test() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name.startswith("test-")]

    def wait() -> None:
        go.wait(20)

    def fail() -> None:
        raise ZeroDivisionError

    for _ in range(2):
        threads.later(0.0, wait)
    threads.later(0.05, lambda: done.append(2))
    threads.later(0.0, lambda: done.append(1))
    until(lambda: done == [1, 2])
    threads.later(0.0, fail)
    threads.later(0.0, lambda: done.append(3))
    until(lambda: 3 in done)
    assert len(of_test()) <= 3
    go.set()
    threads.close(10)
    assert not of_test()
    threads.later(0.0, lambda: done.append(4))
    assert 4 not in done


def test_listeners_hear_of_other_queues_and_of_none() -> None:
    there: dict[str, frozenset[MessageQueue]] = {"t": frozenset({A}), "u": frozenset()}

    def fetch(topic: str) -> frozenset[MessageQueue]:
        if topic not in there:
            raise ClientError("nobody has the topic")
        return there[topic]

    heard: list[tuple[str, int]] = []
    watch = TopicWatch(fetch)
    watch.register("t", lambda topic, queues: heard.append((topic, len(queues))))
    watch.register("u", lambda topic, queues: heard.append((topic, len(queues))))
    watch.register("none", lambda *_: heard.append(("none", 0)))
    watch.fetch_all()
    watch.compare()
    assert heard == [("u", 0)], "a topic without queues counts as changed"
    there["t"] = frozenset({A, B})
    watch.register("u", lambda *_: 1 / 0)
    watch.compare()
    assert heard[1:] == [("t", 2)]
