"""One send after the other, until a broker takes the message or the time is over.

Source: `DefaultMQProducerImpl.sendDefaultImpl`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rmqfast.client.instance import ClientErrorCode
from rmqfast.client.producer.fault_strategy import FaultStrategy
from rmqfast.client.producer.options import ProducerOptions
from rmqfast.client.producer.publish_queues import PublishQueues
from rmqfast.client.producer.send_result import SendResult, SendStatus
from rmqfast.errors import (
    ClientError,
    RemotingConnectError,
    RemotingError,
    RemotingTimeoutError,
    ResponseError,
    RmqError,
)
from rmqfast.message import MessageQueue

#: Sends to a queue within so many seconds.
Attempt = Callable[[MessageQueue, float], SendResult]


class SendAttempts:
    """Which queue a message is sent to next, of another broker each time if there is one, and how it all ended.

    Whoever drives it sends, and waits in its own way: `begin` while `is_due`, then `succeeded` or `failed`, and at the
    end `result`.

    Args:
        queues: The queues of the topic.
        strategy: Chooses among them, and is told how each attempt went.
        options: How often, and after which answers.
        timeout: For all attempts together, in seconds.
        clock: Seconds.

    Source: `DefaultMQProducerImpl.sendDefaultImpl`.
    """

    def __init__(
        self,
        queues: PublishQueues,
        strategy: FaultStrategy,
        options: ProducerOptions,
        timeout: float,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queues, self._strategy, self._options, self._timeout = queues, strategy, options, timeout
        self._clock = clock
        self._first = self._began = clock()
        self._brokers: list[str] = []
        self._result: SendResult | None = None
        self._failure: RmqError | None = None
        self._is_over = False

    @property
    def is_due(self) -> bool:
        """Whether there is to be another attempt."""
        return not self._is_over and len(self._brokers) <= self._options.retries

    def begin(self) -> tuple[MessageQueue, float]:
        """The queue of the next attempt, and how many seconds it may take.

        Raises:
            RemotingTimeoutError: The time was over before.
        """
        self._began = self._clock()
        spent = self._began - self._first
        if self._timeout < spent:
            raise RemotingTimeoutError("sendDefaultImpl call timeout") from self._failure
        queue = self._strategy.select(self._queues, self._brokers[-1] if self._brokers else None)
        self._brokers.append(queue.broker_name)
        return queue, self._timeout - spent

    def succeeded(self, result: SendResult) -> None:
        """A broker stored the message."""
        self._strategy.update(self._brokers[-1], _since(self._began, self._clock))
        self._result = result
        self._is_over = result.status is SendStatus.SEND_OK or not self._options.retry_another_broker

    def failed(self, error: RemotingError | ClientError) -> None:
        """A broker refused the message, or did not answer.

        Raises:
            ResponseError: With a code after which no other broker is tried.
        """
        self._strategy.update(self._brokers[-1], _since(self._began, self._clock), isolates=True)
        self._failure = error
        if isinstance(error, ResponseError) and error.code not in self._options.retry_response_codes:
            if self._result is None:
                raise error
            self._is_over = True

    def result(self) -> SendResult:
        """How it ended.

        Raises:
            ClientError: All attempts failed; its cause is the last error.
        """
        if self._result is not None:
            return self._result
        total, cost = 1 + self._options.retries, _since(self._first, self._clock)
        topic = self._queues.info.topic
        raise _all_failed(self._brokers, total, cost, topic, self._failure) from self._failure


def send_with_retries(
    attempt: Attempt,
    queues: PublishQueues,
    strategy: FaultStrategy,
    options: ProducerOptions,
    timeout: float,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> SendResult:
    """Sends to queue after queue, and waits for each.

    Args:
        attempt: Sends to a queue within so many seconds.
        queues: As of `SendAttempts`.
        strategy: As of `SendAttempts`.
        options: As of `SendAttempts`.
        timeout: As of `SendAttempts`.
        clock: As of `SendAttempts`.

    Raises:
        ResponseError: A broker refused the message with a code after which no other is tried.
        RemotingTimeoutError: The time was over before an attempt that was still due.
        ClientError: All attempts failed; its cause is the last error.
    """
    attempts = SendAttempts(queues, strategy, options, timeout, clock=clock)
    while attempts.is_due:
        queue, left = attempts.begin()
        try:
            result = attempt(queue, left)
        except (RemotingError, ClientError) as error:
            attempts.failed(error)
        else:
            attempts.succeeded(result)
    return attempts.result()


def error_code(failure: RmqError | None) -> int:
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


def _all_failed(brokers: Sequence[str], total: int, cost: int, topic: str, failure: RmqError | None) -> ClientError:
    sent = ", ".join([*brokers, *["null"] * (total - len(brokers))])
    return ClientError(
        f"Send [{len(brokers)}] times, still failed, cost [{cost}]ms, Topic: {topic}, BrokersSent: [{sent}]",
        response_code=error_code(failure),
        next_step=f"the last broker: {failure}",
    )


def _since(began: float, clock: Callable[[], float]) -> int:
    return int((clock() - began) * 1000)
