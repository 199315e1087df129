"""Two consumers in a process of their own, one of them in order; each message is noted in a file before and after.

python -m tests.client.interop.member NAME_SERVER TOPIC FILE INSTANCE     (ends as one should when its input does)
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from rmqfast._native import MessageView
from rmqfast.client.instance import ClientConfig
from rmqfast.client.push import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus, PushConsumer

#: The groups, and what their listeners answer.
GROUPS = {"any_order": ConsumeConcurrentlyStatus.CONSUME_SUCCESS, "in_order": ConsumeOrderlyStatus.SUCCESS}


def group_of(name: str, topic: str) -> str:
    """The group that has one of these names where it consumes a topic: all members of a group want the same."""
    return f"{name}-{topic}"


def listener(file: int, group: str) -> Callable[[Sequence[MessageView], Any], Any]:
    """Notes a message when it comes and when it is done; a file takes either line as a whole, whoever is killed."""

    def note(what: str, message: MessageView) -> None:
        line = f"{group} {what} {message.queue_id} {message.queue_offset} {time.monotonic_ns()}\n"
        os.write(file, line.encode())

    def listen(messages: Sequence[MessageView], _context: Any) -> Any:
        note("begin", messages[0])
        time.sleep(0.001)  # noqa: TID251 - the work: who is killed in it has begun and not ended
        note("end", messages[0])
        return GROUPS[group]

    return listen


def main() -> None:
    name_server, topic, path, instance = sys.argv[1:]
    logging.basicConfig(level=logging.ERROR)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    config = ClientConfig(name_server=name_server, instance_name=instance, rebalance_interval=5)
    consumers = []
    for group in GROUPS:
        consumer = PushConsumer(
            group_of(group, topic),
            config=config,
            consume_from_where="CONSUME_FROM_FIRST_OFFSET",
            consume_thread_min=8,
            await_termination_millis_when_shutdown=5000,
        )
        consumer.subscribe(topic)
        consumer.register_message_listener(listener(file, group), orderly=group == "in_order")
        consumer.start()
        consumers.append(consumer)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
    for consumer in consumers:
        consumer.shutdown()


if __name__ == "__main__":
    main()
