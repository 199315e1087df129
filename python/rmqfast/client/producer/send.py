"""One send: to which queue it goes next, whether it is tried again, and how it ended. It knows no socket and no clock.

Source: `DefaultMQProducerImpl.sendDefaultImpl`, `MQClientAPIImpl.sendMessageAsync`, `SendResult`, `SendStatus`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from rmqfast._native import Outgoing
from rmqfast.client.instance import ClientErrorCode
from rmqfast.client.producer.fault_strategy import FaultStrategy
from rmqfast.client.producer.publish_queues import PublishQueues
from rmqfast.errors import (
    ClientError,
    RemotingConnectError,
    RemotingError,
    RemotingProtocolError,
    RemotingTimeoutError,
    ResponseError,
    RmqError,
)
from rmqfast.message import Message, MessageQueue
from rmqfast.remoting import ResponseCode

DEFAULT_REGION = "DefaultRegion"


class SendStatus(StrEnum):
    """How safe a message is; it is stored in any case.

    Example:
        >>> from rmqfast import EmbeddedCluster, Message, Producer, SendStatus
        >>> with EmbeddedCluster() as cluster, Producer("shop", name_server=cluster.name_server) as producer:
        ...     producer.send(Message("orders", b"paid")).status is SendStatus.SEND_OK
        True

    Source: `SendStatus`.
    """

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


#: The status of each answer that says that the message is stored.
STATUSES: Mapping[int, SendStatus] = {
    int(ResponseCode.SUCCESS): SendStatus.SEND_OK,
    int(ResponseCode.FLUSH_DISK_TIMEOUT): SendStatus.FLUSH_DISK_TIMEOUT,
    int(ResponseCode.FLUSH_SLAVE_TIMEOUT): SendStatus.FLUSH_SLAVE_TIMEOUT,
    int(ResponseCode.SLAVE_NOT_AVAILABLE): SendStatus.SLAVE_NOT_AVAILABLE,
}


class SendResult(NamedTuple):
    """How a send ended.

    Attributes:
        status: How safe the message is.
        msg_id: The id that the producer gave; of a batch those of all messages, separated by commas.
        offset_msg_id: Where the broker has it; of a batch as above.
        queue: The queue that it is in.
        queue_offset: Its place in the queue; of a batch that of the first message.
        transaction_id: Of a message in a transaction.
        region_id: The broker's region.
        is_traced: Whether the broker wants sends to be traced.

    Example:
        >>> queue = MessageQueue("orders", "broker-a", 1)
        >>> str(SendResult(SendStatus.SEND_OK, "A", "B", queue, 7))[:50]
        'SendResult [sendStatus=SEND_OK, msgId=A, offsetMsg'

    Source: `SendResult`.
    """

    status: SendStatus
    msg_id: str
    offset_msg_id: str
    queue: MessageQueue
    queue_offset: int
    transaction_id: str | None = None
    region_id: str = DEFAULT_REGION
    is_traced: bool = True

    def __str__(self) -> str:
        queue = self.queue
        return (
            f"SendResult [sendStatus={self.status}, msgId={self.msg_id}, offsetMsgId={self.offset_msg_id}, "
            f"messageQueue=MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, "
            f"queueId={queue.queue_id}], queueOffset={self.queue_offset}]"
        )


#: Takes how a send ended; is called once, on a thread of the client's.
SendCallback: TypeAlias = Callable[[SendResult | RmqError], object]


class RetryRules(NamedTuple):
    """After which ends of an attempt a send is tried again.

    Attributes:
        retries: How often.
        response_codes: The brokers' refusals after which it is; after those of a connection it always is.
        retry_another_broker: Whether a message that is stored less safely than asked for is sent once more.
        moves: Whether the next attempt goes to another queue; not where the application chose one.
        is_async: As Java's asynchronous sends: the queue keeps its number at the next broker, and the last error is the
            send's.
    """

    retries: int
    response_codes: frozenset[int] = frozenset()
    retry_another_broker: bool = False
    moves: bool = True
    is_async: bool = False


#: A send to a queue that the application chose, for whoever waits: one attempt.
ONCE = RetryRules(0, moves=False)


class Send:
    """One send. Whoever drives it asks `begin` for the next attempt, makes it, and tells `ended`, until that says no.

    Args:
        message: What is sent; what was made of it takes its place, so that each attempt has the same id.
        messages: What hooks are shown; none of rows of Arrow.
        queues: The queues of the topic.
        queue: Where it goes first, or only; the next one in turn unless given.
        rules: When it is tried again.
        strategy: Chooses queues, and is told how brokers do; without it threads walk from queue to queue.
        began: When it began, in seconds.
        timeout: For all attempts together, in seconds.

    Source: `DefaultMQProducerImpl.sendDefaultImpl`.
    """

    __slots__ = (
        "_attempt_began",
        "_began",
        "_brokers",
        "_deadline",
        "_failure",
        "_is_refused",
        "_queue",
        "_result",
        "_rules",
        "_strategy",
        "message",
        "messages",
        "queues",
    )

    def __init__(  # noqa: PLR0917 - a call by name costs more on this way
        self,
        message: Message | Outgoing,
        messages: Sequence[Message],
        queues: PublishQueues,
        queue: MessageQueue | None,
        rules: RetryRules,
        strategy: FaultStrategy | None,
        began: float,
        timeout: float,
    ) -> None:
        self.message: Message | Outgoing = message
        self.messages: Final = messages
        self.queues: Final = queues
        self._queue, self._rules, self._strategy = queue, rules, strategy
        self._began = self._attempt_began = began
        self._deadline = began + timeout
        self._brokers: list[str] = []
        self._result: SendResult | None = None
        self._failure: RmqError | None = None
        self._is_refused = False

    def begin(self, now: float) -> tuple[MessageQueue, float]:
        """The queue of the next attempt, and how many seconds it may take.

        Raises:
            RemotingTimeoutError: The time was over before.
        """
        left, rules = self._deadline - now, self._rules
        # an asynchronous send looks at the time when an attempt has ended: see `ended`
        if left < 0 and not rules.is_async:
            text = "sendDefaultImpl call timeout" if rules.moves else "call timeout"
            raise RemotingTimeoutError(text) from self._failure
        queue, brokers = self._queue, self._brokers
        if rules.moves and (queue is None or brokers):
            last = brokers[-1] if brokers else None
            strategy = self._strategy
            selected = self.queues.select(last) if strategy is None else strategy.select(self.queues)
            # Java sends the same request to another broker, and the number of the queue stands in it
            if queue is not None and rules.is_async:
                queue = MessageQueue(queue.topic, selected.broker_name, queue.queue_id)
            else:
                queue = selected
        self._queue, self._attempt_began = queue, now
        brokers.append(queue.broker_name)  # type: ignore[union-attr]  # it is chosen, or was selected above
        return queue, left  # type: ignore[return-value]

    def left(self, now: float) -> float:
        """How many seconds are left."""
        return self._deadline - now

    def ended(self, end: SendResult | RmqError, now: float, latency: int | None = None) -> bool:
        """Takes how an attempt ended; whether there is to be another one.

        Args:
            end: How it ended.
            now: When, in seconds.
            latency: What the broker counts as, in milliseconds; the time that it took unless given.
        """
        rules, is_stored = self._rules, isinstance(end, SendResult)
        if self._strategy is not None:
            took = int((now - self._attempt_began) * 1000) if latency is None else latency
            self._strategy.update(self._brokers[-1], took, isolates=not is_stored)
        if isinstance(end, SendResult):
            self._result = end
            again = rules.retry_another_broker and end.status is not SendStatus.SEND_OK
        else:
            self._failure = end
            is_refused = isinstance(end, ResponseError) and end.code not in rules.response_codes
            self._is_refused = is_refused
            # an answer that lacks what it must have is one: a callback is notified of it at once, as in Java
            is_refused = is_refused or (rules.is_async and isinstance(end, RemotingProtocolError))
            again = not is_refused and isinstance(end, (RemotingError, ClientError))
        return again and len(self._brokers) <= rules.retries and not (rules.is_async and now >= self._deadline)

    def end(self, now: float) -> SendResult | RmqError:
        """How it ended: with the last result, or the reason why there is none."""
        failure, rules = self._failure, self._rules
        if self._result is not None:
            return self._result
        if failure is not None and (self._is_refused or rules.is_async or not rules.moves):
            return failure
        error = self._all_failed(int((now - self._began) * 1000))
        error.__cause__ = failure
        return error

    def result(self, now: float) -> SendResult:
        """The last result.

        Raises:
            ResponseError: A broker refused the message with a code after which no other is tried.
            RemotingError: The only attempt failed.
            ClientError: All attempts failed; its cause is the last error.
        """
        end = self.end(now)
        if isinstance(end, RmqError):
            raise end
        return end

    def _all_failed(self, cost: int) -> ClientError:
        brokers, total = self._brokers, 1 + self._rules.retries
        # Java prints an array that has room for all attempts
        sent = ", ".join([*brokers, *["null"] * (total - len(brokers))])
        return ClientError(
            f"Send [{len(brokers)}] times, still failed, cost [{cost}]ms, Topic: {self.queues.topic}, "
            f"BrokersSent: [{sent}]",
            response_code=_error_code(self._failure),
            next_step=f"the last broker: {self._failure}",
        )


def _error_code(failure: RmqError | None) -> int:
    """The code of the error of a send that failed, by why it did.

    Source: `DefaultMQProducerImpl.sendDefaultImpl`.
    """
    if isinstance(failure, ResponseError):
        return failure.code
    if isinstance(failure, RemotingConnectError):
        return ClientErrorCode.CONNECT_BROKER_EXCEPTION
    if isinstance(failure, RemotingTimeoutError):
        return ClientErrorCode.ACCESS_BROKER_TIMEOUT
    if isinstance(failure, ClientError):
        return ClientErrorCode.BROKER_NOT_EXIST_EXCEPTION
    return -1
