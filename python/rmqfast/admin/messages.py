"""Single messages: finds them by id, key or queue offset, and reports their traces and their fate.

Source: `MQAdminImpl`, `DefaultMQAdminExtImpl`, `QueryMsgByOffsetSubCommand`, `QueryMsgTraceByIdSubCommand`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from rmqfast._native import parse_message_id
from rmqfast.admin.admin_client import SLOW, AdminClient, BrokerAddress, unless
from rmqfast.admin.explanation import Explanation
from rmqfast.admin.groups import Groups, consumers_at
from rmqfast.admin.message_event import MessageEvent
from rmqfast.admin.message_page import MessagePage, PageReader, Position
from rmqfast.admin.message_track import MessageTrack, track_of
from rmqfast.admin.pulls import PULL_SIZE, WHOLE, pull
from rmqfast.admin.timeline import timeline_of
from rmqfast.arguments import Duration, Time, integer, milliseconds_of
from rmqfast.arguments import seconds as seconds_of
from rmqfast.client.consumer.subscription import MessageSelector, build_subscription_data
from rmqfast.client.instance.broker_requests import decode_messages, decode_viewed
from rmqfast.client.trace import TRACE_TOPIC, TraceView, trace_views
from rmqfast.errors import ArgumentError, CorruptError, ResponseError, UnknownMessageError
from rmqfast.message import MessageQueue
from rmqfast.remoting import ResponseCode
from rmqfast.remoting.protocol.subscription_data import SUB_ALL

LATEST = (1 << 63) - 1


class MessagePlace(NamedTuple):
    address: str
    physical_offset: int


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

    def page(
        self,
        topic: str,
        expression: str | MessageSelector = SUB_ALL,
        *,
        begin_timestamp: Time | None = None,
        older_than: Position | None = None,
        newer_than: Position | None = None,
        text: str = "",
        max_messages: int = PULL_SIZE,
        seconds: Duration = 3.0,
    ) -> MessagePage:
        """Returns messages of a topic in the order of their store times, over all queues: the newest ones unless told.

        Messages of one millisecond are in the order of brokers, queues and offsets.

        Args:
            topic: The topic; `ResponseError` 17 if it does not exist.
            expression: Tags, as `paid || sent`, or a `MessageSelector` with SQL92, which brokers must allow.
            begin_timestamp: Store time of the first message.
            older_than: A position of another page: the messages before it.
            newer_than: A position of another page: the messages behind it.
            text: Only messages with this text in body, keys or properties, in any case.
            max_messages: Number of messages. Large ones make it fewer: together they have 32 MiB at most.
            seconds: Time for the search, after which the page is not complete.

        Raises:
            ArgumentError: More than one place is given.
            ExpressionError: The expression has no tag, or is blank.

        Example:
            >>> import rmqfast
            >>> with rmqfast.EmbeddedCluster() as cluster, rmqfast.Admin(name_server=cluster.name_server) as admin:
            ...     admin.create_topic("orders", queues=1)
            ...     with rmqfast.Producer("shop", name_server=cluster.name_server) as producer:
            ...         for number in range(5):
            ...             sent = producer.send(rmqfast.Message("orders", f"order {number}".encode()))
            ...     newest = admin.messages.page("orders", max_messages=2)
            ...     before = admin.messages.page("orders", max_messages=2, older_than=newest.older)
            >>> [message.body for message in before.messages], [message.body for message in newest.messages]
            ([b'order 1', b'order 2'], [b'order 3', b'order 4'])
        """
        if sum(place is not None for place in (begin_timestamp, older_than, newer_than)) > 1:
            raise ArgumentError("expected one of begin_timestamp, older_than and newer_than, got several")
        most, wait = integer("max_messages", max_messages, 1), seconds_of("seconds", seconds)
        subscription = build_subscription_data(topic, expression)
        reader = PageReader(self._client, subscription, partial(_has_text, text.casefold()))
        if newer_than is not None:
            return reader.read_newer(newer_than, most, wait)
        if begin_timestamp is not None:
            time = milliseconds_of("begin_timestamp", begin_timestamp)
            return reader.read_newer(reader.position_at(time), most, wait, since=time)
        return reader.read_older(older_than, most, wait)

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

    def timeline(self, message: Any, explanation: Explanation) -> list[MessageEvent]:
        """Returns what happened to a message, in order: sent, stored, handed out, sent back, dead; and its traces.

        Only our brokers tell who was handed a message; of RocketMQ's, traces do, where members write them.

        Args:
            message: The message.
            explanation: The answer of `admin.explain` for it, in one group or all.

        Example:
            >>> from rmqfast import Admin, EmbeddedCluster, Message, Producer
            >>> with EmbeddedCluster() as cluster, Admin(name_server=cluster.name_server) as admin:
            ...     with Producer("shop", name_server=cluster.name_server) as producer:
            ...         sent = producer.send(Message("orders", b"paid"))
            ...     message = admin.view_message(sent.offset_msg_id)
            ...     [event.kind.value for event in admin.messages.timeline(message, admin.explain(message))]
            ['SENT', 'STORED']
        """
        return timeline_of(message, explanation, self.traces_if_there(message.msg_id))

    def traces_if_there(self, message_id: str | None) -> list[TraceView]:
        """Returns the steps of a message; empty without a trace topic, which brokers make with the first trace."""
        if not message_id:
            return []
        return unless(ResponseCode.TOPIC_NOT_EXIST, lambda: self.trace(message_id), [])

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


def _has_text(text: str, message: Any) -> bool:
    if not text:
        return True
    names = (message.keys or "", *message.properties.values())
    return any(text in name.casefold() for name in names) or text in _text_of(message)


def _text_of(message: Any) -> str:
    try:
        body: bytes = message.body
    except CorruptError:
        return ""
    return body.decode("utf-8", "replace").casefold()


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
