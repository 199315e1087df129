"""Runs RocketMQ's C++ client on a cluster and prints its actions as JSON lines; runs in its own environment.

client.py NAMESRV     (topics `cpp_NAME` with two queues are there)

The C library has no transactions and no SQL92, so there are no scenarios of these.
"""

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from rocketmq.client import (  # type: ignore[import-not-found]
    Message,
    Producer,
    PullConsumer,
    PushConsumer,
    RecvMessage,
)
from rocketmq.ffi import MessageModel, dll  # type: ignore[import-not-found]

COUNT = 6
SECONDS = 90.0  # queues are divided every ten seconds
PRINTING = threading.Lock()
LARGE = "0123456789" * 20_000
ODD = ("\u4e2d\u6587 \u00e9\U0001f680", "tag-\u00fc", "k \u00e4")
# The library frees nothing that is still called back: what was started stays until the process ends.
STARTED: list[Any] = []
CONSUME_SUCCESS, RECONSUME_LATER = 0, 1


class Stage:
    """A scenario: its topic, its clients, its rows."""

    def __init__(self, name: str, name_server: str) -> None:
        self.name, self.name_server = name, name_server
        self.topic, self.group = f"cpp_{name}", f"g_cpp_{name}"

    def row(self, **values: object) -> None:
        with PRINTING:
            sys.stdout.write(json.dumps({"scenario": self.name, "row": values}) + "\n")
            sys.stdout.flush()

    def producer(self) -> Any:
        """A producer for a topic that is there: its route comes."""
        return Routed(self.plain_producer())

    def plain_producer(self) -> Any:
        producer = Producer(f"p_cpp_{self.name}", timeout=10_000, max_message_size=4_000_000)
        producer.set_namesrv_addr(self.name_server)
        producer.start()
        STARTED.append(producer)
        return producer

    def message(self, body: str, tags: str = "TagA", keys: str = "", level: int = 0, **properties: str) -> Any:
        message = Message(self.topic)
        message.set_body(body)
        message.set_tags(tags)
        message.set_keys(keys or f"key-{body[:8]}")
        for name, value in properties.items():
            message.set_property(name, value)
        if level:
            message.set_delay_time_level(level)
        return message

    def sent(self, how: str, result: Any) -> None:
        self.row(kind="sent", how=how, status=result.status.name, id=bool(result.msg_id), offset=result.offset)

    def consume(
        self,
        want: int,
        expression: str = "*",
        orderly: bool = False,
        fails: Callable[[Any], bool] = lambda _: False,
    ) -> None:
        """Rows of what a push consumer gets, until it has so many."""
        done, lock = threading.Event(), threading.Lock()
        seen: list[tuple[int, str]] = []

        def listen(message: Any) -> int:
            text = message.body.decode()
            failed = fails(message)
            told = {
                "body": text if len(text) < 100 else f"{len(text)} bytes",
                "tags": message.tags.decode(),
                "keys": message.keys.decode(),
                "how": (message["how"] or b"").decode(),
                "reconsumeTimes": message.reconsume_times,
                "fails": failed,
            }
            with lock:
                seen.append((message.queue_id, text))
                if orderly:
                    told["place"] = [one for queue, one in seen if queue == message.queue_id].index(text)
                self.row(kind="received", **told)
                if len(seen) >= want:
                    done.set()
            return RECONSUME_LATER if failed else CONSUME_SUCCESS

        consumer = PushConsumer(self.group, orderly=orderly)
        consumer.set_namesrv_addr(self.name_server)
        consumer.set_instance_name(f"c_{self.name}")
        consumer.set_message_batch_max_size(1)
        subscribe(consumer, self.topic, listen, expression)
        consumer.start()
        STARTED.append(consumer)
        if not done.wait(SECONDS):
            self.row(failed=f"{len(seen)} of {want} messages came within {SECONDS:.0f} s")


class Routed:
    """A producer that asks for a route until it has one.

    The library asks twice, then refuses the send. On a busy machine both questions can fail: each waits at most three
    seconds for the lock of the connections, which another thread of the library holds.
    """

    def __init__(self, producer: Any) -> None:
        self._producer = producer

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(self._send, getattr(self._producer, name))

    def _send(self, send: Callable[..., Any], *arguments: Any) -> Any:
        end = time.monotonic() + SECONDS
        while True:
            try:
                return send(*arguments)
            except Exception as error:
                if "No route info" not in str(error) or time.monotonic() > end:
                    raise
                time.sleep(0.1)  # noqa: TID251 - the library has no event for a route; a refused connection fails at once


def subscribe(consumer: Any, topic: str, listen: Callable[[Any], int], expression: str) -> None:
    """Like the wrapper's method, but errors of the listener are not lost: ctypes turns them into a success."""
    dll.Subscribe(consumer._handle, topic.encode(), expression.encode())  # noqa: SLF001 - the wrapper has no other way
    consumer._register_callback(  # noqa: SLF001 - as above
        lambda _, message: listen(RecvMessage(message))
    )


def push(stage: Stage) -> None:
    producer = stage.producer()
    for number in range(COUNT):
        stage.sent("sync", producer.send_sync(stage.message(f"m{number}", tags=f"t{number % 2}", how="sync")))
    stage.consume(COUNT)


def tags(stage: Stage) -> None:
    producer = stage.producer()
    for number in range(COUNT):
        producer.send_sync(stage.message(f"m{number}", tags=f"t{number % 3}"))
    stage.consume(4, "t0 || t2")


def orderly(stage: Stage) -> None:
    producer = stage.producer()
    for number in range(COUNT):
        stage.sent("orderly", producer.send_orderly(stage.message(f"m{number}"), number % 2))
    stage.consume(COUNT, orderly=True)


def delay(stage: Stage) -> None:
    producer = stage.producer()
    for level in (2, 1):
        result = producer.send_sync(stage.message(f"level {level}", level=level))
        stage.row(kind="sent", how="delayed", status=result.status.name)
    stage.consume(2)


def oneway(stage: Stage) -> None:
    producer = stage.producer()
    for number in range(COUNT):
        producer.send_oneway(stage.message(f"m{number}"))
        producer.send_oneway_orderly(stage.message(f"o{number}"), number)
    stage.consume(2 * COUNT)


def asynchronous(stage: Stage) -> None:
    producer, left, lock, done = stage.producer(), [COUNT], threading.Lock(), threading.Event()

    def told(status: str) -> None:
        stage.row(kind="sent", how="async", status=status)
        with lock:
            left[0] -= 1
            if not left[0]:
                done.set()

    for number in range(COUNT):
        producer.send_async(
            stage.message(f"m{number}"), lambda result: told(result.status.name), lambda error: told(str(error))
        )
    if not done.wait(SECONDS):
        stage.row(failed=f"{left[0]} of {COUNT} sends were not answered within {SECONDS:.0f} s")
    stage.consume(COUNT)


def batch(stage: Stage) -> None:
    """This release sends a batch as one message without body and properties, whatever the broker is."""
    stage.sent("batch", stage.producer().send_batch([stage.message(f"m{number}", tags="b") for number in range(COUNT)]))
    stage.consume(1)


def retry(stage: Stage) -> None:
    """It fails once, and comes again; of several, the client may give back those beside it, too."""
    stage.sent("sync", stage.producer().send_sync(stage.message("m0")))
    stage.consume(2, fails=lambda message: not message.reconsume_times)


def broadcast(stage: Stage) -> None:
    """A first broadcast consumer begins at the end: sends messages until one arrives."""
    producer, came = stage.producer(), threading.Event()
    consumer = PushConsumer(stage.group, message_model=MessageModel.BROADCASTING)
    consumer.set_namesrv_addr(stage.name_server)
    consumer.set_instance_name("c_broadcast")

    def listen(_: Any) -> int:
        came.set()
        return CONSUME_SUCCESS

    subscribe(consumer, stage.topic, listen, "*")
    consumer.start()
    STARTED.append(consumer)
    for _ in range(int(SECONDS * 10)):
        producer.send_sync(stage.message("again"))
        if came.wait(0.1):
            break
    stage.row(**({"kind": "received"} if came.is_set() else {"failed": f"nothing came within {SECONDS:.0f} s"}))


def pull(stage: Stage) -> None:
    producer = stage.producer()
    for number in range(COUNT):
        producer.send_sync(stage.message(f"m{number}"))
    consumer = PullConsumer(stage.group)
    consumer.set_namesrv_addr(stage.name_server)
    consumer.start()
    STARTED.append(consumer)
    pulled, end = 0, time.monotonic() + SECONDS  # a broker lists what it stored a moment later
    while pulled < COUNT and time.monotonic() < end:
        for message in consumer.pull(stage.topic):
            stage.row(kind="pulled", body=message.body.decode(), tags=message.tags.decode())
            pulled += 1


def odd(stage: Stage) -> None:
    """A large body, which is compressed, and characters beyond ASCII."""
    producer = stage.producer()
    stage.sent("large", producer.send_sync(stage.message(LARGE, keys="large")))
    body, tag, keys = ODD
    stage.sent("odd", producer.send_sync(stage.message(body, tags=tag, keys=keys, how=body)))
    stage.consume(2)


def errors(stage: Stage) -> None:
    """A topic whose name is not allowed, so that no route comes, and a body that is too large."""
    producer = stage.plain_producer()
    for topic, body in (("cpp topic", "a blank"), ("cpp_errors", "x" * 5_000_000)):
        message = Message(topic)
        message.set_body(body)
        try:
            producer.send_sync(message)
            stage.row(kind="sent", topic=topic)
        except Exception as error:  # noqa: BLE001 - whatever the library raises is a row
            stage.row(kind="refused", topic=topic, error=type(error).__name__)


SCENARIOS = (push, tags, orderly, delay, oneway, asynchronous, batch, retry, broadcast, pull, odd, errors)


def play(scenario: Callable[[Stage], None], name_server: str) -> None:
    stage = Stage(scenario.__name__, name_server)
    try:
        scenario(stage)
    except Exception as error:  # noqa: BLE001 - an exception of a scenario is a row of it
        traceback.print_exc()
        stage.row(failed=f"{type(error).__name__}: {error}")


def main() -> None:
    if sys.argv[1:] == ["--list"]:
        sys.stdout.write(json.dumps([scenario.__name__ for scenario in SCENARIOS]) + "\n")
        return
    # Producers share one client: while one opens the connection to the name server, the others find its lock taken, and
    # say there is no route (`GetTransport ... get timed_mutex timeout` in the client's log). So one opens it first.
    opening = Stage("opening", sys.argv[1])
    opening.producer().send_sync(opening.message("first"))
    # each client has a dozen threads, and gives up on a route after three seconds
    with ThreadPoolExecutor(4) as pool:
        for one in SCENARIOS:
            pool.submit(play, one, sys.argv[1])


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # the library's threads still run, and its destructors wait for them
