"""A member of three groups in a process of its own; each message is noted in a file before and after its work.

python -m tests.jepsen.member NAME_SERVER BROKER FILE INSTANCE SEED     (leaves as one should when its input ends)
"""

from __future__ import annotations

import logging
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rmqfast import LitePullConsumer
from rmqfast._native import MessageView
from rmqfast.client.consumer import ConsumeFromWhere
from rmqfast.client.instance import ClientConfig
from rmqfast.client.lite_pull import LitePullOptions
from rmqfast.client.push import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus, PushConsumer

from .history import BEGIN, CONCURRENT, END, LITE, ORDERLY, RETRY, TOPIC

#: How many messages a listener hands back, of a hundred.
_HANDED_BACK = 2


class NoteFile:
    """Lines of what a member does; a file takes a line as a whole, whoever is killed."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, group: str, what: str, message: MessageView) -> None:
        """Adds a line about a message."""
        body = (message.body or b"").decode()
        line = f"{group} {what} {message.queue_id} {message.queue_offset} {body} {time.monotonic_ns()}\n"
        os.write(self._file, line.encode())


class Listener:
    """Works on each message for a moment, and hands some of them back."""

    def __init__(self, notes: NoteFile, group: str, success: Any, again: Any, seed: str) -> None:
        self._notes, self._group, self._success, self._again = notes, group, success, again
        self._chance = random.Random(seed)

    def __call__(self, messages: Sequence[MessageView], _context: Any) -> Any:
        for message in messages:
            self._notes.write(self._group, BEGIN, message)
            time.sleep(0.0005)  # noqa: TID251 - the work: who is killed in it has begun and not ended
            if self._chance.randrange(100) < _HANDED_BACK and len(messages) == 1:
                self._notes.write(self._group, RETRY, message)
                return self._again
            self._notes.write(self._group, END, message)
        return self._success


def poll(consumer: LitePullConsumer, notes: NoteFile, is_leaving: Callable[[], bool]) -> None:
    """Takes messages until the member leaves; they count as processed before the next poll commits them."""
    while not is_leaving():
        for message in consumer.poll(timeout=0.2):
            notes.write(LITE, BEGIN, message)
            notes.write(LITE, END, message)


def main() -> None:
    name_server, broker, path, instance, seed = sys.argv[1:]
    logging.basicConfig(level=logging.ERROR)
    notes, leaving = NoteFile(Path(path)), threading.Event()
    config = ClientConfig(
        name_server=name_server, instance_name=instance, rebalance_interval=2, translate_address=lambda _: broker
    )
    any_order = Listener(
        notes,
        CONCURRENT,
        ConsumeConcurrentlyStatus.CONSUME_SUCCESS,
        ConsumeConcurrentlyStatus.RECONSUME_LATER,
        f"{seed}-{instance}-any",
    )
    in_order = Listener(
        notes,
        ORDERLY,
        ConsumeOrderlyStatus.SUCCESS,
        ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT,
        f"{seed}-{instance}-in",
    )
    consumers: list[Any] = []
    for group, listener in ((CONCURRENT, any_order), (ORDERLY, in_order)):
        consumer = PushConsumer(
            group,
            config=config,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            consume_thread_min=4,
            await_termination_millis_when_shutdown=10_000,
        )
        consumer.subscribe(TOPIC)
        consumer.register_message_listener(listener, orderly=group == ORDERLY)
        consumers.append(consumer)
    options = LitePullOptions(consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    lite = LitePullConsumer(LITE, config=config, options=options)
    lite.subscribe(TOPIC)
    consumers.append(lite)
    for consumer in consumers:
        consumer.start()
    polling = threading.Thread(target=poll, args=(lite, notes, leaving.is_set))
    polling.start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
    leaving.set()
    polling.join()
    lite.commit(persist=True)
    for consumer in consumers:
        consumer.shutdown()


if __name__ == "__main__":
    main()
