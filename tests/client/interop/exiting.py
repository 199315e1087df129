"""An interpreter that ends while a push consumer is at work.

python -m tests.client.interop.exiting NAME_SERVER TOPIC GROUP HOW
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from rmqfast._native import MessageView
from rmqfast.client.push import ConsumeConcurrentlyStatus, PushConsumer

WAYS = ("falls off its end", "sys.exit", "forgets it", "while it listens")


def main() -> None:
    name_server, topic, group, how = sys.argv[1:]
    logging.basicConfig(level=logging.ERROR)
    came = threading.Event()

    def listen(_messages: Sequence[MessageView], _context: Any) -> Any:
        came.set()
        time.sleep(5 if how == "while it listens" else 0.001)  # noqa: TID251 - the interpreter ends meanwhile
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = PushConsumer(group, name_server=name_server, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe(topic)
    consumer.register_message_listener(listen)
    consumer.start()
    came.wait(60)
    if how == "sys.exit":
        sys.exit()
    if how == "forgets it":
        del consumer


if __name__ == "__main__":
    main()
