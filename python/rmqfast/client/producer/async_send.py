"""A send that nobody waits for: tried again where the connection failed, never where a broker refused it.

Source: `MQClientAPIImpl.sendMessageAsync`, `onExceptionImpl`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

from rmqfast._native import InFlight, Outgoing
from rmqfast.client.instance import ClientInstance
from rmqfast.client.producer.fault_strategy import FaultStrategy
from rmqfast.client.producer.publish_queues import PublishQueues
from rmqfast.client.producer.send_hook import SendContext
from rmqfast.client.producer.send_kernel import SendKernel
from rmqfast.client.producer.send_result import SendResult
from rmqfast.errors import RemotingError, ResponseError, RmqError
from rmqfast.message import MessageQueue
from rmqfast.remoting import Response

#: Takes how a send ended; is called once, on a thread of the client's.
SendCallback: TypeAlias = Callable[[SendResult | RmqError], object]
#: What a broker counts as that could not be sent to, in milliseconds.
_NOT_SENT_LATENCY = 3000


class AsyncSends:
    """What all asynchronous sends of a producer share.

    Args:
        kernel: Sends.
        instance: Knows brokers' addresses.
        strategy: Chooses other brokers, and is told how they do.
        in_flight: How much may be on its way.
        retries: How often a send is tried once more.
    """

    def __init__(
        self, kernel: SendKernel, instance: ClientInstance, strategy: FaultStrategy, in_flight: InFlight, retries: int
    ) -> None:
        self.kernel, self.instance, self.strategy = kernel, instance, strategy
        self.in_flight, self.retries = in_flight, retries
        self._sender = instance.connections.sender(in_flight)
        # what is signed, has a code of its own, or another topic in its result, takes the way through Python
        self._is_usual = not kernel.is_signed and not kernel.has_code and not instance.config.namespace

    def start(  # noqa: PLR0917 - a call by name costs more on this way
        self,
        outgoing: Outgoing,
        queue: MessageQueue,
        queues: PublishQueues | None,
        callback: SendCallback,
        timeout: float,
        context: SendContext | None,
        address: str,
    ) -> None:
        """Sends; the callback is called in any case, from now on.

        Raises:
            RemotingTimeoutError: Too much is on its way, and was until the time was over: nothing was sent.
        """
        if context is None and self._is_usual and not self.strategy.is_enabled:
            left = self._sender.submit(self, outgoing, queue, queues, callback, timeout, address)
            if left is None:
                return
            deadline = time.monotonic() + left
        else:
            deadline = time.monotonic() + timeout
            self.in_flight.take(len(outgoing), timeout)
        AsyncSend(self, outgoing, queue, queues, callback, deadline, context).submit(address)

    def resumed(  # noqa: PLR0917 - it is called by position
        self,
        outgoing: Outgoing,
        queue: MessageQueue,
        queues: PublishQueues | None,
        callback: SendCallback,
        left: float,
        address: str,
    ) -> Callable[[Response | RemotingError], None]:
        """Goes on with a send whose end is not the usual one; what is returned takes that end.

        Args:
            outgoing: The request.
            queue: Where it went.
            queues: Where it may go instead.
            callback: As given.
            left: How much time it has, in seconds.
            address: The broker.
        """
        deadline = time.monotonic() + left
        return AsyncSend(self, outgoing, queue, queues, callback, deadline, None).resumed(address)


class AsyncSend:
    """One of them."""

    __slots__ = (
        "_address",
        "_began",
        "_broker",
        "_callback",
        "_context",
        "_deadline",
        "_outgoing",
        "_queue",
        "_queues",
        "_shared",
        "_tries",
    )

    def __init__(  # noqa: PLR0917 - as above
        self,
        shared: AsyncSends,
        outgoing: Outgoing,
        queue: MessageQueue,
        queues: PublishQueues | None,
        callback: SendCallback,
        deadline: float,
        context: SendContext | None,
    ) -> None:
        self._shared, self._outgoing, self._queue, self._queues = shared, outgoing, queue, queues
        self._callback, self._deadline, self._context = callback, deadline, context
        self._broker, self._tries = queue.broker_name, 0

    def resumed(self, address: str) -> Callable[[Response | RemotingError], None]:
        """Takes how the request to a broker ends that was sent already."""
        self._address, self._began = address, time.monotonic()
        return self._done

    def submit(self, address: str) -> None:
        """Sends to a broker."""
        shared = self._shared
        self._address, self._began = address, time.monotonic()
        left = self._deadline - self._began
        try:
            shared.kernel.submit(self._outgoing, self._queue.queue_id, address, self._done, left)
        except RemotingError as error:
            shared.strategy.update(self._broker, _NOT_SENT_LATENCY, isolates=True)
            self._failed(error)
        except RmqError as error:  # as in a fork: there is nothing to try again
            self._ended(error)

    def _done(self, answer: Response | RemotingError) -> None:
        shared = self._shared
        failed = isinstance(answer, RemotingError)
        if shared.strategy.is_enabled:
            self._note(failed=failed)
        if isinstance(answer, RemotingError):
            self._failed(answer)
            return
        try:
            queue = self._queue
            if self._broker != queue.broker_name:
                queue = MessageQueue(queue.topic, self._broker, queue.queue_id)
            ended: SendResult | RmqError = shared.kernel.result_of(answer, queue, self._outgoing, self._address)
        except RemotingError as error:
            if isinstance(error, ResponseError) and shared.strategy.is_enabled:
                self._note(failed=True)
            ended = error
        self._ended(ended)

    def _failed(self, error: RemotingError) -> None:
        """Tries once more, on another broker where the application did not choose one."""
        self._tries += 1
        if self._tries > self._shared.retries or time.monotonic() >= self._deadline:
            self._ended(error)
            return
        if self._queues is not None:
            # the message goes to a queue of the same number
            self._broker = self._shared.strategy.select(self._queues, self._broker).broker_name
        address = self._shared.instance.publish_address(self._broker)
        if address is None:
            self._ended(error)
        else:
            self.submit(address)

    def _ended(self, ended: SendResult | RmqError) -> None:
        shared = self._shared
        shared.in_flight.give_back(len(self._outgoing))
        shared.kernel.after(self._context, ended)
        self._callback(ended)

    def _note(self, *, failed: bool) -> None:
        latency = int((time.monotonic() - self._began) * 1000)
        self._shared.strategy.update(self._broker, latency, isolates=failed)
