"""Clients in a process that gevent or eventlet patched: python -m tests.client.green_program LIBRARY NAME_SERVER WHEN

Greenlets send at the same time, wait for futures and consume; a handler of `logging` lets others run at each line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

LIBRARY, NAME_SERVER, WHEN = sys.argv[1:]
GREENLETS = 8


def patch() -> None:
    if LIBRARY == "gevent":
        import gevent.monkey

        gevent.monkey.patch_all()
    else:
        import eventlet

        eventlet.monkey_patch()


def rest() -> None:
    """Lets other greenlets run."""
    if LIBRARY == "gevent":
        import gevent

        gevent.sleep(0)
    else:
        import eventlet

        eventlet.sleep(0)


def all_of(work: Callable[[int], object]) -> list[Any]:
    """What so many greenlets give."""
    if LIBRARY == "gevent":
        import gevent

        greenlets = [gevent.spawn(work, number) for number in range(GREENLETS)]
        return [greenlet.get() for greenlet in gevent.joinall(greenlets, raise_error=True)]
    import eventlet

    threads = [eventlet.spawn(work, number) for number in range(GREENLETS)]
    return [thread.wait() for thread in threads]


if WHEN == "before":
    patch()

import logging  # noqa: E402 - once it is patched
import threading  # noqa: E402

import rmqfast  # noqa: E402

if WHEN == "after":
    patch()

from rmqfast import Message  # noqa: E402
from tests.waiting import until  # noqa: E402


class RestingHandler(logging.Handler):
    """Lets other greenlets of the thread run in the middle of a line."""

    def emit(self, record: logging.LogRecord) -> None:
        if threading.current_thread() is threading.main_thread():
            rest()


def main() -> None:
    logging.getLogger("rmqfast").addHandler(RestingHandler(logging.DEBUG))
    logging.getLogger("rmqfast").setLevel(logging.DEBUG)
    seen: list[bytes] = []

    def listen(messages: Sequence[Any], _context: Any) -> Any:
        seen.extend(message.body for message in messages)
        return rmqfast.ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    def own_client(number: int) -> str:
        with rmqfast.Producer(f"own-{number}", name_server=NAME_SERVER, instance_name=f"own-{number}") as own:
            return str(own.send(Message("green", b"own")).status)

    admin = rmqfast.Admin(name_server=NAME_SERVER)
    with rmqfast.Producer("green", name_server=NAME_SERVER) as producer, admin:
        sent = all_of(lambda _: str(producer.send(Message("green", b"sent")).status))
        futures = [producer.send_async(Message("green", b"async")) for _ in range(GREENLETS)]
        ended = all_of(lambda number: str(futures[number].result(60).status))
        own = all_of(own_client)
        queues = len(admin.topics.status("green"))
        consumer = rmqfast.PushConsumer(
            "greens",
            name_server=NAME_SERVER,
            consume_from_where=rmqfast.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )
        consumer.subscribe("green")
        consumer.register_message_listener(listen)
        with consumer:
            until(lambda: len(seen) == 3 * GREENLETS)
        with rmqfast.LitePullConsumer("poller", name_server=NAME_SERVER) as poller:
            poller.subscribe("green")
            until(lambda: poller.assignment)
            polled = len(poller.poll(0.1))
    told = {"sent": sent, "async": ended, "own": own, "seen": sorted(body.decode() for body in seen)}
    sys.stdout.write(json.dumps({**told, "queues": queues, "polled": polled}))


main()
