"""A producer as a member of its group: its life in a client instance, and the parts that it is made of.

Source: `DefaultMQProducerImpl`, `MQProducerInner`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from rmqfast._native import InFlight
from rmqfast.client.instance import ClientConfig, ClientInstance, ServiceState, TopicPublishInfo
from rmqfast.client.instance.namespaces import wrap
from rmqfast.client.instance.validators import check_producer_group
from rmqfast.client.producer.hooks import Hooks, SendHook
from rmqfast.client.producer.options import ProducerOptions
from rmqfast.client.producer.publish_topics import PublishTopics
from rmqfast.client.producer.sender import Sender
from rmqfast.client.producer.transactions import TransactionChecks
from rmqfast.errors import ClientError
from rmqfast.logs import QuietLock, logger_of

_log = logger_of(__name__)

#: Answers a broker, at an address, that asks how the transaction of a message ended.
CheckBack: TypeAlias = Callable[[str, Any, Mapping[str, str]], None]
#: How long an end waits for what is on its way, and for an answer to a broker, in seconds.
_LONGEST_DRAIN = _LONGEST_CHECK = 3.0


class ProducerMember:
    """A member of a producer group; its instance knows it as a `ProducerInner`."""

    instance: ClientInstance
    sender: Sender

    def __init__(self, group: str, config: ClientConfig, options: ProducerOptions) -> None:
        self.config: Final = config
        self.options: Final = options
        self.state: ServiceState = ServiceState.CREATE_JUST
        self.topics: Final = PublishTopics(config, options)
        self.hooks: Hooks[SendHook] = Hooks("sendMessage")
        self.in_flight: Final = InFlight(options.max_in_flight, options.max_in_flight_bytes)
        self._bare_group, self._lock = group, QuietLock()
        self._is_registered = False
        self._check_back: CheckBack | None = None
        self._checks = TransactionChecks(f"rmqfast-check-{group}")

    @property
    def group(self) -> str:
        """The producer group, with its namespace."""
        return wrap(self.config.namespace, self._bare_group)

    def answer_with(self, check_back: CheckBack) -> None:
        """Has brokers that ask for transactions answered, on a thread of its own."""
        self._check_back = check_back

    def start(self) -> None:
        """Starts it: from now on brokers know it, and it may send.

        Raises:
            ClientError: It was started before, the group is not allowed or has a producer in this instance, or no name
                server is known.

        Source: `DefaultMQProducerImpl.start`.
        """
        with self._lock:
            if self.state is not ServiceState.CREATE_JUST:
                raise _not_ok(f"maybe started once, {self.state}")
            check_producer_group(self._bare_group)
            config = self.config.with_pid_instance_name()
            instance = ClientInstance.of(config, config.client_id())
            try:
                instance.register_producer(self.group, self)
            except BaseException:
                instance.release()
                raise
            try:
                instance.start()
            except BaseException:
                instance.unregister_producer(self.group)
                instance.release()
                raise
            self._is_registered = True
            self.run_on(instance)
        instance.send_heartbeats()
        _log.info("the producer [%s] start OK", self.group)

    def run_on(self, instance: ClientInstance) -> None:
        """Sends by way of an instance; one that does not know it ends with its other users.

        Source: `MQClientInstance`, its `defaultMQProducer`.
        """
        self.instance = instance
        self.topics.use(instance, is_told=self._is_registered)
        self.sender = Sender(
            instance, self.group, self.options, topics=self.topics, hooks=self.hooks, in_flight=self.in_flight
        )
        self.state = ServiceState.RUNNING

    def shutdown(self) -> None:
        """Ends it: waits a little for what is on its way, then brokers are told. Once more is nothing.

        Source: `DefaultMQProducerImpl.shutdown`.
        """
        with self._lock:
            if self.state is not ServiceState.RUNNING:
                return
            self.state = ServiceState.SHUTDOWN_ALREADY
        if not self.in_flight.wait_until_empty(_LONGEST_DRAIN):
            _log.warning("the producer [%s] ends while %d sends are on their way", self.group, self.in_flight.count)
        self._checks.close(_LONGEST_CHECK)
        # the producer inside an instance ends with that
        if self._is_registered:
            self.instance.unregister_producer(self.group)
            self.instance.release()
        _log.info("the producer [%s] shutdown OK", self.group)

    @property
    def is_registered(self) -> bool:
        """Whether it runs, and brokers know it."""
        return self.state is ServiceState.RUNNING and self._is_registered and not self.instance.is_closed

    def check_running(self) -> None:
        """Whether it may send.

        Raises:
            ClientError: It was not started, or has ended.
        """
        if self.state is not ServiceState.RUNNING:
            raise _not_ok(str(self.state))

    def publish_topics(self) -> Sequence[str]:
        """The topics that it sends to."""
        return self.topics.names()

    def is_publish_topic_need_update(self, topic: str) -> bool:
        """Whether it sends to a topic and knows no queues of it."""
        return self.topics.needs_update(topic)

    def update_topic_publish_info(self, topic: str, info: TopicPublishInfo) -> None:
        """Takes the queues of a topic."""
        self.topics.update(topic, info)

    def check_transaction_state(self, address: str, message: Any, ext_fields: Mapping[str, str]) -> None:
        """Has somebody who knows answer a broker that asks how a transaction ended.

        Source: `DefaultMQProducerImpl.checkTransactionState`.
        """
        if self._check_back is None:
            _log.warning(
                "broker %s asks for the transaction %s of group %s, which is no TransactionProducer",
                address,
                ext_fields.get("transactionId", message.msg_id),
                self.group,
            )
        elif not self._checks.submit(partial(self._check_back, address, message, ext_fields)):
            _log.warning("a question of %s about a transaction of group %s is dropped", address, self.group)


def _not_ok(state: str) -> ClientError:
    return ClientError(
        f"The producer service state not OK, {state}",
        next_step="a producer is started once, by start() or with; after shutdown() make another one",
    )
