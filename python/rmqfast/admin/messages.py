"""Single messages: finds them by id, key or queue offset, and reports their traces and their fate.

Source: `MQAdminImpl`, `DefaultMQAdminExtImpl`, `QueryMsgByOffsetSubCommand`, `QueryMsgTraceByIdSubCommand`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rmqfast._native import parse_message_id, pull_fields
from rmqfast.admin.admin_client import SLOW, AdminClient, BrokerAddress
from rmqfast.admin.groups import Groups, consumers_at
from rmqfast.admin.message_track import MessageTrack, track_of
from rmqfast.admin.questions import Question
from rmqfast.arguments import Time, milliseconds_of
from rmqfast.client.instance.api import as_fields
from rmqfast.client.instance.broker_requests import decode_messages, decode_viewed
from rmqfast.client.pulling.single_pulls import read_answer
from rmqfast.client.trace import TRACE_TOPIC, TraceView, trace_views
from rmqfast.errors import ArgumentError, ResponseError, UnknownMessageError
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode, ResponseCode
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

#: Group under which administrators pull; every broker has this group.
TOOLS_GROUP = "TOOLS_CONSUMER"
LATEST = (1 << 63) - 1
#: Subscription without a filter.
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
    """`admin.messages`: finds messages as `MessageView`s, and reports their traces and their fate."""

    def __init__(self, client: AdminClient, groups: Groups) -> None:
        self._client, self._groups = client, groups

    def by_id(self, message_id: str, topic: str | None = None) -> Any:
        """Returns the message with an id of a broker or, given a topic, an id of a producer.

        Raises `UnknownMessageError` if no message has the id, and `ArgumentError` for a producer's id without `topic`.
        """
        try:
            # With IPv4, both kinds of id have 32 digits, so ask the broker first.
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
        """Returns the messages with a key, from all brokers, oldest first. Empty where Java raises error 208.

        `max_messages` limits the messages per broker. The timestamps limit the store time, as in `MessageStore.scan`.
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
        # Another key may have the same hash.
        return [message for message in messages if key in (message.keys or "").split(" ")]

    def by_unique_key(self, topic: str, unique_key: str) -> Any:
        """Returns the first stored message with a producer's id. Raises `UnknownMessageError` if there is none."""
        listed = query(self._client, self._client.brokers_of(topic), topic, unique_key)
        messages = [message for message in listed if message.msg_id == unique_key]
        if not messages:
            raise UnknownMessageError(f"no message of the topic {topic} has the id {unique_key}")
        # A producer that retries after a timeout stores a second message with the same id.
        return min(messages, key=lambda message: message.store_timestamp)

    def by_offset(self, queue: MessageQueue, offset: int) -> Any:
        """Returns the message at an offset of a queue. Raises `UnknownMessageError` if there is none."""
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
        """Returns the steps of a message in order, from the traces that its producer and consumers sent.

        Clients write traces only with `enable_msg_trace`, about half a second after the step. `ResponseError` 17 if the
        trace topic does not exist.

        Args:
            message_id: Producer's id of a message, or of a batch sent by rmqfast.
            trace_topic: Topic that holds the traces.
            max_messages: Limit of trace messages per broker; one trace message may hold several steps.
            begin_timestamp: Earliest store time of the traces, as in `MessageStore.scan`.
            end_timestamp: Latest store time of the traces.

        Example:
            >>> from rmqfast import Admin, EmbeddedCluster, Message, Producer
            >>> with EmbeddedCluster(config={"traceTopicEnable": "true"}) as cluster:
            ...     with Producer("shop", name_server=cluster.name_server, enable_msg_trace=True) as producer:
            ...         sent = producer.send(Message("orders", b"paid", tags="paid"))
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
        """Returns the fate of a message in a group, in the terms of mqadmin. `explain` tells more.

        Without `group`, returns the fate in each group that consumes the topic.
        """
        groups: Sequence[str] = [group] if group is not None else self._consumers(message.topic)
        return [track_of(self._client, self._groups, message, each) for each in groups]

    def _consumers(self, topic: str) -> Sequence[str]:
        # As in mqadmin, only the first broker is asked.
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
    """Pulls and returns messages that match a subscription, beginning at an offset."""
    question = pull_question(address, queue, offset, subscription, max_messages=max_messages)
    # Not `ask`, since an answer such as PULL_NOT_FOUND is no error here.
    fields = as_fields(question.ext_fields)
    answer = client.api.connections.request(address, question.code, fields, timeout=client.timeout)
    fetched = read_answer(queue, offset, address, answer)
    # Without the properties MIN_OFFSET and MAX_OFFSET, so that the message equals one looked up by id.
    messages = decode_messages(answer.body, queue.broker_name) if answer.code == ResponseCode.SUCCESS else []
    return PulledMessages(messages, answer.remark or "", fetched.next_begin_offset)


def pull_question(
    address: str, queue: MessageQueue, offset: int, subscription: SubscriptionData = WHOLE, *, max_messages: int = 1
) -> Question:
    """Returns the request for messages that match a subscription, beginning at an offset."""
    fields = pull_fields(
        TOOLS_GROUP,
        queue,
        offset,
        max_messages,
        expression=subscription.sub_string,
        expression_type=subscription.expression_type,
        sub_version=subscription.sub_version,
    )
    return Question(address, RequestCode.PULL_MESSAGE, fields)


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
    """Returns messages by the hash of a key, oldest first. The caller must compare the key itself."""
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
    # The index stores only hashes of topic and key, so messages of other topics may match.
    messages = [message for message in messages if message.topic == topic]
    return sorted(messages, key=lambda message: message.store_timestamp)


def place_of_id(message_id: str) -> MessagePlace:
    """Parses a message id that a broker gave. Raises `ArgumentError` for other strings."""
    parts = parse_message_id(message_id)
    if parts is None:
        raise ArgumentError(f"message_id: expected 32 or 56 hexadecimal digits, got {message_id[:60]!r}")
    host, port, physical_offset = parts
    # A producer's id has the same length, but its digits rarely make a valid port.
    if not 0 < port < 65_536:
        raise ArgumentError(f"message_id: expected a port in it, got {port} in {message_id}: it may be a producer's id")
    if physical_offset < 0:
        raise ArgumentError(f"message_id: expected an offset of 0 or more in it, got {physical_offset} in {message_id}")
    return MessagePlace(f"[{host}]:{port}" if ":" in host else f"{host}:{port}", physical_offset)
