"""Sends messages that nobody sees before a transaction has ended well.

Source: `TransactionMQProducer`, `DefaultMQProducerImpl.sendMessageInTransaction`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rmqfast.arguments import Duration, seconds, suggests_names
from rmqfast.client.instance import ClientConfig
from rmqfast.client.instance.config import DEFAULT_INSTANCE_NAME
from rmqfast.client.instance.namespaces import unwrap, wrap
from rmqfast.client.producer.hooks import EndTransactionContext, EndTransactionHook, Hooks, transaction_properties
from rmqfast.client.producer.options import ProducerOptions
from rmqfast.client.producer.producer import SEND_TIMEOUT, Producer
from rmqfast.client.producer.send import SendResult, SendStatus
from rmqfast.client.producer.trace_hooks import EndTransactionTraceHook
from rmqfast.client.producer.transactions import LocalTransactionState, TransactionListener, TransactionSendResult
from rmqfast.errors import ClientError, RmqError
from rmqfast.logs import logger_of
from rmqfast.message import Message
from rmqfast.pickling import not_picklable
from rmqfast.remoting import Header

_log = logger_of(__name__)

#: The bits of a half message's system flag.
_PREPARED = 4
_UNIQUE_ID = "UNIQ_KEY"


@suggests_names
@not_picklable("make one in each process")
class TransactionProducer(Producer):
    """Sends messages that consumers see once a transaction was committed.

    A message is stored, the listener carries the transaction out, the broker is told how it ended. Where that does not
    arrive, or was UNKNOWN, the broker asks again, some seconds later, any producer of the group. It is made as a
    `Producer` is, and with a listener; traces tell how transactions end, too.

    Example:
        >>> import rmqfast
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

    Source: `TransactionMQProducer`.
    """

    def __init__(
        self,
        group: str,
        listener: TransactionListener,
        *,
        name_server: str | Sequence[str] | None = None,
        instance_name: str = DEFAULT_INSTANCE_NAME,
        namespace: str = "",
        config: ClientConfig | None = None,
        options: ProducerOptions | None = None,
        enable_msg_trace: bool = False,
        customized_trace_topic: str | None = None,
    ) -> None:
        super().__init__(
            group,
            name_server=name_server,
            instance_name=instance_name,
            namespace=namespace,
            config=config,
            options=options,
            enable_msg_trace=enable_msg_trace,
            customized_trace_topic=customized_trace_topic,
        )
        self.listener = listener
        self._end_hooks: Hooks[EndTransactionHook] = Hooks("endTransaction")
        if self._trace is not None:
            self._end_hooks.add(EndTransactionTraceHook(self._trace))
        self.member.answer_with(self._check_back)

    def send_in_transaction(
        self, message: Message, argument: Any = None, timeout: Duration = SEND_TIMEOUT
    ) -> TransactionSendResult:
        """Stores a message, carries the transaction out on this thread, and tells the broker how it ended.

        A delay level is left out, as in Java.

        Args:
            message: What to send.
            argument: Is given to the listener.
            timeout: For the send, in seconds.

        Raises:
            ClientError: The message could not be stored: the transaction was not carried out.

        Source: `DefaultMQProducerImpl.sendMessageInTransaction`.
        """
        if self.listener is None:
            raise ClientError("tranExecutor is null")
        self.member.check_running()
        sender = self.member.sender
        message = _without_delay(message)
        send = sender.begun(message, None, seconds("timeout", timeout), None, None)
        topic = send.queues.topic
        half = send.message = sender.encoder.encode(message, topic, transaction_properties(self.group), _PREPARED)
        try:
            sent = sender.wait(send)
        except RmqError as error:
            code = getattr(error, "response_code", getattr(error, "code", -1))
            raise ClientError(
                "the message of the transaction was not sent", response_code=code, next_step=str(error)
            ) from error
        sent = sent._replace(transaction_id=half.unique_id)
        state, remark = self._execute(message, argument, sent)
        self._end_own(message, sent, state, remark)
        return TransactionSendResult(sent, state)

    def register_end_transaction_hook(self, hook: EndTransactionHook) -> None:
        """Has a hook told of how each transaction ends from now on.

        Source: `DefaultMQProducerImpl.registerEndTransactionHook`.
        """
        self._end_hooks.add(hook)

    def _execute(self, message: Message, argument: Any, sent: SendResult) -> tuple[LocalTransactionState, str | None]:
        # as Java: what is stored less safely than asked for is not carried out
        if sent.status is not SendStatus.SEND_OK:
            return LocalTransactionState.ROLLBACK_MESSAGE, None
        shown = replace(message, properties={**message.properties, _UNIQUE_ID: sent.msg_id})
        try:
            return _state(self.listener.execute_local_transaction(shown, argument)), None
        except Exception as error:  # noqa: BLE001 - the broker asks again
            _log.warning("executeLocalTransactionBranch exception, message %s", sent.msg_id, exc_info=True)
            return LocalTransactionState.UNKNOWN, f"executeLocalTransactionBranch exception: {error!r}"

    def _end_own(self, message: Message, sent: SendResult, state: LocalTransactionState, remark: str | None) -> None:
        """Tells the broker; where that fails, it asks by itself."""
        try:
            member = self.member
            address = member.topics.address_of(wrap(member.config.namespace, message.topic), sent.queue.broker_name)
            carried_out = sent.transaction_id if sent.status is SendStatus.SEND_OK else None
            self._tell_hooks(message, address, sent.msg_id, carried_out, state, is_from_check=False)
            self._tell(
                address,
                state,
                queue_offset=sent.queue_offset,
                # the last 16 digits of the broker's id: the offset of the half message in the commit log
                physical_offset=int(sent.offset_msg_id[-16:], 16),
                message_id=sent.msg_id,
                remark=remark,
            )
        except (RmqError, ValueError):
            _log.warning("local transaction execute %s, but end broker transaction failed", state, exc_info=True)

    def _check_back(self, address: str, message: Any, ext_fields: Mapping[str, str]) -> None:
        header = Header(ext_fields)
        remark, namespace = None, self.member.config.namespace
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
        """Source: `DefaultMQProducerImpl.doExecuteEndTransactionHook`."""
        if self._end_hooks.are_there:
            context = EndTransactionContext(
                self.group, message, address, message_id, transaction_id, state, is_from_check
            )
            self._end_hooks.tell(lambda hook: hook.end_transaction(context))

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
        """Source: `MQClientAPIImpl.endTransactionOneway`."""
        if remark is not None:
            _log.info("transaction %s: %s", message_id, remark)
        self.member.instance.api.end_transaction(
            address,
            self.group,
            queue_offset=queue_offset,
            physical_offset=physical_offset,
            end=state.end,
            message_id=message_id,
            transaction_id=transaction_id,
            from_check=from_check,
        )


def _state(returned: object) -> LocalTransactionState:
    if isinstance(returned, LocalTransactionState):
        return returned
    if returned is not None:
        _log.warning("expected a LocalTransactionState of the listener, got %r: it counts as UNKNOWN", returned)
    return LocalTransactionState.UNKNOWN


def _without_delay(message: Message) -> Message:
    if message.delay_level == 0 and "DELAY" not in message.properties:
        return message
    properties = {name: value for name, value in message.properties.items() if name != "DELAY"}
    return replace(message, delay_level=0, properties=properties)
