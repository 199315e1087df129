"""What a pull consumer does for its application: a pull is checked, goes out, and its end is told.

Source: `DefaultMQPullConsumerImpl`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from rmqfast.client.consumer import (
    MessageSelector,
    OffsetStore,
    PullResult,
    PullSysFlag,
    build_subscription_data,
)
from rmqfast.client.consumer.active_consumer import ActiveConsumer
from rmqfast.client.instance import ClientConfig, ClientInstance
from rmqfast.client.instance.namespaces import unwrap, wrap
from rmqfast.client.pull.options import PullOptions
from rmqfast.client.pull.rebalance_pull import RebalancePull
from rmqfast.errors import ClientError, ExpressionError, RmqError
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

#: Takes how an asynchronous pull ended.
PullCallback: TypeAlias = Callable[[PullResult | RmqError], None]

_LEAST_QUEUE, _MOST = 0, (1 << 31) - 1


class PullConsumerImpl(ActiveConsumer):
    """A pull consumer without the methods that applications call.

    Args:
        group: The consumer group.
        config: How to reach the cluster.
        options: How to pull.
    """

    def __init__(self, group: str, config: ClientConfig, options: PullOptions) -> None:
        super().__init__(group, config, options)
        self.options = options
        self._registered: dict[str, None] = {}

    def subscriptions(self) -> Sequence[SubscriptionData]:
        """What heartbeats say: the registered topics, each as a whole.

        Source: `DefaultMQPullConsumerImpl.subscriptions`.
        """
        namespace = self._config.namespace
        return [SubscriptionData(topic=wrap(namespace, topic), sub_version=0) for topic in self._registered]

    def _make_rebalance(self, instance: ClientInstance, offsets: OffsetStore) -> RebalancePull:
        self._subscriptions.update({subscription.topic: subscription for subscription in self.subscriptions()})
        return RebalancePull(instance, self.group, self.options, offsets, self._tell_listener)

    def _owned_queues(self) -> Iterable[MessageQueue]:
        return self._rebalance.process_queues.copy()

    def _tell_listener(self, topic: str, all_queues: frozenset[MessageQueue], mine: frozenset[MessageQueue]) -> None:
        listener = self.options.message_queue_listener
        if listener is not None:
            shown = (frozenset(map(self._shown, queues)) for queues in (all_queues, mine))
            listener(unwrap(self._config.namespace, topic), *shown)

    def _timeout(self, timeout: float | None) -> float:
        return self.options.pull_timeout if timeout is None else timeout

    def _pulled(self, wanted: _Wanted, timeout: float, *, block: bool) -> PullResult:
        """Source: `DefaultMQPullConsumerImpl.pullSyncImpl`."""
        flag, suspend = _flag(block=block), self.options.broker_suspend
        result = self._pull_api.pull(*wanted, sys_flag=flag, suspend=suspend, timeout=timeout)
        self._tell_hooks(wanted, result)
        return result

    def _submitted(
        self, wanted: _Wanted, callback: PullCallback | None, timeout: float, *, block: bool
    ) -> Future[PullResult] | None:
        """Source: `DefaultMQPullConsumerImpl.pullAsyncImpl`."""
        future: Future[PullResult] | None = None
        if callback is None:
            future = Future()
            future.set_running_or_notify_cancel()
            callback = _into(future)
        if self.hooks:
            callback = self._with_hooks(wanted, callback)
        flag, suspend = _flag(block=block), self.options.broker_suspend
        self._pull_api.pull_async(*wanted, callback, sys_flag=flag, suspend=suspend, timeout=timeout)
        return future

    def _with_hooks(self, wanted: _Wanted, callback: PullCallback) -> PullCallback:
        def done(end: PullResult | RmqError) -> None:
            if isinstance(end, PullResult):
                self._tell_hooks(wanted, end)
            callback(end)

        return done

    def _tell_hooks(self, wanted: _Wanted, result: PullResult) -> None:
        self.hooks.pulled(self.group, result.messages, wanted.queue, self._config.namespace)

    def _checked(
        self, queue: MessageQueue, expression: str | MessageSelector | None, offset: int, max_messages: int
    ) -> _Wanted:
        """What is pulled, as brokers know it; the topic takes part in the rebalance from now on."""
        self._check_running()
        if queue is None:
            raise ClientError("mq is null")
        if offset < 0:
            raise ClientError(
                "offset < 0", next_step="fetch_consume_offset says -1 for none and -2 for a broker out of reach"
            )
        if max_messages <= 0:
            raise ClientError("maxNums <= 0")
        if max_messages > _MOST or not _LEAST_QUEUE <= queue.queue_id <= _MOST:
            raise ClientError(f"expected numbers below {_MOST}, got maxNums {max_messages} and queue {queue.queue_id}")
        wrapped = self._wrapped(queue)
        try:
            subscription = build_subscription_data(wrapped.topic, expression)
        except ExpressionError as error:
            raise ClientError(f"parse subscription error: {error}") from error
        # it is not in heartbeats, and whatever is pulled it stands for all messages
        self._subscriptions.setdefault(wrapped.topic, SubscriptionData(topic=wrapped.topic, sub_version=0))
        if subscription.is_tag_type:
            subscription = replace(subscription, sub_version=0)
        return _Wanted(wrapped, subscription, offset, max_messages)


class _Wanted(NamedTuple):
    """A pull as a broker gets it."""

    queue: MessageQueue
    subscription: SubscriptionData
    offset: int
    max_messages: int


def _flag(*, block: bool) -> PullSysFlag:
    return PullSysFlag.SUBSCRIPTION | PullSysFlag.SUSPEND if block else PullSysFlag.SUBSCRIPTION


def _into(future: Future[PullResult]) -> PullCallback:
    def done(end: PullResult | RmqError) -> None:
        if isinstance(end, PullResult):
            future.set_result(end)
        else:
            future.set_exception(end)

    return done
