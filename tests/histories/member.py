"""A member of a group in a process of its own, which notes each message before and after its work.

A process, as it can be killed like one that crashes.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from rmqfast import LitePullConsumer, MessageSelector, PullConsumer, PushConsumer
from rmqfast.client.consumer import ConsumeFromWhere
from rmqfast.client.instance import ClientConfig
from rmqfast.client.lite_pull import LitePullOptions
from rmqfast.client.pull import PullOptions
from rmqfast.client.push import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus, PushOptions, PushTimings

PUSH, ORDERLY, LITE, PULL, BROADCAST = KINDS = ("push", "orderly", "lite", "pull", "broadcast")
#: A member begins with a message, is done with it, or fails.
BEGIN, END, FAIL = "begin", "end", "fail"
#: Times that a message is delivered before it is a dead letter.
ATTEMPTS = 2
_FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
_PAUSE = 0.05


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A member: its group, and what it wants.

    Attributes:
        kind: One of `KINDS`.
        expression: Tags, or an SQL92 expression behind `sql:`.
        clock_shift: Seconds that the member's clock is wrong by.
        reset_pause: Seconds for which it gives up its queues when it is told of a reset.
        notes: File of its notes.
    """

    name_server: str
    group: str
    kind: str
    topic: str
    expression: str
    instance: str
    notes: Path
    is_traced: bool = False
    clock_shift: float = 0.0
    reset_pause: float = 0.5


@dataclass(frozen=True)
class Body:
    """The body of a message says what its listener does: fail how often, and take how long."""

    number: int
    failures: int = 0
    seconds: float = 0.0

    def encode(self) -> bytes:
        return f"{self.number} {self.failures} {self.seconds}".encode()

    @classmethod
    def decode(cls, body: bytes) -> Body:
        number, failures, seconds = body.decode().split()
        return cls(int(number), int(failures), float(seconds))


def selector(expression: str) -> str | MessageSelector:
    """Returns an expression of a spec in the form that consumers take."""
    kind, _, text = expression.partition("sql:")
    return MessageSelector.by_sql(text) if text else kind


class Notes:
    """Lines of what a member does. A file takes a line as a whole, even of a process that is killed."""

    def __init__(self, spec: Spec) -> None:
        self._file = os.open(spec.notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._who = f"{spec.group} {spec.instance}"
        self._is_puller = spec.kind in {LITE, PULL}

    def work(self, message: Any) -> bool:
        """Does the work of a message. Returns whether it succeeded."""
        body = Body.decode(message.body)
        self._write(BEGIN, body)
        time.sleep(body.seconds)  # noqa: TID251 - the work: a member that is killed in it has begun and not ended
        # A puller has nobody to tell that it failed.
        is_done = self._is_puller or message.reconsume_times >= body.failures
        self._write(END if is_done else FAIL, body)
        return is_done

    def _write(self, what: str, body: Body) -> None:
        os.write(self._file, f"{self._who} {what} {body.number}\n".encode())


class Member:
    """One consumer, and what it is told over a connection: `("subscribe", expression)` or `("leave",)`."""

    def __init__(self, spec: Spec, orders: Connection) -> None:
        self._spec, self._orders, self._notes = spec, orders, Notes(spec)
        self._expression = spec.expression
        self._config = ClientConfig(
            name_server=spec.name_server,
            instance_name=spec.instance,
            client_ip="10.0.0.1",
            persist_offset_interval=0.2,
            rebalance_interval=1,
            heartbeat_interval=1,
            local_offset_dir=spec.notes.parent / "offsets" / spec.instance,
        )

    def run(self) -> None:
        """Consumes until it is told to leave."""
        consumer: Any = {LITE: self._lite, PULL: self._pull}.get(self._spec.kind, self._push)()
        consumer.start()
        self._orders.send("ready")
        while self._obey(consumer):
            if self._spec.kind == LITE:
                for message in consumer.poll(timeout=_PAUSE):
                    self._notes.work(message)
            elif self._spec.kind == PULL:
                self._pull_once(consumer)
        if self._spec.kind == LITE:
            consumer.commit(persist=True)
        consumer.shutdown()
        self._orders.send("left")

    def _obey(self, consumer: Any) -> bool:
        if not self._orders.poll(_PAUSE):
            return True
        order = self._orders.recv()
        if order[0] == "subscribe":
            self._expression = order[1]
            if self._spec.kind != PULL:
                consumer.subscribe(self._spec.topic, selector(self._expression))
            self._orders.send("subscribed")
        return bool(order[0] != "leave")

    def _push(self) -> PushConsumer:
        spec = self._spec
        consumer = PushConsumer(
            spec.group,
            config=self._config,
            enable_msg_trace=spec.is_traced,
            timings=PushTimings(
                lock_interval=1, first_lock=0.1, lock_retry=0.3, unlock_delay=1, reset=spec.reset_pause
            ),
            options=PushOptions(
                message_model="BROADCASTING" if spec.kind == BROADCAST else "CLUSTERING",
                consume_from_where=_FIRST,
                consume_thread_min=4,
                pull_suspend_millis=300,
                max_reconsume_times=ATTEMPTS,
                suspend_current_queue_time_millis=100,
                await_termination_millis_when_shutdown=5000,
            ),
        )
        consumer.subscribe(spec.topic, selector(spec.expression))
        listen = self._listen_orderly if spec.kind == ORDERLY else self._listen
        consumer.register_message_listener(listen, orderly=spec.kind == ORDERLY)
        return consumer

    def _listen(self, messages: Sequence[Any], _context: Any) -> ConsumeConcurrentlyStatus:
        is_done = all(list(map(self._notes.work, messages)))
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS if is_done else ConsumeConcurrentlyStatus.RECONSUME_LATER

    def _listen_orderly(self, messages: Sequence[Any], _context: Any) -> ConsumeOrderlyStatus:
        is_done = all(list(map(self._notes.work, messages)))
        return ConsumeOrderlyStatus.SUCCESS if is_done else ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT

    def _lite(self) -> LitePullConsumer:
        spec = self._spec
        options = LitePullOptions(consume_from_where=_FIRST, auto_commit_interval=1)
        consumer = LitePullConsumer(spec.group, config=self._config, options=options, enable_msg_trace=spec.is_traced)
        consumer.subscribe(spec.topic, selector(spec.expression))
        return consumer

    def _pull(self) -> PullConsumer:
        consumer = PullConsumer(self._spec.group, config=self._config, options=PullOptions())
        consumer.register_topics = [self._spec.topic]
        return consumer

    def _pull_once(self, consumer: PullConsumer) -> None:
        for queue in consumer.fetch_message_queues_in_balance(self._spec.topic):
            offset = max(0, consumer.fetch_consume_offset(queue, False))
            pulled = consumer.pull(queue, selector(self._expression), offset, 32)
            for message in pulled.messages:
                self._notes.work(message)
            consumer.update_consume_offset(queue, pulled.next_begin_offset)


def run(spec: Spec, orders: Connection) -> None:
    """Runs a member: the target of a process."""
    logging.basicConfig(level=logging.CRITICAL)
    if spec.clock_shift:
        import time_machine

        with time_machine.travel(timedelta(seconds=spec.clock_shift)):
            Member(spec, orders).run()
    else:
        Member(spec, orders).run()
