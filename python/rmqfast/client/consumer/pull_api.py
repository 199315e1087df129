"""Pulls, of consumers of all kinds: where to, what is asked, what came.

Source: `PullAPIWrapper`, `MQClientAPIImpl.pullMessage`, `PullSysFlag`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntFlag, StrEnum
from typing import TypeAlias

from rmqfast._native import MessageView, decode_pull
from rmqfast.client.consumer.filter_hook import FilterContext, FilterHooks
from rmqfast.client.instance import ClientErrorCode, ClientInstance
from rmqfast.client.instance.namespaces import unwrap
from rmqfast.errors import ClientError, RemotingProtocolError, ResponseError, RmqError
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode, Response
from rmqfast.remoting.protocol.broker_data import MASTER_ID
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

#: The first release whose brokers filter by SQL92: `V4_1_0_SNAPSHOT`.
VERSION_WITH_SQL92 = 232


class PullStatus(StrEnum):
    """How a pull ended.

    Source: `PullStatus`.
    """

    FOUND = "FOUND"
    NO_NEW_MSG = "NO_NEW_MSG"
    NO_MATCHED_MSG = "NO_MATCHED_MSG"
    OFFSET_ILLEGAL = "OFFSET_ILLEGAL"


class PullSysFlag(IntFlag):
    """What a pull asks for besides messages.

    Attributes:
        COMMIT_OFFSET: Stores the request's commit offset.
        SUSPEND: Waits at the broker while there is nothing.
        SUBSCRIPTION: Filters by the request's expression, not by that of the heartbeat.
        CLASS_FILTER: A class filters, which no broker of 4.9 does.
        LITE_PULL: Comes from a lite pull consumer.

    Source: `PullSysFlag`.
    """

    COMMIT_OFFSET = 1
    SUSPEND = 2
    SUBSCRIPTION = 4
    CLASS_FILTER = 8
    LITE_PULL = 16


@dataclass(frozen=True, slots=True)
class PullResult:
    """What a pull brought.

    Attributes:
        status: How it ended.
        next_begin_offset: Where to go on.
        min_offset: The offset of the queue's first message.
        max_offset: The offset behind its last one.
        messages: Those that the subscription wants; may be empty although some were found.
        size: Bytes of the answer, which are kept while one of the messages is.

    Source: `PullResult`.
    """

    status: PullStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    messages: list[MessageView] = field(default_factory=list)
    size: int = 0


#: Takes how an asynchronous pull ended.
OnPulled: TypeAlias = Callable[[PullResult | RmqError], None]

_STATUS = {
    0: PullStatus.FOUND,
    19: PullStatus.NO_NEW_MSG,
    20: PullStatus.NO_MATCHED_MSG,
    21: PullStatus.OFFSET_ILLEGAL,
}


class PullApi:
    """Pulls for one consumer group; remembers which broker of a queue is to be asked next.

    Args:
        instance: Knows addresses and has connections.
        group: The group, with its namespace.
        filters: Take messages out of what came.

    Attributes:
        is_broker_chosen: Whether `default_broker_id` is asked, whatever brokers suggest: Java's `connectBrokerByUser`.
        default_broker_id: The one asked then.

    Source: `PullAPIWrapper`.
    """

    def __init__(self, instance: ClientInstance, group: str, filters: FilterHooks | None = None) -> None:
        self._instance, self._group, self._filters = instance, group, filters
        self._suggested: dict[MessageQueue, int] = {}
        self.is_broker_chosen, self.default_broker_id = False, MASTER_ID

    def pull(
        self,
        queue: MessageQueue,
        subscription: SubscriptionData,
        offset: int,
        max_messages: int,
        *,
        sys_flag: int = PullSysFlag.SUBSCRIPTION,
        commit_offset: int = 0,
        suspend: float = 0.0,
        timeout: float = 10.0,
    ) -> PullResult:
        """Pulls, and waits for the answer.

        Args:
            queue: Where from, its topic with its namespace.
            subscription: Which messages; the tags are looked at here once more.
            offset: Of the first one.
            max_messages: How many at most; brokers have limits of their own.
            sys_flag: Of `PullSysFlag`.
            commit_offset: What is stored as the group's offset, where the flag says so.
            suspend: How long the broker waits for messages, in seconds, where the flag says so.
            timeout: How long to wait for the answer, in seconds.

        Raises:
            ClientError: The broker is not known (10003), or too old for the expression.
            ResponseError: The broker refused.
            RemotingError: There is no answer.

        Source: `PullAPIWrapper.pullKernelImpl`.
        """
        address, fields = self._request(
            queue,
            subscription,
            offset,
            max_messages,
            sys_flag=sys_flag,
            commit_offset=commit_offset,
            suspend_millis=int(suspend * 1000),
        )
        answer = self._instance.connections.request(address, RequestCode.PULL_MESSAGE, fields, timeout=timeout)
        return self._result(queue, subscription, address, answer)

    def pull_async(
        self,
        queue: MessageQueue,
        subscription: SubscriptionData,
        offset: int,
        max_messages: int,
        on_done: OnPulled,
        *,
        sys_flag: int = PullSysFlag.SUBSCRIPTION,
        commit_offset: int = 0,
        suspend: float = 0.0,
        timeout: float = 10.0,
    ) -> None:
        """Pulls without waiting.

        Args:
            queue: As in `pull`.
            subscription: As in `pull`.
            offset: As in `pull`.
            max_messages: As in `pull`.
            on_done: Takes the result or the error, on one of the client's threads; not called where this raises.
            sys_flag: As in `pull`.
            commit_offset: As in `pull`.
            suspend: As in `pull`.
            timeout: As in `pull`.

        Raises:
            ClientError: As `pull`.
            RemotingError: Nobody can be asked.
        """
        address, fields = self._request(
            queue,
            subscription,
            offset,
            max_messages,
            sys_flag=sys_flag,
            commit_offset=commit_offset,
            suspend_millis=int(suspend * 1000),
        )

        def ended(end: Response | RmqError) -> None:
            result: PullResult | RmqError
            try:
                result = self._result(queue, subscription, address, end) if isinstance(end, Response) else end
            except RmqError as error:
                result = error
            on_done(result)

        self._instance.connections.submit(address, RequestCode.PULL_MESSAGE, fields, b"", ended, timeout=timeout)

    def broker_id(self, queue: MessageQueue) -> int:
        """Which of the brokers of a name is asked for a queue: the one that the last answer suggested.

        Source: `PullAPIWrapper.recalculatePullFromWhichNode`.
        """
        return self.default_broker_id if self.is_broker_chosen else self._suggested.get(queue, MASTER_ID)

    def _request(
        self,
        queue: MessageQueue,
        subscription: SubscriptionData,
        offset: int,
        max_messages: int,
        *,
        sys_flag: int,
        commit_offset: int,
        suspend_millis: int,
    ) -> tuple[str, dict[str, str]]:
        """Whom to ask, and the header."""
        broker = self._instance.subscribe_address(queue.broker_name, self.broker_id(queue))
        if broker is None:
            self._instance.update_route(queue.topic)
            broker = self._instance.subscribe_address(queue.broker_name, self.broker_id(queue))
            if broker is None:
                raise _unknown_broker(queue)
        if not subscription.is_tag_type and broker.version < VERSION_WITH_SQL92:
            raise _no_sql92(queue, broker.version, subscription)
        flag = int(sys_flag)
        fields = {
            "consumerGroup": self._group,
            "topic": queue.topic,
            "queueId": str(queue.queue_id),
            "queueOffset": str(offset),
            "maxMsgNums": str(max_messages),
            "sysFlag": str(flag & ~1 if broker.is_slave else flag),
            "commitOffset": str(commit_offset),
            "suspendTimeoutMillis": str(suspend_millis),
            "subVersion": str(subscription.sub_version),
            "expressionType": subscription.expression_type,
        }
        if flag & 4:
            fields["subscription"] = subscription.sub_string
        return broker.address, fields

    def _result(
        self, queue: MessageQueue, subscription: SubscriptionData, address: str, answer: Response
    ) -> PullResult:
        """What an answer says; remembers whom it suggests.

        Source: `MQClientAPIImpl.processPullResponse`, `PullAPIWrapper.processPullResult`.
        """
        status = _STATUS.get(answer.code)
        if status is None:
            raise ResponseError(answer.code, answer.remark or "", address)
        fields = answer.ext_fields or {}
        try:
            self._suggested[queue] = int(fields["suggestWhichBrokerId"])
            next_begin = int(fields["nextBeginOffset"])
            bounds = int(fields["minOffset"]), int(fields["maxOffset"])
        except (KeyError, ValueError) as error:
            raise _no_pull_header(fields, address) from error
        if status is not PullStatus.FOUND:
            return PullResult(status, next_begin, *bounds)
        namespace = self._instance.config.namespace
        tags = subscription.tags_set
        messages = decode_pull(
            answer.body,
            broker_name=queue.broker_name,
            topic=unwrap(namespace, queue.topic) if namespace else None,
            tags=frozenset(tags) if tags and not subscription.class_filter_mode else None,
            bounds=bounds,
            verify_crc=self._instance.config.verify_crc,
        )
        if self._filters:
            is_unit_mode = self._instance.config.is_unit_mode
            messages = self._filters.filter(FilterContext(self._group, queue, messages, is_unit_mode))
        return PullResult(status, next_begin, *bounds, messages, len(answer.body))


def _no_pull_header(fields: object, address: str) -> RemotingProtocolError:
    return RemotingProtocolError(f"pull from {address}: expected four offsets in the answer's header, got {fields}")


def _unknown_broker(queue: MessageQueue) -> ClientError:
    return ClientError(
        f"The broker[{queue.broker_name}] not exist",
        response_code=ClientErrorCode.BROKER_NOT_EXIST_EXCEPTION,
        next_step=f"no broker of that name stands in the route of topic {queue.topic}: is it running?",
    )


def _no_sql92(queue: MessageQueue, version: int, subscription: SubscriptionData) -> ClientError:
    return ClientError(
        f"The broker[{queue.broker_name}, {version}] does not upgrade to support for filter message by "
        f"{subscription.expression_type}",
        next_step="its version is that of its last answer to a heartbeat, 0 where there was none",
    )
