"""Sends that nobody waits for: how each is driven until its callback has the end.

Source: `MQClientAPIImpl.sendMessageAsync`, `onExceptionImpl`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from rmqfast._native import InFlight, MessageSender, Outgoing
from rmqfast.client.producer.fault_strategy import FaultStrategy
from rmqfast.client.producer.hooks import CommunicationMode, HookedSends, Hooks, SendContext, SendHook
from rmqfast.client.producer.publish_queues import PublishQueues
from rmqfast.client.producer.publish_topics import PublishTopics
from rmqfast.client.producer.send import RetryRules, Send, SendCallback, SendResult
from rmqfast.errors import RemotingError, RmqError, TooManyRequestsError
from rmqfast.message import Message, MessageQueue
from rmqfast.remoting import Connections
from rmqfast.system import monotonic

#: What a broker counts as that an asynchronous send could not be sent to, in milliseconds.
_NOT_SENT_LATENCY = 3000


#: Whether a thread waits for room; by position, as a call by name costs more.
_WAITS, _NEVER = True, False

#: Who takes the end of an asynchronous send, and what hooks were told before.
_Takers: TypeAlias = tuple[SendCallback, SendContext | None]


class CallbackSends:
    """Drives the asynchronous sends of a producer that runs."""

    def __init__(
        self,
        native: MessageSender,
        connections: Connections,
        topics: PublishTopics,
        *,
        hooks: Hooks[SendHook],
        hooked: HookedSends,
        rules: RetryRules,
        strategy: FaultStrategy | None,
        in_flight: InFlight,
    ) -> None:
        self._native, self._connections, self._topics = native, connections, topics
        self._hooks, self._hooked, self._strategy, self._in_flight = hooks, hooked, strategy, in_flight
        self._rules, self._rules_there = rules, rules._replace(moves=False)
        # made once: each send keeps one of them
        self._resume = partial(self._resumed, is_chosen=False)
        self._resume_there = partial(self._resumed, is_chosen=True)

    def submit(  # noqa: PLR0917 - a call by name costs more on this way
        self,
        message: Message | Outgoing,
        messages: Sequence[Message],
        queues: PublishQueues,
        queue: MessageQueue | None,
        callback: SendCallback,
        timeout: float,
    ) -> None:
        """Sends, and has `callback` called with the end, exactly once.

        Args:
            message: What is sent.
            messages: What hooks are shown.
            queues: The queues of the topic.
            queue: The one that the application chose.
            callback: Takes the end.
            timeout: For waiting for room, and for all attempts, in seconds.

        Raises:
            RemotingTimeoutError: Too much is on its way, and was until the time was over: there will be no call.
            ClientError: The broker is not known; there will be no call.
        """
        is_chosen, strategy = queue is not None, self._strategy
        if queue is None:
            queue = queues.select() if strategy is None else strategy.select(queues)
        address = self._topics.address_of(queues.topic, queue.broker_name)
        if self._hooks.are_there or strategy is not None:
            send = self._begun(message, messages, queues, queue, timeout, is_chosen=is_chosen)
            self._submit_watched(send, queue, address, callback, timeout)
            return
        began, resume = monotonic(), self._resume_there if is_chosen else self._resume
        made = self._native.submit(message, queues.topic, queue, address, timeout, callback, resume, queues, _WAITS)
        if made is not None:
            self._in_flight.take(len(made), began + timeout - monotonic())
            left = began + timeout - monotonic()
            self._try(self._begun(made, (), queues, queue, left, is_chosen=is_chosen), (callback, None), queue, address)

    def begin(self, send: Send, queue: MessageQueue, timeout: float, on_end: SendCallback, *, waits: bool) -> bool:
        """Makes one attempt for whoever must not wait; `on_end` is called once with its end, on any thread.

        Args:
            send: What is sent.
            queue: Where it goes.
            timeout: In seconds.
            on_end: Takes the end.
            waits: Whether this may wait, for a connection or for room.

        Returns:
            Whether it was sent; not where that would have to wait.

        Raises:
            ClientError: The broker is not known.
            RemotingError: It was not sent.
        """
        topic = send.queues.topic
        if not waits and self._topics.known_address(queue.broker_name) is None:
            return False
        address = self._topics.address_of(topic, queue.broker_name)
        if not waits and not self._hooks.are_there:
            made = self._native.submit(
                send.message, topic, queue, address, timeout, on_end, self._begun_failed, send, _NEVER
            )
            if made is not None:
                send.message = made
            return made is None
        made = send.message = self._hooked.made(send)
        size = len(made)
        if waits:
            self._in_flight.take(size, timeout)
        elif not self._connections.is_open(address) or not self._in_flight.try_take(size):
            return False
        context, outgoing = self._hooked.before(send, queue, address, CommunicationMode.ASYNC)

        def ended(end: SendResult | RmqError) -> None:
            self._in_flight.give_back(size)
            self._hooked.after(context, end)
            on_end(end)

        try:
            may_wait = self._connections.may_wait() and waits
            self._native.resubmit(outgoing, queue, address, timeout, ended, may_wait)
        except BaseException as error:
            self._in_flight.give_back(size)
            self._hooked.after(context, error if isinstance(error, RemotingError) else None)
            if isinstance(error, TooManyRequestsError) and not waits:
                return False
            raise
        self._connections.note_open(address)
        return True

    def _begun(
        self,
        message: Message | Outgoing,
        messages: Sequence[Message],
        queues: PublishQueues,
        queue: MessageQueue,
        timeout: float,
        *,
        is_chosen: bool,
    ) -> Send:
        """A send whose first attempt begins now, at `queue`."""
        now, rules = monotonic(), self._rules_there if is_chosen else self._rules
        send = Send(message, messages, queues, queue, rules, self._strategy, now, timeout)
        send.begin(now)
        return send

    def _submit_watched(
        self, send: Send, queue: MessageQueue, address: str, callback: SendCallback, timeout: float
    ) -> None:
        """As `submit`, where somebody besides the callback is notified of each attempt."""
        context, made = self._hooked.before(send, queue, address, CommunicationMode.ASYNC)
        send.message = made
        try:
            self._in_flight.take(len(made), timeout)
        except RemotingError as error:
            self._hooked.after(context, error)
            raise
        self._try(send, (callback, context), queue, address)

    def _resumed(
        self,
        queues: PublishQueues,
        made: Outgoing,
        queue: MessageQueue,
        callback: SendCallback,
        left: float,
        *,
        is_chosen: bool,
    ) -> SendCallback:
        """Takes the error that the first attempt of an asynchronous send ended with."""
        send = self._begun(made, (), queues, queue, left, is_chosen=is_chosen)
        return partial(self._attempted, send, (callback, None))

    def _try(self, send: Send, takers: _Takers, queue: MessageQueue, address: str) -> None:
        """One more attempt of an asynchronous send, of which somebody is told."""
        made, left = self._hooked.made(send), send.left(monotonic())
        attempted = partial(self._attempted, send, takers)
        try:
            self._native.resubmit(made, queue, address, left, attempted, self._connections.may_wait())
        except RemotingError as error:
            self._attempted(send, takers, error, latency=_NOT_SENT_LATENCY)
        except RmqError as error:  # as in a fork
            self._attempted(send, takers, error)
        else:
            self._connections.note_open(address)

    def _attempted(self, send: Send, takers: _Takers, end: SendResult | RmqError, latency: int | None = None) -> None:
        """An attempt of an asynchronous send has ended."""
        if send.ended(end, monotonic(), latency):
            queue, _ = send.begin(monotonic())
            # this thread has other callbacks to serve: it must not wait for a name server
            address = self._topics.known_address(queue.broker_name)
            if address is not None:
                self._try(send, takers, queue, address)
                return
        callback, context = takers
        end = send.end(monotonic())
        self._in_flight.give_back(len(self._hooked.made(send)))
        self._hooked.after(context, end)
        callback(end)

    def _begun_failed(
        self, send: Send, made: Outgoing, _queue: MessageQueue, on_end: SendCallback, _left: float
    ) -> SendCallback:
        """Takes the error that an attempt of `begin` ended with."""
        send.message = made
        self._in_flight.give_back(len(made))
        return on_end
