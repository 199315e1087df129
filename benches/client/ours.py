"""rmqfast's clients in one warm Python process: sends, pulls into Arrow, pushes; run as a module, the peer's child."""

from __future__ import annotations

import itertools
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from peer import Answer, Missing, serve, timed
from rmqfast import Message
from rmqfast.client.consumer import ConsumeFromWhere
from rmqfast.client.lite_pull import LitePullConsumer, LitePullOptions
from rmqfast.client.producer import Producer, ProducerOptions
from rmqfast.client.pull import PullConsumer
from rmqfast.client.push import ConsumeConcurrentlyStatus, PushConsumer

PATIENCE = 120.0
LISTENER_SLEEPS = 0.05
Numbers = itertools.count()


class Clients:
    """The clients of one cluster; its methods answer requests."""

    def __init__(self) -> None:
        self._name_server = ""
        self._producer: Producer | None = None
        self._bounded_ones: dict[int, Producer] = {}

    def connect(self, name_server: str) -> Answer:
        """A producer that does not try again: each send counts once."""
        options = ProducerOptions(retries=0, async_retries=0)
        self._name_server, self._producer = name_server, Producer("bench", name_server=name_server, options=options)
        self._producer.start()
        return {"rows": 0, "seconds": 0}

    def sync(self, topic: str, size: str, count: str, threads: str) -> Answer:
        """Threads that wait for each of their messages."""
        send, body, share = self._sender().send, body_of(size), int(count) // int(threads)

        def run() -> None:
            for number in range(share):
                send(Message(topic, body, tags=f"t{number % 100}"), timeout=10.0)

        return timed(lambda: together(run, int(threads), share))

    def asynchronous(self, topic: str, size: str, count: str, window: str) -> Answer:
        """Messages that nobody waits for, so many on their way: the producer's own limit."""
        producer, body, over = self._bounded(int(window)), body_of(size), threading.Event()
        queues, left, failed = producer.fetch_publish_message_queues(topic), itertools.count(int(count) - 1, -1), []

        def on_done(ended: object) -> None:
            if isinstance(ended, Exception):
                failed.append(ended)
            if next(left) == 0:
                over.set()

        def work() -> Answer:
            for number in range(int(count)):
                message = Message(topic, body, tags=f"t{number % 100}")
                producer.send_async(message, on_done, queues[number % len(queues)], timeout=30.0)
            return {"rows": int(count), "told": over.wait(PATIENCE)}

        answer = timed(work)
        if failed or not answer.pop("told"):
            raise RuntimeError(f"{len(failed)} sends failed, the first: {failed[:1]}")
        return answer

    def batch(self, topic: str, size: str, count: str, batch: str) -> Answer:
        """Batches of messages, made and sent one after the other."""
        send, body = self._sender().send_batch, body_of(size)
        tags = [f"t{number % 100}" for number in range(int(batch))]

        def work() -> Answer:
            for _ in range(int(count) // int(batch)):
                send([Message(topic, body, tags=tag) for tag in tags], timeout=10.0)
            return {"rows": int(count) // int(batch) * int(batch)}

        return timed(work)

    def columns(self, topic: str, size: str, count: str, batch: str) -> Answer:
        """The same from Arrow, four batches on their way."""
        import pyarrow as pa  # not in the process whose memory is measured

        send, rows = self._sender().send_many, int(count)
        table = pa.table({"body": [body_of(size)] * rows, "tags": [f"t{number % 100}" for number in range(rows)]})
        return timed(lambda: sent(send(table, topic=topic, batch_size=int(batch), timeout=30.0), rows))

    def paced(self, topic: str, size: str, count: str, rate: str) -> Answer:
        """The same at a rate of messages a second, `began` at a time since 1970; fails where that is not reached."""
        import pyarrow as pa  # as above

        send, step = self._sender().send_many, int(rate) // 100
        table = pa.table({"body": [body_of(size)] * step})

        def send_some() -> None:
            sent(send(table, topic=topic, batch_size=step // 4, timeout=30.0), step)

        return at_rate(send_some, step, int(count), int(rate))

    def stamped(self, topic: str, size: str, count: str, rate: str) -> Answer:
        """Messages at a rate, those of a millisecond together.

        Each begins with the time before its send: nanoseconds since 1970, eight bytes.
        """
        producer, rest = self._sender(), body_of(size)[8:]
        queues = itertools.cycle(producer.fetch_publish_message_queues(topic))
        step = max(1, int(rate) // 1000)

        def send_some() -> None:
            messages = [Message(topic, time.time_ns().to_bytes(8, "big") + rest) for _ in range(step)]
            producer.send_batch(messages, next(queues), timeout=10.0)

        return at_rate(send_some, step, int(count), int(rate))

    def pull(self, topic: str, batch: str, under_way: str) -> Answer:
        """All messages of a topic as Arrow batches, from the assignment of its queues on."""
        if not hasattr(LitePullConsumer, "poll_arrow"):
            raise Missing("LitePullConsumer has no poll_arrow")
        import pyarrow as pa  # as above

        options: dict[str, Any] = {"pull_batch_size": int(batch), "pulls_in_flight": int(under_way)}
        options |= {"pull_threshold_for_all": 400_000, "pull_threshold_for_queue": 60_000, "consume_max_span": 65_535}
        options |= {"auto_commit": False, "consume_from_where": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET}
        consumer: Any = LitePullConsumer(group(), name_server=self._name_server, options=LitePullOptions(**options))
        with consumer:
            queues, wanted = consumer.fetch_message_queues(topic), self._stored(topic)

            def work() -> Answer:
                consumer.assign(queues)
                until, rows = time.monotonic() + PATIENCE, 0
                while rows < wanted and time.monotonic() < until:
                    taken = consumer.poll_arrow(1.0)
                    rows += 0 if taken is None else pa.record_batch(taken).num_rows
                return {"rows": rows, "wanted": wanted}

            return timed(work)

    def push(self, topic: str, batch: str) -> Answer:
        """All messages of a topic to a listener that only counts, from its first call on."""
        lock, over, wanted, seen, first = threading.Lock(), threading.Event(), self._stored(topic), 0, 0.0

        def listen(messages: Any, _context: object) -> ConsumeConcurrentlyStatus:
            nonlocal seen, first
            with lock:
                if not seen:
                    first = time.perf_counter()
                seen += len(messages)
                if seen >= wanted:
                    over.set()
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        cpu = time.process_time()
        with self._push(topic, listen, consume_message_batch_max_size=int(batch)):
            all_came = over.wait(PATIENCE)
            end = time.perf_counter()
            cpu = time.process_time() - cpu
        if not all_came:
            raise RuntimeError(f"the listener saw {seen} of {wanted} messages")
        return {"rows": wanted, "seconds": end - first, "cpu_seconds": cpu}

    def waiting(self, topic: str, seconds: str) -> Answer:
        """Peak memory of this process, in MiB, while a slow listener lags behind."""
        wanted, peak, until = self._stored(topic), 0, time.monotonic() + float(seconds)

        def listen(_messages: object, _context: object) -> ConsumeConcurrentlyStatus:
            time.sleep(LISTENER_SLEEPS)
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        with self._push(topic, listen):
            while time.monotonic() < until:
                peak = max(peak, resident_bytes())
                time.sleep(0.02)
        return {"rows": wanted, "seconds": float(seconds), "value": peak / 2**20}

    def _push(self, topic: str, listen: Callable[..., Any], **options: Any) -> PushConsumer:
        options |= {"consume_from_where": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET}
        consumer = PushConsumer(group(), name_server=self._name_server, **options)
        consumer.subscribe(topic, "*")
        consumer.register_message_listener(listen)
        return consumer

    def _stored(self, topic: str) -> int:
        with PullConsumer(group(), name_server=self._name_server) as puller:
            queues = puller.fetch_subscribe_message_queues(topic)
            return sum(puller.max_offset(queue) - puller.min_offset(queue) for queue in queues)

    def _bounded(self, window: int) -> Producer:
        if window not in self._bounded_ones:
            options = ProducerOptions(retries=0, async_retries=0, max_in_flight=window)
            producer = Producer(f"bench_{window}", name_server=self._name_server, options=options)
            producer.start()
            self._bounded_ones[window] = producer
        return self._bounded_ones[window]

    def _sender(self) -> Producer:
        if self._producer is None:
            raise RuntimeError("connect comes first")
        return self._producer


def at_rate(send_some: Callable[[], None], step: int, count: int, rate: int) -> Answer:
    """Sends so many messages a step, at the times that the rate says; fails where it is not reached."""
    began = time.time()

    def work() -> Answer:
        begin = time.perf_counter()
        for number in range(count // step):
            time.sleep(max(0.0, begin + number * step / rate - time.perf_counter()))
            send_some()
        return {"rows": count // step * step}

    answer = timed(work)
    if answer["rows"] < 0.98 * rate * answer["seconds"]:
        raise RuntimeError(f"expected {rate} messages a second, got {answer['rows'] / answer['seconds']:.0f}")
    return {**answer, "began": began}


def body_of(size: str) -> bytes:
    """Random bytes, the same each time."""
    return random.Random(1).randbytes(int(size))


def group() -> str:
    """A group that nobody had before."""
    return f"bench_{os.getpid()}_{next(Numbers)}"


def together(run: Callable[[], None], threads: int, share: int) -> Answer:
    """The rows of so many threads; what one of them raises is raised."""
    raised: list[BaseException] = []

    def guarded() -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001 - it is raised where the figure is asked for
            raised.append(error)

    running = [threading.Thread(target=guarded) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if raised:
        raise raised[0]
    return {"rows": threads * share}


def sent(results: list[Any], rows: int) -> Answer:
    """The answer of sends that all have results."""
    if bad := [result for result in results if str(result.status) != "SEND_OK"]:
        raise RuntimeError(f"{len(bad)} batches are not stored, the first: {bad[0]}")
    return {"rows": rows}


def resident_bytes() -> int:
    """VmRSS of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def serve_clients() -> None:
    """Answers requests on standard input."""
    clients = Clients()
    names = ("connect", "sync", "batch", "columns", "paced", "stamped", "pull", "push", "waiting")
    serve({"async": clients.asynchronous, **{name: getattr(clients, name) for name in names}})


if __name__ == "__main__":
    serve_clients()
