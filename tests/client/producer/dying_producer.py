"""Stores a half message, and dies before anybody is told how its transaction ended.

python -m tests.client.producer.dying_producer NAME_SERVER GROUP TOPIC BODY
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from rmqfast import Message
from rmqfast.client.producer import LocalTransactionState, TransactionProducer


class Dies:
    def execute_local_transaction(self, _message: Message, _argument: Any) -> LocalTransactionState:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    def check_local_transaction(self, _message: Any) -> LocalTransactionState:
        raise AssertionError


def main() -> None:
    name_server, group, topic, body = sys.argv[1:]
    with TransactionProducer(group, Dies(), name_server=name_server) as producer:
        producer.send_in_transaction(Message(topic, body.encode(), keys="dying"))


if __name__ == "__main__":
    main()
