"""What an application says of its transactions.

Source: `TransactionListener`, `LocalTransactionState`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from rmqfast.client.producer.send_result import SendResult
from rmqfast.message import Message


class LocalTransactionState(StrEnum):
    """How a transaction ended.

    Source: `LocalTransactionState`.
    """

    COMMIT_MESSAGE = "COMMIT_MESSAGE"
    ROLLBACK_MESSAGE = "ROLLBACK_MESSAGE"
    UNKNOWN = "UNKNOW"

    @property
    def end(self) -> int:
        """The bits of the system flag that say so."""
        return _ENDS[self]


_ENDS = {
    LocalTransactionState.COMMIT_MESSAGE: 8,
    LocalTransactionState.ROLLBACK_MESSAGE: 12,
    LocalTransactionState.UNKNOWN: 0,
}


class TransactionListener(Protocol):
    """Carries a transaction out, and says later what became of it.

    What is returned is a `LocalTransactionState`; anything else, or an error, is UNKNOWN: the broker asks again.

    Source: `TransactionListener`.
    """

    def execute_local_transaction(self, message: Message, argument: Any) -> LocalTransactionState | None:
        """Carries the transaction out; the message is stored, and nobody sees it yet.

        Args:
            message: As it was given to `send_in_transaction`, with `UNIQ_KEY` among its properties.
            argument: The second argument of `send_in_transaction`.
        """

    def check_local_transaction(self, message: Any) -> LocalTransactionState | None:
        """Says what became of a transaction, of this producer or another one of the group.

        It is called on a thread of its own.

        Args:
            message: As the broker has it: a `MessageExt`, its `transaction_id` is the id that the producer gave.
        """


class TransactionSendResult(NamedTuple):
    """How a send in a transaction ended.

    Attributes:
        send_result: How the send ended; its `transaction_id` is the id that the producer gave.
        local_state: How the transaction ended.

    Source: `TransactionSendResult`.
    """

    send_result: SendResult
    local_state: LocalTransactionState
