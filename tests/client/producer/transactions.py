"""Transactions of tests: brokers that soon ask for them, messages that are not asked for, and who carries them out."""

from __future__ import annotations

from typing import Any

from rmqfast import Message
from rmqfast.client.producer import LocalTransactionState

#: A broker that soon asks what became of a transaction, and never gives up, however slow the answers are.
ASKS_SOON = {"transactionTimeOut": "50", "transactionCheckInterval": "50", "transactionCheckMax": "1000000"}
#: Of a message of which the broker asks nobody while a test runs, however slow that is.
UNASKED = {"CHECK_IMMUNITY_TIME_IN_SECONDS": "3600"}


class Bank:
    """Says of a transaction what its argument says, and commits it without one, or when it is asked."""

    def execute_local_transaction(self, _message: Message, argument: Any) -> LocalTransactionState:
        return argument or LocalTransactionState.COMMIT_MESSAGE

    def check_local_transaction(self, _message: Any) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE
