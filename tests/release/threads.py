"""Whether many threads may be in the package at once, which only a free-threaded Python shows.

    python -W error -m tests.release.threads STORE WORKPLACE

For a minute, threads scan one open store, append to another, send by one producer and take by three consumers, with
the broker in the same process. Each scan has to read the same rows, and each message has to come to each consumer.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from time import monotonic
from typing import Any, NamedTuple

from .smoke import Place, rows, run

_TOPIC = "orders"
#: Of each kind of work; and at most so many messages of each of them.
_THREADS = 4
_MESSAGES = 20_000
_CAPSULES = 1000
_SECONDS = 60
_PATIENCE = 120


class Work:
    """Work that threads repeat until the time is over, with its counts."""

    def __init__(self, seconds: float) -> None:
        self._end = monotonic() + seconds
        self._pool = ThreadPoolExecutor(max_workers=64)
        self._futures: list[tuple[str, Future[int]]] = []

    def start(self, name: str, step: Callable[[int], object], *, times: int = sys.maxsize) -> None:
        """Has threads do a step again and again; each call has a number of its own."""
        for thread in range(_THREADS):
            self._futures.append((name, self._pool.submit(self._repeat, step, thread, times)))

    def counts(self) -> Counter[str]:
        """The count of each; raises the error of a thread."""
        done: Counter[str] = Counter()
        for name, future in self._futures:
            done[name] += future.result()
        self._pool.shutdown()
        return done

    def _repeat(self, step: Callable[[int], object], thread: int, times: int) -> int:
        done = 0
        while done < times and monotonic() < self._end:
            step(done * _THREADS + thread)
            done += 1
        return done


class Arrivals:
    """The bodies that came, to whichever thread."""

    def __init__(self) -> None:
        self._bodies: Counter[bytes] = Counter()
        self._changed = threading.Condition()

    def add(self, messages: Any) -> None:
        """Notes what came."""
        with self._changed:
            self._bodies.update(message.body for message in messages)
            self._changed.notify_all()

    def await_all(self, expected: set[bytes], who: str) -> None:
        """Waits until nothing of it is missing; nothing else may have come."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._bodies) >= len(expected), _PATIENCE)
            came = set(self._bodies)
        assert came == expected, f"{who}: {len(expected - came)} missing, {len(came - expected)} unknown"


def scans_and_lookups(work: Work, store: Any) -> None:
    """One open store, read by all."""
    topics = store.topics()
    expected = {topic: sum(high - low for low, high in queues.values()) for topic, queues in topics.items()}
    names = sorted(expected)

    def scan(number: int) -> None:
        topic = names[number % len(names)]
        assert rows(store.scan(topic)) == expected[topic], topic

    def look_up(number: int) -> None:
        assert store.topics() == topics
        queue_id, (low, high) = sorted(topics["fx_plain"].items())[number % len(topics["fx_plain"])]
        if high > low:
            offset = low + number % (high - low)
            (message,) = store.get("fx_plain", queue_id, offset, max_messages=1).messages
            assert message.queue_offset == offset

    work.start("scans", scan)
    work.start("lookups", look_up)


def appends(work: Work, store: Any) -> None:
    """One store, written by all."""
    import rmqfast

    work.start("appends", lambda number: store.append(rmqfast.Message(_TOPIC, b"%d" % number)), times=_MESSAGES)


@contextmanager
def consumers(name_server: str) -> Iterator[dict[str, Arrivals]]:
    """A push consumer, an orderly one, and one that is polled by threads in turn."""
    import rmqfast

    arrivals = {name: Arrivals() for name in ("concurrent", "orderly", "polled")}
    is_over = threading.Event()

    def take(name: str, status: Any) -> Callable[[Any, Any], Any]:
        def listener(messages: Any, _: Any) -> Any:
            arrivals[name].add(messages)
            return status

        return listener

    concurrent = rmqfast.PushConsumer("concurrent", name_server=name_server)
    concurrent.register_message_listener(take("concurrent", rmqfast.ConsumeConcurrentlyStatus.CONSUME_SUCCESS))
    orderly = rmqfast.PushConsumer("orderly", name_server=name_server)
    orderly.register_message_listener(take("orderly", rmqfast.ConsumeOrderlyStatus.SUCCESS))
    polled = rmqfast.LitePullConsumer("polled", name_server=name_server)
    for consumer in (concurrent, orderly, polled):
        consumer.subscribe(_TOPIC)
        consumer.start()

    def poll() -> None:
        while not is_over.is_set():
            arrivals["polled"].add(polled.poll(0.1))

    pollers = [threading.Thread(target=poll) for _ in range(2)]
    for poller in pollers:
        poller.start()
    try:
        yield arrivals
    finally:
        is_over.set()
        for poller in pollers:
            poller.join()
        for consumer in (concurrent, orderly, polled):
            consumer.shutdown()


def many_threads_at_once(place: Place) -> str:
    """All of it at once, for a minute."""
    import rmqfast

    work = Work(_SECONDS)
    appended = place.workplace / "appended"
    with (
        rmqfast.open_store(place.store) as store,
        rmqfast.open_store(appended, mode="a") as written,
        rmqfast.EmbeddedCluster(place.workplace / "cluster") as cluster,
        rmqfast.Producer("shop", name_server=cluster.name_server) as producer,
        consumers(cluster.name_server) as arrivals,
    ):
        sent: set[bytes] = set()

        def send(number: int) -> None:
            body = b"%d" % number
            assert producer.send(rmqfast.Message(_TOPIC, body), timeout=_PATIENCE).status is rmqfast.SendStatus.SEND_OK
            sent.add(body)

        scans_and_lookups(work, store)
        appends(work, written)
        work.start("sends", send, times=_MESSAGES)
        done = work.counts()
        assert all(done.values()), done
        assert len(sent) == done["sends"]
        for name, came in arrivals.items():
            came.await_all(sent, name)
    with rmqfast.open_store(appended) as store:
        assert rows(store.scan(_TOPIC)) == done["appends"]
    return ", ".join(f"{count} {name}" for name, count in done.items())


class Stream(NamedTuple):
    """Rows of Arrow that everybody gets by the same capsule, which can be taken once."""

    capsule: Any

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any:
        return self.capsule


def one_thread_takes_a_capsule(place: Place) -> str:
    """The others are told that it was taken."""
    import rmqfast

    with (
        rmqfast.open_store(place.store) as store,
        rmqfast.open_store(place.workplace / "taken", mode="a") as written,
        ThreadPoolExecutor(_THREADS) as pool,
    ):
        barrier = threading.Barrier(_THREADS)

        def take(stream: Stream) -> int:
            barrier.wait()
            try:
                return written.append_many(stream)
            except ValueError as error:
                return 0 if "taken before" in str(error) else -1

        for _ in range(_CAPSULES):
            stream = Stream(store.scan("fx_plain").__arrow_c_stream__())
            taken = sorted(pool.map(take, [stream] * _THREADS))
            assert taken == [*[0] * (_THREADS - 1), 120], taken
    return f"{_CAPSULES} capsules"


def the_lock_stays_off(_: Place) -> str:
    """An extension that does not say that it can do without makes Python turn the lock on, and warn."""
    import_module("rmqfast.embedded")
    assert not sys._is_gil_enabled()  # type: ignore[attr-defined]  # noqa: SLF001
    return "no lock"


def main(store: str, workplace: str) -> int:
    """Runs them; the lock has to be off afterwards, too."""
    checks = (the_lock_stays_off, one_thread_takes_a_capsule, many_threads_at_once, the_lock_stays_off)
    return run(checks, store, workplace)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
