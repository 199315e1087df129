"""Single messages: looks them up by id, key or place; their traces and their fate.

Source: `MQAdminImpl.viewMessage`, `MQAdminImpl.queryMessage`, `MQAdminImpl.queryMessageByUniqKey`,
`DefaultMQAdminExtImpl.viewMessage`, `QueryMsgByOffsetSubCommand`, `QueryMsgTraceByIdSubCommand.queryTraceByMsgId`,
`DefaultMQAdminExtImpl.messageTrackDetail`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rmqfast._native import parse_message_id, pull_fields
from rmqfast.admin.admin_client import SLOW, AdminClient, BrokerAddress
from rmqfast.admin.groups import Groups, consumers_at
from rmqfast.admin.message_track import MessageTrack, track_of
from rmqfast.arguments import Time, milliseconds_of
from rmqfast.client.instance.broker_requests import decode_messages, decode_viewed
from rmqfast.client.pulling.single_pulls import read_answer
from rmqfast.client.trace import TRACE_TOPIC, TraceView, trace_views
from rmqfast.errors import ArgumentError, ResponseError, UnknownMessageError
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode, ResponseCode
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

#: The group that administrators pull as; every broker has it.
TOOLS_GROUP = "TOOLS_CONSUMER"
LATEST = (1 << 63) - 1
#: A subscription that filters nothing.
WHOLE = SubscriptionData(topic="", sub_version=0)


class MessagePlace(NamedTuple):
    address: str
    physical_offset: int


class PulledMessages(NamedTuple):
    messages: list[Any]
    remark: str
    next_offset: int

    def at(self, offset: int) -> Any:
        return next((message for message in self.messages if message.queue_offset == offset), None)


class Messages:
    """`admin.messages`: looks up messages, as `MessageView`s, with their traces and their fate."""

    def __init__(self, client: AdminClient, groups: Groups) -> None:
        self._client, self._groups = client, groups

    def by_id(self, message_id: str, topic: str | None = None) -> Any:
        """The message with a broker's id or, with a topic, a producer's id.

        Raises:
            UnknownMessageError: There is none.
            ArgumentError: The id is no broker's id, and there is no topic.
        """
        try:
            # both kinds have 32 digits with IPv4: whether it is the broker's only the broker can say
            place = place_of_id(message_id)
        except ArgumentError:
            if topic is None:
                raise
            return self.by_unique_key(topic, message_id)
        try:
            return self._view(place)
        except (ResponseError, UnknownMessageError):
            if topic is None:
                raise
        return self.by_unique_key(topic, message_id)

    def by_key(
        self, topic: str, key: str, *, max_messages: int = 64, begin_timestamp: Time = 0, end_timestamp: Time = LATEST
    ) -> list[Any]:
        """The messages with a key, of all brokers, oldest first.

        Args:
            topic: The topic.
            key: One of the message's keys.
            max_messages: Limit per broker.
            begin_timestamp: Earliest store time, as in `MessageStore.scan`.
            end_timestamp: Latest store time.

        Returns:
            An empty list if there is none, where Java raises error 208.
        """
        messages = query(
            self._client,
            self._client.brokers_of(topic),
            topic,
            key,
            is_unique_key=False,
            max_messages=max_messages,
            begin_timestamp=milliseconds_of("begin_timestamp", begin_timestamp),
            end_timestamp=milliseconds_of("end_timestamp", end_timestamp),
        )
        return [message for message in messages if key in (message.keys or "").split(" ")]

    def by_unique_key(self, topic: str, unique_key: str) -> Any:
        """The message with a producer's id; the one stored first if there are several.

        Raises:
            UnknownMessageError: There is none.
        """
        listed = query(self._client, self._client.brokers_of(topic), topic, unique_key)
        messages = [message for message in listed if message.msg_id == unique_key]
        if not messages:
            raise UnknownMessageError(f"no message of the topic {topic} has the id {unique_key}")
        # a producer that sends once more, as after a timeout, keeps the id
        return min(messages, key=lambda message: message.store_timestamp)

    def by_offset(self, queue: MessageQueue, offset: int) -> Any:
        """The message at an offset of a queue.

        Raises:
            UnknownMessageError: There is none.
            ResponseError: 17, the topic does not exist; or the broker refuses.
        """
        pulled = pull(self._client, self._client.broker_of(queue.topic, queue.broker_name), queue, offset, WHOLE)
        message = pulled.at(offset)
        if message is None:
            raise UnknownMessageError(
                f"{queue.topic} queue {queue.queue_id} of {queue.broker_name} has no message at offset {offset}: "
                f"{pulled.remark or 'it has others'}"
            )
        return message

    def trace(
        self,
        message_id: str,
        *,
        trace_topic: str = TRACE_TOPIC,
        max_messages: int = 64,
        begin_timestamp: Time = 0,
        end_timestamp: Time = LATEST,
    ) -> list[TraceView]:
        """Steps of a message from the traces of its producer and its consumers.

        Clients write traces only with `enable_msg_trace`, about half a second later.

        Args:
            message_id: The producer's id, also one of a batch sent by rmqfast.
            trace_topic: The topic of the traces.
            max_messages: Limit of trace messages per broker; each may hold several steps.
            begin_timestamp: Earliest store time of the traces, as in `MessageStore.scan`.
            end_timestamp: Latest store time of the traces.

        Returns:
            The steps in chronological order; empty if there is no trace.

        Raises:
            ResponseError: 17, the trace topic does not exist.

        Example:
            >>> import time, rmqfast
            >>> from rmqfast.admin import Admin
            >>> from rmqfast.client.producer import Producer
            >>> with rmqfast.EmbeddedCluster(config={"traceTopicEnable": "true"}) as cluster:
            ...     with Producer("shop", name_server=cluster.name_server, enable_msg_trace=True) as producer:
            ...         sent = producer.send(rmqfast.Message("orders", b"paid", tags="paid"))
            ...     with Admin(name_server=cluster.name_server) as admin:
            ...         (step,) = admin.messages.trace(sent.msg_id)
            >>> step.trace_type.value, step.group, step.topic, step.tags, step.status
            ('Pub', 'shop', 'orders', 'paid', 'success')
        """
        traces = self.by_key(
            trace_topic,
            message_id,
            max_messages=max_messages,
            begin_timestamp=begin_timestamp,
            end_timestamp=end_timestamp,
        )
        return trace_views(message_id, traces)

    def track(self, message: Any, group: str | None = None) -> list[MessageTrack]:
        """Fate of a message in a group, as mqadmin reports it; `explain` tells more.

        Without `group`: in each group that consumes the topic.

        Raises:
            ResponseError: 17, the topic does not exist.
        """
        groups: Sequence[str] = [group] if group is not None else self._consumers(message.topic)
        return [track_of(self._client, self._groups, message, each) for each in groups]

    def _consumers(self, topic: str) -> Sequence[str]:
        first = self._client.brokers_of(topic)[0]
        return consumers_at(self._client, first.address, topic)

    def _view(self, place: MessagePlace) -> Any:
        address = self._client.translate(place.address)
        try:
            record = self._client.api.view_message(address, place.physical_offset, timeout=self._client.timeout)
        except ResponseError as error:
            raise UnknownMessageError(str(error)) from error
        return decode_viewed(record, place.physical_offset, self._name_of(place.address))

    def _name_of(self, address: str) -> str | None:
        brokers = self._client.cluster_info().brokers
        return next((name for name, broker in brokers.items() if address in broker.addresses.values()), None)


def pull(
    client: AdminClient,
    address: str,
    queue: MessageQueue,
    offset: int,
    subscription: SubscriptionData,
    *,
    max_messages: int = 1,
) -> PulledMessages:
    """Pulls messages of a subscription from an offset on.

    Raises:
        ResponseError: The broker refuses.
        RemotingProtocolError: The answer has messages of another queue.
    """
    fields = pull_fields(
        TOOLS_GROUP,
        queue,
        offset,
        max_messages,
        expression=subscription.sub_string,
        expression_type=subscription.expression_type,
        sub_version=subscription.sub_version,
    )
    answer = client.api.connections.request(address, RequestCode.PULL_MESSAGE, fields, timeout=client.timeout)
    fetched = read_answer(queue, offset, address, answer)
    # without MIN_OFFSET and MAX_OFFSET as properties: a message looks as it does when looked up by its id
    messages = decode_messages(answer.body, queue.broker_name) if answer.code == ResponseCode.SUCCESS else []
    return PulledMessages(messages, answer.remark or "", fetched.next_begin_offset)


def query(
    client: AdminClient,
    brokers: Iterable[BrokerAddress],
    topic: str,
    key: str,
    *,
    is_unique_key: bool = True,
    max_messages: int = 32,
    begin_timestamp: int = 0,
    end_timestamp: int = LATEST,
) -> list[Any]:
    """Messages that brokers find by a key's hash, oldest first. The caller filters by the key itself."""
    messages: list[Any] = []
    for broker in brokers:
        try:
            answer = client.api.query_message(
                broker.address,
                topic,
                key,
                max_messages=max_messages,
                begin_timestamp=begin_timestamp,
                end_timestamp=end_timestamp,
                is_unique_key=is_unique_key,
                timeout=client.timeout * SLOW,
            )
        except ResponseError as error:
            if error.code != ResponseCode.QUERY_NOT_FOUND:
                raise
        else:
            messages += decode_messages(answer.body, broker.broker_name)
    # the index has hashes of topic and key: messages of other topics with the same one come, too
    messages = [message for message in messages if message.topic == topic]
    return sorted(messages, key=lambda message: message.store_timestamp)


def place_of_id(message_id: str) -> MessagePlace:
    """Parses a broker's message id; `ArgumentError` if the text is none."""
    parts = parse_message_id(message_id)
    if parts is None:
        raise ArgumentError(f"message_id: expected 32 or 56 hexadecimal digits, got {message_id[:60]!r}")
    host, port, physical_offset = parts
    if not 0 < port < 65_536:
        raise ArgumentError(f"message_id: expected a port in it, got {port} in {message_id}: it may be a producer's id")
    return MessagePlace(f"[{host}]:{port}" if ":" in host else f"{host}:{port}", physical_offset)
