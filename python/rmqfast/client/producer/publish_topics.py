"""The topics that a producer sends to: whether a message may go there, which queues they have, how one is made.

Source: `DefaultMQProducerImpl.topicPublishInfoTable`, `tryToFindTopicPublishInfo`, `MQAdminImpl`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rmqfast.client.instance import ClientConfig, ClientInstance, TopicPublishInfo
from rmqfast.client.instance.namespaces import unwrap, wrap
from rmqfast.client.instance.routes import RouteTable, publish_info_of
from rmqfast.client.instance.validators import check_message, check_topic
from rmqfast.client.producer.options import ProducerOptions
from rmqfast.client.producer.publish_queues import PublishQueues, QueueSelector
from rmqfast.errors import ArgumentError, ClientError, RmqError
from rmqfast.message import Message, MessageQueue
from rmqfast.remoting import RequestCode
from rmqfast.remoting.protocol.broker_data import MASTER_ID

TIMERS = frozenset({"TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"})
#: `MQVersion.Version.V5_0_0`, as a broker says it in its answers.
_V5_0_0 = 413
_CREATE_TIMEOUT = 5.0
_READ_WRITE = 6


class PublishTopics:
    """The topics of a producer."""

    def __init__(self, config: ClientConfig, options: ProducerOptions) -> None:
        self._config, self._options, self._namespace = config, options, config.namespace
        self._queues: dict[str, PublishQueues | None] = {options.create_topic_key: None}
        self._checked: set[str] = set()
        self._instance: ClientInstance
        self._is_told = True

    def use(self, instance: ClientInstance, *, is_told: bool) -> None:
        """Asks an instance for routes from now on.

        Args:
            instance: The instance.
            is_told: Whether it tells of new routes by itself, as it tells its registered producers.
        """
        self._instance, self._is_told = instance, is_told

    def names(self) -> Sequence[str]:
        """The topics that are sent to, with their namespaces."""
        return list(self._queues)

    def needs_update(self, topic: str) -> bool:
        """Whether a topic is sent to and no queues of it are known."""
        queues = self._queues.get(topic)
        return topic in self._queues and (queues is None or not queues.queues)

    def update(self, topic: str, info: TopicPublishInfo) -> None:
        """Takes the queues of a topic.

        Source: `DefaultMQProducerImpl.updateTopicPublishInfo`.
        """
        self._queues[topic] = PublishQueues(info, self._namespace)

    def queues_for(self, message: Message) -> PublishQueues:
        """Checks a message, and finds the queues that it may go to.

        Raises:
            ClientError: The message is not such as brokers take, nobody has the topic, or no name server answers.
        """
        topic, body = message.topic, message.body
        if not body or topic not in self._checked or len(body) > self._options.max_message_size:
            self.check(message)
        if self._namespace:
            topic = wrap(self._namespace, topic)
        # the instance brings new routes to producers that are registered; the one inside an instance has to look
        queues = self._queues.get(topic) if self._is_told else None
        if queues is None or not queues.queues:
            queues = self.queues_of(topic)
        if message.properties and is_timed(message):
            _check_timers(queues, self._instance.routes)
        return queues

    def queues_of(self, topic: str) -> PublishQueues:
        """The queues of a topic; of one that is not there those that it would get.

        Args:
            topic: With its namespace.

        Raises:
            ClientError: Nobody has the topic, or no name server answers.

        Source: `DefaultMQProducerImpl.tryToFindTopicPublishInfo`.
        """
        queues = self._queues.get(topic) if self._is_told else self._by_newest_route(topic)
        if queues is not None and queues.queues:
            return queues
        instance, options = self._instance, self._options
        # from now on the instance refreshes the route of the topic
        self._queues.setdefault(topic, None)
        instance.update_route(topic)
        if self._by_newest_route(topic) is None:
            # nobody has the topic: these are the queues that its broker will make when the first message arrives
            key, nums = options.create_topic_key, options.default_topic_queue_nums
            instance.update_route(topic, default_topic=key, default_queue_nums=nums)
        queues = self._by_newest_route(topic)
        if queues is None or not queues.queues:
            raise instance.no_route_error(topic)
        if self._is_told:
            # Java's brokers hear of it a second later: too late for whoever has to be asked for a transaction
            instance.send_heartbeats()
        return queues

    def known_address(self, broker_name: str) -> str | None:
        """The master of a broker, as far as is known."""
        return self._instance.routes.publish_address(broker_name)

    def address_of(self, topic: str, broker_name: str) -> str:
        """The master of a broker; asks for the route of the topic once more where none is known.

        Raises:
            ClientError: There is none.
        """
        address = self._instance.routes.publish_address(broker_name)
        if address is None:
            self._instance.update_route(topic)
            address = self.known_address(broker_name)
        if address is None:
            raise ClientError(
                f"The broker[{broker_name}] not exist",
                next_step="it has no master in the routes: see that its master is connected to this name server",
            )
        return address

    def are_at_hand(self, messages: Sequence[Message]) -> bool:
        """Whether the queues of messages are known, so that nobody has to be asked."""
        queues = self._queues.get(wrap(self._namespace, messages[0].topic))
        return queues is not None and bool(queues.queues)

    def check(self, message: Message) -> None:
        """Whether brokers take a message.

        Raises:
            ClientError: They do not (13).
        """
        topic, body = message.topic, message.body
        if topic in self._checked and body and len(body) <= self._options.max_message_size:
            return
        check_message(message, max_message_size=self._options.max_message_size)
        self._checked.add(topic)

    def chosen(
        self,
        message: Message,
        queues: PublishQueues,
        queue: MessageQueue | None,
        selector: QueueSelector | None,
        argument: Any,
    ) -> MessageQueue:
        """The queue that the application wants.

        Raises:
            ArgumentError: It says so twice.
            ClientError: It chose none, or one of another topic.
        """
        if selector is not None:
            if queue is not None:
                raise ArgumentError("expected a queue or a selector, got both")
            queue = selector(queues.queues, message, argument)
            if queue is None:
                raise ClientError("select message queue return null.")
        if queue is None:
            raise ClientError("send message queue is null.")
        return self.own(queues, queue)

    def own(self, queues: PublishQueues, queue: MessageQueue) -> MessageQueue:
        """A queue of a topic, which the application may have named with its namespace.

        Raises:
            ClientError: It is of another topic.
        """
        topic = queues.shown_topic
        if queue.topic == topic:
            return queue
        if unwrap(self._namespace, queue.topic) != topic:
            raise ClientError("message's topic not equal mq's topic")
        return MessageQueue(topic, queue.broker_name, queue.queue_id)

    def fetch(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that may be written to, as a name server has them now.

        Raises:
            ClientError: Nobody has the topic, or no name server answers.

        Source: `MQAdminImpl.fetchPublishMessageQueues`.
        """
        check_topic(topic)
        wrapped = wrap(self._namespace, topic)
        self._instance.update_route(wrapped)
        route = self._instance.routes.get(wrapped)
        if route is None:
            raise self._instance.no_route_error(wrapped)
        return list(PublishQueues(publish_info_of(wrapped, route), self._namespace).queues)

    def create(self, topic: str, queues: int, key: str | None, attributes: Mapping[str, str] | None) -> None:
        """Makes a topic at all brokers that have `key`, or what new topics are made after.

        Raises:
            ClientError: Nobody has `key`, or a broker does not make the topic.

        Source: `MQAdminImpl.createTopic`.
        """
        check_topic(topic)
        source = key or self._options.create_topic_key
        self._instance.update_route(source)
        route = self._instance.routes.get(source)
        if route is None:
            raise self._instance.no_route_error(source)
        fields = {
            "topic": wrap(self._namespace, topic),
            "defaultTopic": source,
            "readQueueNums": queues,
            "writeQueueNums": queues,
            "perm": _READ_WRITE,
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": 0,
            "order": False,
            **(attributes or {}),
        }
        for broker in sorted(route.broker_datas, key=lambda each: each.broker_name):
            if MASTER_ID in broker.addresses:
                address = self._config.translated(broker.addresses[MASTER_ID])
                self._create_at(address, fields)

    def _create_at(self, address: str, fields: Mapping[str, object]) -> None:
        code = RequestCode.UPDATE_AND_CREATE_TOPIC
        try:
            self._instance.api.ask(address, code, fields, timeout=_CREATE_TIMEOUT)
        except RmqError as error:
            raise ClientError(f"no broker makes the topic: {error}") from error

    def _by_newest_route(self, topic: str) -> PublishQueues | None:
        queues, route = self._queues.get(topic), self._instance.routes.get(topic)
        if route is not None and (queues is None or queues.info.route is not route):
            queues = self._queues[topic] = PublishQueues(publish_info_of(topic, route), self._namespace)
        return queues


def is_timed(message: Message) -> bool:
    """Whether a message has a timer of RocketMQ 5 that counts: beside a delay level none does.

    Example:
        >>> is_timed(Message("orders", b"later", delay=90))
        True

    Source: `HookUtils.checkIfTimerMessage`.
    """
    properties = message.properties
    return not TIMERS.isdisjoint(properties) and not message.delay_level and "DELAY" not in properties


def _check_timers(queues: PublishQueues, routes: RouteTable) -> None:
    """Whether the brokers of these queues have timers, as far as they have told their release.

    Raises:
        ClientError: One is older than 5.0, and would deliver the message at once.
    """
    for name in sorted({queue.broker_name for queue in queues.queues}):
        address = routes.publish_address(name)
        version = 0 if address is None else routes.version(name, address)
        if 0 < version < _V5_0_0:
            raise ClientError(
                f"a message with a timer needs a broker of RocketMQ 5.0 or later, but {name} at {address} is older "
                f"(version {version}): it would deliver the message at once",
                next_step="give a delay_level, which every broker has, in place of delay or deliver_at",
            )
