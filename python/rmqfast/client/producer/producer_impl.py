"""What all producers do besides sending: they start, know where topics are, and end.

Source: `DefaultMQProducerImpl`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Self

from rmqfast._native import InFlight, MessageEncoder
from rmqfast.client.instance import ClientConfig, ClientInstance, ServiceState, TopicPublishInfo
from rmqfast.client.instance.namespaces import wrap
from rmqfast.client.instance.topic_publish_info import publish_info_of
from rmqfast.client.instance.unique_ids import unique_ids
from rmqfast.client.instance.validators import check_producer_group
from rmqfast.client.producer.async_send import AsyncSends
from rmqfast.client.producer.fault_strategy import FaultStrategy
from rmqfast.client.producer.options import ProducerOptions
from rmqfast.client.producer.publish_queues import PublishQueues
from rmqfast.client.producer.send_hook import SendHook, SendHooks
from rmqfast.client.producer.send_kernel import SendKernel
from rmqfast.errors import ClientError
from rmqfast.remoting import RequestCode

_log = logging.getLogger(__name__)

#: The group of the producer that an instance has for its consumers.
INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"
#: How long an end waits for what is on its way, in seconds.
_LONGEST_DRAIN = 3.0


class ProducerImpl:
    """A producer without its sends; a `ProducerInner`.

    Args:
        group: The producer group.
        config: How to reach the cluster.
        options: How to send.
    """

    def __init__(self, group: str, config: ClientConfig, options: ProducerOptions) -> None:
        self.options = options
        self.strategy = FaultStrategy(is_enabled=options.leaves_slow_brokers)
        self.hooks = SendHooks()
        self._config, self._given_group, self._namespace = config, group, config.namespace
        self._topics: dict[str, PublishQueues | None] = {}
        self._checked: set[str] = set()
        self._state, self._lock = ServiceState.CREATE_JUST, threading.Lock()
        self._in_flight = InFlight(options.max_in_flight, options.max_in_flight_bytes)
        self._owns_instance = True

    @property
    def group(self) -> str:
        """The producer group, with its namespace."""
        return wrap(self._config.namespace, self._given_group)

    @property
    def client_id(self) -> str:
        """What brokers know this client as.

        Raises:
            ClientError: It is not started.
        """
        self._check_running()
        return self._instance.client_id

    def start(self) -> None:
        """Starts it: from now on brokers know it, and it may send.

        Raises:
            ClientError: It was started before, the group is not allowed or has a producer in this instance, or no name
                server is known.

        Source: `DefaultMQProducerImpl.start`.
        """
        with self._lock:
            if self._state is not ServiceState.CREATE_JUST:
                raise _not_ok(f"maybe started once, {self._state}")
            check_producer_group(self._given_group)
            config = self._config.with_pid_instance_name()
            client_id = config.client_id()
            instance = ClientInstance.of(config, client_id)
            try:
                instance.register_producer(self.group, self)
            except BaseException:
                instance.release()
                raise
            try:
                self._topics[self.options.create_topic_key] = None
                instance.start()
            except BaseException:
                instance.unregister_producer(self.group)
                instance.release()
                raise
            self._run_on(instance)
        instance.send_heartbeats()
        _log.info("the producer [%s] start OK", self.group)

    def start_inside(self, instance: ClientInstance) -> None:
        """Starts it as a part of an instance, which does not know it and ends with its other users.

        Source: `MQClientInstance`, its `defaultMQProducer`.
        """
        self._owns_instance = False
        self._run_on(instance)

    def shutdown(self) -> None:
        """Ends it: waits a little for what is on its way, then brokers are told. Once more is nothing.

        Source: `DefaultMQProducerImpl.shutdown`.
        """
        with self._lock:
            if self._state is not ServiceState.RUNNING:
                return
            self._state = ServiceState.SHUTDOWN_ALREADY
        if not self._in_flight.wait_until_empty(_LONGEST_DRAIN):
            _log.warning("the producer [%s] ends while %d sends are on their way", self.group, self._in_flight.count)
        self._end()
        if self._owns_instance:
            self._instance.unregister_producer(self.group)
            self._instance.release()
        _log.info("the producer [%s] shutdown OK", self.group)

    def register_send_hook(self, hook: SendHook) -> None:
        """Has a hook told of each attempt to send from now on.

        Source: `DefaultMQProducerImpl.registerSendMessageHook`.
        """
        self.hooks.add(hook)

    def publish_topics(self) -> Sequence[str]:
        """The topics that it sends to."""
        return list(self._topics)

    def is_publish_topic_need_update(self, topic: str) -> bool:
        """Whether it sends to a topic and knows no queues of it."""
        found = self._topics.get(topic, self)
        return found is None or (isinstance(found, PublishQueues) and not found.queues)

    def update_topic_publish_info(self, topic: str, info: TopicPublishInfo) -> None:
        """Takes the queues of a topic.

        Source: `DefaultMQProducerImpl.updateTopicPublishInfo`.
        """
        self._topics[topic] = PublishQueues(info)

    def check_transaction_state(self, address: str, message: Any, ext_fields: Mapping[str, str]) -> None:
        """Is asked by a broker how a transaction ended, of which this producer knows nothing.

        Source: `DefaultMQProducerImpl.checkTransactionState`.
        """
        _log.warning(
            "broker %s asks for the transaction %s of group %s, which is no TransactionProducer",
            address,
            ext_fields.get("transactionId", message.msg_id),
            self.group,
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def _run_on(self, instance: ClientInstance) -> None:
        options, config = self.options, self._config
        self._instance = instance
        self._encoder = MessageEncoder(
            self.group,
            unique_ids(),
            default_topic=options.create_topic_key,
            default_topic_queue_nums=options.default_topic_queue_nums,
            compress_over=options.compress_over,
            instance_id=config.namespace or None,
            is_unit_mode=config.is_unit_mode,
        )
        self._kernel, self._reply_kernel = (
            SendKernel(instance, self.group, self.hooks, self._encoder, options.max_message_size, code=code)
            for code in (None, RequestCode.SEND_REPLY_MESSAGE_V2)
        )
        self._asyncs, self._reply_asyncs = (
            AsyncSends(kernel, instance, self.strategy, self._in_flight, options.async_retries)
            for kernel in (self._kernel, self._reply_kernel)
        )
        self._state = ServiceState.RUNNING

    def _end(self) -> None:
        """What else ends with it."""

    def _check_running(self) -> None:
        if self._state is not ServiceState.RUNNING:
            raise _not_ok(str(self._state))

    def _queues_of(self, topic: str) -> PublishQueues:
        """The queues of a topic; of one that is not there those that it would get.

        Args:
            topic: With its namespace.

        Raises:
            ClientError: Nobody has the topic, or no name server answers.

        Source: `DefaultMQProducerImpl.tryToFindTopicPublishInfo`.
        """
        # an instance tells its own producers of new routes, but not the one inside it
        queues = self._topics.get(topic) if self._owns_instance else self._known(topic)
        if queues is not None and queues.queues:
            return queues
        instance, options = self._instance, self.options
        self._topics.setdefault(topic, None)
        instance.update_route(topic)
        if self._known(topic) is None:
            key, nums = options.create_topic_key, options.default_topic_queue_nums
            instance.update_route(topic, default_topic=key, default_queue_nums=nums)
        queues = self._known(topic)
        if queues is None or not queues.queues:
            raise instance.no_route_error(topic)
        if self._owns_instance:
            # Java's brokers hear of it a second later: too late for whoever has to be asked for a transaction
            instance.send_heartbeats()
        return queues

    def _known(self, topic: str) -> PublishQueues | None:
        """The queues of a topic by its newest route."""
        queues, route = self._topics.get(topic), self._instance.routes.get(topic)
        if route is not None and (queues is None or queues.info.route is not route):
            queues = self._topics[topic] = PublishQueues(publish_info_of(topic, route))
        return queues


def _not_ok(state: str) -> ClientError:
    return ClientError(
        f"The producer service state not OK, {state}",
        next_step="a producer is started once, by start() or with; after shutdown() make another one",
    )
