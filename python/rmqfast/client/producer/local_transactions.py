"""Local transactions of a producer: calls its listener, and reports to brokers how they ended.

Source: `DefaultMQProducerImpl.sendMessageInTransaction`, `checkTransactionState`, `endTransaction`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from rmqfast._native import parse_message_id
from rmqfast.client.instance.namespaces import unwrap, wrap
from rmqfast.client.producer.hooks import EndTransactionContext, EndTransactionHook, Hooks
from rmqfast.client.producer.member import ProducerMember
from rmqfast.client.producer.send_result import SendResult, SendStatus
from rmqfast.client.producer.transactions import LocalTransactionState, TransactionListener
from rmqfast.errors import RmqError
from rmqfast.logs import logger_of
from rmqfast.message import Message
from rmqfast.remoting import Header

_log = logger_of(__name__)

_UNIQUE_ID = "UNIQ_KEY"


class LocalTransactions:
    """Executes and checks the local transactions of a producer.

    Attributes:
        listener: Executes and checks transactions.
        hooks: Called at the end of each transaction.
    """

    def __init__(self, member: ProducerMember, listener: TransactionListener) -> None:
        self._member = member
        self.listener: TransactionListener = listener
        self.hooks: Final[Hooks[EndTransactionHook]] = Hooks("endTransaction")

    def carry_out(self, message: Message, argument: Any, sent: SendResult) -> LocalTransactionState:
        """Calls the listener to execute a transaction. Sends the resulting state to the broker and returns it."""
        state, remark = self._execute(message, argument, sent)
        self._end_own(message, sent, state, remark)
        return state

    def check_back(self, address: str, message: Any, ext_fields: Mapping[str, str]) -> None:
        """Asks the listener for the state of a transaction. Sends the state to the broker that asked for it."""
        header = Header(ext_fields)
        remark, namespace = None, self._member.config.namespace
        if namespace:
            message = message.seen_as(topic=unwrap(namespace, message.topic))
        try:
            state = _state(self.listener.check_local_transaction(message))
        except Exception as error:  # noqa: BLE001 - as in Java: the broker hears of it, and asks again
            _log.exception("broker %s asked for a transaction, the listener failed", address)
            state, remark = LocalTransactionState.UNKNOWN, f"checkLocalTransactionState Exception: {error!r}"
        unique_id = message.properties.get(_UNIQUE_ID)
        self._tell_hooks(message, address, unique_id or message.msg_id, unique_id, state, is_from_check=True)
        self._tell(
            address,
            state,
            queue_offset=header.number("tranStateTableOffset"),
            physical_offset=header.number("commitLogOffset"),
            message_id=unique_id or message.msg_id,
            transaction_id=header.optional_text("transactionId"),
            remark=remark,
            from_check=True,
        )

    def _execute(self, message: Message, argument: Any, sent: SendResult) -> tuple[LocalTransactionState, str | None]:
        # as in Java, a transaction is not executed if its message is not stored as durably as requested
        if sent.status is not SendStatus.SEND_OK:
            return LocalTransactionState.ROLLBACK_MESSAGE, None
        shown = replace(message, properties={**message.properties, _UNIQUE_ID: sent.msg_id})
        try:
            return _state(self.listener.execute_local_transaction(shown, argument)), None
        except Exception as error:  # noqa: BLE001 - the broker asks again
            _log.warning("executeLocalTransactionBranch exception, message %s", sent.msg_id, exc_info=True)
            return LocalTransactionState.UNKNOWN, f"executeLocalTransactionBranch exception: {error!r}"

    def _end_own(self, message: Message, sent: SendResult, state: LocalTransactionState, remark: str | None) -> None:
        """Sends the state to the broker. A failure is only logged, since the broker will ask for the state."""
        try:
            topic = wrap(self._member.config.namespace, message.topic)
            address = self._member.sender.address_of(topic, sent.queue.broker_name)
            carried_out = sent.transaction_id if sent.status is SendStatus.SEND_OK else None
            self._tell_hooks(message, address, sent.msg_id, carried_out, state, is_from_check=False)
            self._tell(
                address,
                state,
                queue_offset=sent.queue_offset,
                physical_offset=_physical_offset(sent.offset_msg_id),
                message_id=sent.msg_id,
                remark=remark,
            )
        except (RmqError, ValueError):
            _log.warning("local transaction execute %s, but end broker transaction failed", state, exc_info=True)

    def _tell_hooks(
        self,
        message: Any,
        address: str,
        message_id: str,
        transaction_id: str | None,
        state: LocalTransactionState,
        *,
        is_from_check: bool,
    ) -> None:
        if self.hooks.are_there:
            context = EndTransactionContext(
                self._member.group, message, address, message_id, transaction_id, state, is_from_check
            )
            self.hooks.tell(lambda hook: hook.end_transaction(context))

    def _tell(
        self,
        address: str,
        state: LocalTransactionState,
        *,
        queue_offset: int,
        physical_offset: int,
        message_id: str,
        transaction_id: str | None = None,
        remark: str | None = None,
        from_check: bool = False,
    ) -> None:
        if remark is not None:
            _log.info("transaction %s: %s", message_id, remark)
        self._member.instance.api.end_transaction(
            address,
            self._member.group,
            queue_offset=queue_offset,
            physical_offset=physical_offset,
            end=state.end,
            message_id=message_id,
            transaction_id=transaction_id,
            from_check=from_check,
        )


def _physical_offset(offset_msg_id: str) -> int:
    """Returns the offset of the half message in the broker's log. Raises `ValueError` for a malformed id."""
    parsed = parse_message_id(offset_msg_id)
    if parsed is None:
        raise ValueError(f"no message id of a broker: {offset_msg_id!r}")
    return parsed[2]


def _state(returned: object) -> LocalTransactionState:
    if isinstance(returned, LocalTransactionState):
        return returned
    if returned is not None:
        _log.warning("expected a LocalTransactionState of the listener, got %r: it counts as UNKNOWN", returned)
    return LocalTransactionState.UNKNOWN
