"""Producers whose sends are driven from outside, step by step, so that nobody has to wait in them.

A step says beforehand whether it would have to wait for something: for a route, a connection, or room. Then a thread
takes it; as a rule there is nothing to wait for, and the thread of an event loop does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rmqfast._native import Outgoing
from rmqfast.client.instance import ServiceState
from rmqfast.client.instance.namespaces import wrap
from rmqfast.client.producer.message_batch import one_batch_of
from rmqfast.client.producer.producer import Producer
from rmqfast.client.producer.publish_queues import PublishQueues
from rmqfast.client.producer.queue_selector import QueueSelector
from rmqfast.client.producer.reply_message import is_reply
from rmqfast.client.producer.send_attempts import SendAttempts
from rmqfast.client.producer.send_hook import CommunicationMode
from rmqfast.client.producer.send_kernel import SendKernel
from rmqfast.client.producer.send_result import SendResult
from rmqfast.client.producer.transaction_producer import TransactionProducer
from rmqfast.errors import RemotingError, TooManyRequestsError
from rmqfast.message import Message, MessageQueue
from rmqfast.remoting import Response
from rmqfast.store.writer import ArrowBatch, ArrowStream

#: Bytes of bodies beyond which a message is prepared on a thread: to compress so many takes milliseconds.
LARGE = 32 << 10


class Prepared(NamedTuple):
    """A message, or a batch, that may be sent.

    Attributes:
        outgoing: The request.
        queues: Where it may go.
        chosen: Where the application wants it to go.
        messages: What the request is made of; none of rows.
        kernel: Sends it.
    """

    outgoing: Outgoing
    queues: PublishQueues
    chosen: MessageQueue | None
    messages: Sequence[Message]
    kernel: SendKernel


class StepwiseProducer(Producer):
    """A producer whose sends are driven from outside."""

    def is_at_hand(self, messages: Sequence[Message] | ArrowStream | ArrowBatch) -> bool:
        """Whether messages are prepared in no time: the topic is known, and there is little to compress."""
        if self._state is not ServiceState.RUNNING:
            return True  # that is said in no time, too
        if not isinstance(messages, Sequence) or not messages:
            return False
        queues = self._topics.get(wrap(self._config.namespace, messages[0].topic))
        is_known = queues is not None and bool(queues.queues)
        return is_known and sum(len(message.body or b"") for message in messages) < LARGE

    def prepared(
        self, message: Message, queue: MessageQueue | None, selector: QueueSelector | None, argument: Any
    ) -> Prepared:
        """The first step of `send`.

        Raises:
            ClientError: As `send`.
        """
        queues = self._prepare(message)
        outgoing = self._encoder.encode(message, queues.info.topic)
        is_chosen = queue is not None or selector is not None
        chosen = self._chosen(message, queues, queue, selector, argument) if is_chosen else None
        kernel = self._reply_kernel if is_reply(message) else self._kernel
        return Prepared(outgoing, queues, chosen, (message,), kernel)

    def prepared_batch(
        self, messages: Sequence[Message] | ArrowStream | ArrowBatch, queue: MessageQueue | None, topic: str | None
    ) -> Prepared:
        """The first step of `send_batch`.

        Raises:
            ClientError: As `send_batch`.
        """
        self._check_running()
        sent: Sequence[Message] = ()
        if isinstance(messages, Sequence):
            sent, outgoing = messages, self._batch(messages)
        else:
            outgoing = one_batch_of(self._row_batches(messages, topic, sys.maxsize))
        queues = self._queues_of(outgoing.topic)
        any_of_them = Message(outgoing.topic, b"")
        chosen = None if queue is None else self._chosen(any_of_them, queues, queue, None, None)
        return Prepared(outgoing, queues, chosen, sent, self._kernel)

    def attempts(self, prepared: Prepared, timeout: float) -> SendAttempts:
        """Which queues it is sent to, one after the other, where the application chose none."""
        return SendAttempts(prepared.queues, self.strategy, self.options, timeout)

    def begin(
        self,
        prepared: Prepared,
        queue: MessageQueue,
        on_end: Callable[[SendResult | BaseException], object],
        timeout: float,
        *,
        waits: bool,
    ) -> bool:
        """Sends it to a queue; `on_end` is called once with how that ended, on any thread.

        Args:
            prepared: What is sent.
            queue: Where it goes.
            on_end: Takes the end.
            timeout: In seconds.
            waits: Whether this may wait, for a connection or for room.

        Returns:
            Whether it was sent; not where that would have to wait.

        Raises:
            ClientError: The broker is not known.
            RemotingError: It was not sent.
        """
        if waits:
            address = prepared.kernel.address_of(queue)
        else:
            found = self._instance.publish_address(queue.broker_name)
            if found is None or not self._instance.connections.is_open(found):
                return False
            address = found
        size = len(prepared.outgoing)
        if waits:
            self._in_flight.take(size, timeout)
        elif not self._in_flight.try_take(size):
            return False
        return self._submitted(prepared, queue, address, on_end, timeout, waits=waits)

    def _submitted(
        self,
        prepared: Prepared,
        queue: MessageQueue,
        address: str,
        on_end: Callable[[SendResult | BaseException], object],
        timeout: float,
        *,
        waits: bool,
    ) -> bool:
        kernel, outgoing, size = prepared.kernel, prepared.outgoing, len(prepared.outgoing)
        context = None
        if self.hooks:
            context, outgoing = kernel.before(prepared.messages, outgoing, queue, address, CommunicationMode.ASYNC)

        def done(answer: Response | RemotingError) -> None:
            self._in_flight.give_back(size)
            try:
                ended: SendResult | RemotingError = (
                    answer if isinstance(answer, RemotingError) else kernel.result_of(answer, queue, outgoing, address)
                )
            except RemotingError as error:
                ended = error
            kernel.after(context, ended)
            on_end(ended)

        try:
            kernel.submit(outgoing, queue.queue_id, address, done, timeout, waits=waits)
        except BaseException as error:
            self._in_flight.give_back(size)
            kernel.after(context, error if isinstance(error, RemotingError) else None)
            if isinstance(error, TooManyRequestsError) and not waits:
                return False
            raise
        return True


class StepwiseTransactionProducer(StepwiseProducer, TransactionProducer):
    """A producer of transactions whose other sends are driven from outside."""
