"""Plays through the clients, and notes each log line and each call of the application that comes under a lock of ours.

Each line is sent to a topic, too, as a handler of `logging` may do.
"""

from __future__ import annotations

import json
import linecache
import logging
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import rmqfast.threads

#: Locks under which a listener is called, as that is what they are for; others only try them, or wait for a while.
TURNS = ("consume_lock", "self._turns", "self._rebalancing")

faults: set[str] = set()


class Held(threading.local):
    def __init__(self) -> None:
        self.sites: list[str] = []


held = Held()


class Tracked:
    """A lock that knows where it was made, and who holds it."""

    def __init__(self, lock: Any) -> None:
        self._lock, self._site = lock, made_at()
        self._is_turn = any(turn in self._site for turn in TURNS)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        is_taken = bool(self._lock.acquire(blocking, timeout))
        # for what is only tried nobody waits
        if is_taken and blocking and not self._is_turn:
            held.sites.append(self._site)
        return is_taken

    def release(self) -> None:
        if self._site in held.sites:
            held.sites.remove(self._site)
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lock, name)


def made_at() -> str:
    """The line that made a lock."""
    frame = sys._getframe(3)  # noqa: SLF001 - who called
    while frame.f_code.co_filename.endswith("logs.py") and frame.f_back is not None:
        frame = frame.f_back
    place = f"{frame.f_code.co_filename.rpartition('/rmqfast/')[2]}:{frame.f_lineno}"
    return f"{place} {linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()}"


def tracked(new: Callable[[], Any]) -> Callable[[], Tracked]:
    return lambda: Tracked(new())


for name in ("new_lock", "new_rlock"):
    setattr(rmqfast.threads, name, tracked(getattr(rmqfast.threads, name)))


def check(what: str) -> None:
    """Notes what runs under a lock."""
    faults.update(f"{what}, under {site}" for site in held.sites)


class SendingHandler(logging.Handler):
    """Sends each line to a topic."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.producer: Any = None
        self.sent = 0

    def emit(self, record: logging.LogRecord) -> None:
        check(f"the line {record.msg!r}")
        if self.producer is not None:
            from rmqfast import Message, RmqError

            try:
                self.producer.send(Message("log-lines", record.getMessage().encode()))
            except RmqError:
                return
            self.sent += 1


class CheckedStrategy:
    name = "AVG"

    def allocate(self, group: str, client_id: str, queues: Sequence[Any], client_ids: Sequence[str]) -> list[Any]:
        from rmqfast.client.consumer.strategies import AllocateMessageQueueAveragely

        check("a strategy")
        return AllocateMessageQueueAveragely().allocate(group, client_id, queues, client_ids)


class CheckedSends:
    name = "checked"

    def before(self, context: Any) -> None:
        check("a send hook")

    after = before


class CheckedConsumes:
    name = "checked"

    def before(self, context: Any) -> None:
        check("a consume hook")

    after = before


class Booking:
    def execute_local_transaction(self, message: Any, argument: Any) -> Any:
        return self.check_local_transaction(message)

    def check_local_transaction(self, message: Any) -> Any:
        from rmqfast import LocalTransactionState

        check("a transaction's listener")
        return LocalTransactionState.COMMIT_MESSAGE


def play(handler: SendingHandler) -> None:
    import rmqfast
    from tests.waiting import until

    with rmqfast.EmbeddedCluster(brokers=2) as cluster:
        server = cluster.name_server
        handler.producer = lines = rmqfast.Producer("lines", name_server=server, instance_name="lines")
        lines.start()
        producer = rmqfast.Producer("shop", name_server=server)
        producer.register_send_hook(CheckedSends())
        producer.start()
        with rmqfast.Admin(name_server=server) as admin:
            for topic in ("orders", "in-order", "polled", "pulled"):
                admin.create_topic(topic, queues=4)
                for number in range(8):
                    producer.send(rmqfast.Message(topic, b"%d" % number))
        answers: list[object] = []

        def on_end(end: object) -> None:
            check("a callback")
            answers.append(end)

        producer.send_async(rmqfast.Message("orders", b"x"), on_end)
        with rmqfast.TransactionProducer("bank", Booking(), name_server=server) as bank:
            bank.send_in_transaction(rmqfast.Message("orders", b"paid"))
        until(lambda: answers)
        consume(server)
        with rmqfast.LitePullConsumer("poller", name_server=server) as poller:
            poller.register_topic_message_queue_change_listener("polled", lambda *_: check("a listener of queues"))
            poller.subscribe("polled")
            until(lambda: poller.assignment)
            poller.poll(0.1)
        producer.send(rmqfast.Message("made-late", b"x"))
        cluster.brokers[1].stop()
        producer.send(rmqfast.Message("orders", b"x"))
        producer.shutdown()
        handler.producer = None
        lines.shutdown()


def consume(server: str) -> None:
    """Two members of each group, of which one leaves."""
    import rmqfast
    from tests.waiting import until

    seen: list[str] = []

    def listen(messages: Sequence[Any], context: Any) -> Any:
        check("a listener")
        seen.extend(message.topic for message in messages)
        if messages[0].topic == "in-order":
            return rmqfast.ConsumeOrderlyStatus.SUCCESS
        return rmqfast.ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumers = []
    for topic in ("orders", "in-order"):
        for instance in ("one", "two"):
            consumer = rmqfast.PushConsumer(
                f"{topic}-group",
                name_server=server,
                instance_name=f"{topic}-{instance}",
                consume_from_where=rmqfast.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
                allocate_strategy=CheckedStrategy(),
            )
            consumer.subscribe(topic, "*")
            consumer.register_message_listener(listen, orderly=topic == "in-order")
            consumer.register_consume_hook(CheckedConsumes())
            consumer.start()
            consumers.append(consumer)
        until(partial(has_come, seen, topic))
    for consumer in consumers:
        consumer.shutdown()


def has_come(seen: list[str], topic: str) -> bool:
    return seen.count(topic) >= 8


def main() -> None:
    handler = SendingHandler()
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.DEBUG)
    play(handler)
    sys.stdout.write(json.dumps({"faults": sorted(faults), "sent": handler.sent}))


if __name__ == "__main__":
    main()
