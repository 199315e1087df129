"""The producer of messages that consumers only see after a transaction was committed.

Source: `TransactionMQProducer`, `DefaultMQProducerImpl.sendMessageInTransaction`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

from rmqfast.arguments import Duration, seconds, suggests_names
from rmqfast.client.instance import TracedClientArguments
from rmqfast.client.producer.hooks import EndTransactionHook, transaction_properties
from rmqfast.client.producer.local_transactions import LocalTransactions
from rmqfast.client.producer.options import ProducerOptions
from rmqfast.client.producer.producer import SEND_TIMEOUT, Producer
from rmqfast.client.producer.trace_hooks import EndTransactionTraceHook
from rmqfast.client.producer.transactions import TransactionListener, TransactionSendResult
from rmqfast.errors import ClientError, RmqError
from rmqfast.message import Message
from rmqfast.pickling import not_picklable
from rmqfast.system import monotonic

#: The system flag of a half message.
_PREPARED = 4


@suggests_names
@not_picklable("make one in each process")
class TransactionProducer(Producer):
    """Sends messages that consumers only see after a transaction was committed.

    The message is stored, the listener executes the transaction, and its state is sent to the broker. If the state is
    UNKNOWN or gets lost, the broker asks any producer of the group again some seconds later. The constructor takes a
    listener and the arguments of `Producer`.

    Example:
        >>> import rmqfast
        >>> from rmqfast import LocalTransactionState
        >>> class Bank:
        ...     def execute_local_transaction(self, message, argument):
        ...         return LocalTransactionState.COMMIT_MESSAGE
        ...
        ...     def check_local_transaction(self, message):
        ...         return LocalTransactionState.ROLLBACK_MESSAGE
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     with TransactionProducer("bank", Bank(), name_server=cluster.name_server) as producer:
        ...         producer.send_in_transaction(Message("money", b"1 to B")).local_state.value
        'COMMIT_MESSAGE'
    """

    def __init__(
        self,
        group: str,
        listener: TransactionListener,
        *,
        options: ProducerOptions | None = None,
        **arguments: Unpack[TracedClientArguments],
    ) -> None:
        super().__init__(group, options=options, **arguments)
        self._transactions = LocalTransactions(self.member, listener)
        if self._trace is not None:
            self._transactions.hooks.add(EndTransactionTraceHook(self._trace))
        self.member.answer_with(self._transactions.check_back)

    @property
    def listener(self) -> TransactionListener:
        """The listener that executes and checks transactions."""
        return self._transactions.listener

    @listener.setter
    def listener(self, listener: TransactionListener) -> None:
        self._transactions.listener = listener

    def send_in_transaction(
        self, message: Message, argument: Any = None, timeout: Duration = SEND_TIMEOUT
    ) -> TransactionSendResult:
        """Stores a message, executes the transaction on this thread, and sends the transaction's state to the broker.

        A delay level is ignored, as in Java.

        Args:
            message: The message.
            argument: Passed to the listener.
            timeout: Seconds for the send.

        Raises:
            ClientError: The message was not stored, and the transaction not executed.
        """
        if self.listener is None:
            raise ClientError("tranExecutor is null")
        self.member.check_running()
        # The look-up of the route and the encoding count towards the timeout.
        member, deadline = self.member, monotonic() + seconds("timeout", timeout)
        message = _without_delay(message)
        topic = member.sender.queues_for(message).topic
        half = member.encoder.encode(message, topic, transaction_properties(self.group), _PREPARED)
        try:
            sent = member.sender.send(half, None, max(0.0, deadline - monotonic()), messages=(message,))
        except RmqError as error:
            code = getattr(error, "response_code", getattr(error, "code", -1))
            raise ClientError(
                "the message of the transaction was not sent", response_code=code, next_step=str(error)
            ) from error
        sent = sent._replace(transaction_id=half.unique_id)
        return TransactionSendResult(sent, self._transactions.carry_out(message, argument, sent))

    def register_end_transaction_hook(self, hook: EndTransactionHook) -> None:
        """Registers a hook that is called when a transaction ends."""
        self._transactions.hooks.add(hook)


def _without_delay(message: Message) -> Message:
    if message.delay_level == 0 and "DELAY" not in message.properties:
        return message
    properties = {name: value for name, value in message.properties.items() if name != "DELAY"}
    return replace(message, delay_level=0, properties=properties)
