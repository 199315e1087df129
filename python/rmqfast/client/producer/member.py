"""The inner part of a producer, which its client instance calls.

Source: `DefaultMQProducerImpl`, `MQProducerInner`, `MQAdminImpl`, `MQClientInstance`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from rmqfast._native import MessageEncoder, MessageSender, Send
from rmqfast.client.instance import ClientConfig, ClientInstance, ServiceState
from rmqfast.client.instance.ids import unique_ids
from rmqfast.client.instance.namespaces import wrap
from rmqfast.client.instance.validators import check_producer_group, check_topic
from rmqfast.client.producer.hooks import HookedSends, Hooks, SendHook
from rmqfast.client.producer.message_batch import Batches
from rmqfast.client.producer.options import ProducerOptions
from rmqfast.client.producer.transactions import TransactionChecks
from rmqfast.errors import ClientError, RmqError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode
from rmqfast.remoting.protocol.broker_data import MASTER_ID

_log = logger_of(__name__)

#: A send whose attempts are driven by an event loop.
LoopSend: TypeAlias = Send
#: Answers a transaction check: called with the broker's address, the half message and the header.
CheckBack: TypeAlias = Callable[[str, Any, Mapping[str, str]], None]
#: Seconds that a shutdown waits for sends in flight, and for an answer to a broker.
_LONGEST_DRAIN = _LONGEST_CHECK = 3.0
_CREATE_TIMEOUT = 5.0
_READ_WRITE = 6


class ProducerMember:
    """The inner part of a producer, which its client instance knows as a `ProducerInner`."""

    instance: ClientInstance
    encoder: MessageEncoder
    batches: Batches
    sender: MessageSender

    def __init__(self, group: str, config: ClientConfig, options: ProducerOptions) -> None:
        self.config: Final = config
        self.options: Final = options
        self.state: ServiceState = ServiceState.CREATE_JUST
        self.hooks: Hooks[SendHook] = Hooks("sendMessage")
        self._bare_group, self._lock = group, QuietLock()
        self._is_registered = False
        self._check_back: CheckBack | None = None
        self._checks = TransactionChecks(f"rmqfast-check-{group}")

    @property
    def group(self) -> str:
        return wrap(self.config.namespace, self._bare_group)

    def answer_with(self, check_back: CheckBack) -> None:
        """Sets the function that answers transaction checks of brokers. It is called on a thread of its own."""
        self._check_back = check_back

    def start(self) -> None:
        with self._lock:
            if self.state is not ServiceState.CREATE_JUST:
                raise _not_ok(f"maybe started once, {self.state}")
            check_producer_group(self._bare_group)
            config = self.config.with_pid_instance_name()
            instance = ClientInstance.of(config, config.client_id())
            # before the instance's timers ask for its topics
            self._send_by(instance, is_registered=True)
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
            self.state = ServiceState.RUNNING
        instance.send_heartbeats()
        _log.info("the producer [%s] start OK", self.group)

    def run_on(self, instance: ClientInstance) -> None:
        """Sends over an existing instance without registering there. The producer ends with the instance."""
        self._send_by(instance, is_registered=False)
        self.state = ServiceState.RUNNING

    def _send_by(self, instance: ClientInstance, *, is_registered: bool) -> None:
        self.instance, options, namespace = instance, self.options, self.config.namespace
        # not in the constructor: ids contain the process id, and a fork may happen in between
        self.encoder = MessageEncoder(
            self.group,
            unique_ids(),
            default_topic=options.create_topic_key,
            default_topic_queue_nums=options.default_topic_queue_nums,
            compress_over=options.compress_over,
            instance_id=namespace or None,
            is_unit_mode=self.config.is_unit_mode,
        )
        self.batches = Batches(self.encoder, namespace, options)
        hooked = HookedSends(self.hooks, self.encoder, self.group, options.max_message_size)
        self.sender = instance.connections.sender(
            instance=instance,
            options=options,
            namespace=namespace,
            is_registered=is_registered,
            encoder=self.encoder,
            hooks=self.hooks,
            hooked=hooked,
        )

    def shutdown(self) -> None:
        """Waits a moment for sends in flight, unregisters and closes. A second call does nothing."""
        with self._lock:
            if self.state is not ServiceState.RUNNING:
                return
            self.state = ServiceState.SHUTDOWN_ALREADY
        if not self.sender.wait_until_sent(_LONGEST_DRAIN):
            _log.warning("the producer [%s] ends while %d sends are on their way", self.group, self.in_flight)
        self._checks.close(_LONGEST_CHECK)
        # the inner producer of an instance ends with the instance
        if self._is_registered:
            self.instance.unregister_producer(self.group)
            self.instance.release()
        _log.info("the producer [%s] shutdown OK", self.group)

    @property
    def is_registered(self) -> bool:
        """Whether the producer is running and registered at its instance."""
        return self.state is ServiceState.RUNNING and self._is_registered and not self.instance.is_closed

    @property
    def in_flight(self) -> int:
        return 0 if self.state is ServiceState.CREATE_JUST else self.sender.in_flight

    def check_running(self) -> None:
        """Raises unless the producer is running."""
        if self.state is not ServiceState.RUNNING:
            raise _not_ok(str(self.state))

    def publish_topics(self) -> Sequence[str]:
        return self.sender.topics()

    def fetch_queues(self, topic: str) -> list[MessageQueue]:
        check_topic(topic)
        wrapped = wrap(self.config.namespace, topic)
        self.instance.update_route(wrapped)
        queues = self.sender.newest_queues(topic)
        if queues is None:
            raise self.instance.routes.no_route_error(wrapped)
        return list(queues.queues)

    def create_topic(self, topic: str, queues: int, key: str | None, attributes: Mapping[str, str] | None) -> None:
        """Creates a topic at the masters that have the topic `key`. Default of `key`: the option `create_topic_key`."""
        check_topic(topic)
        source = key or self.options.create_topic_key
        self.instance.update_route(source)
        route = self.instance.routes.get(source)
        if route is None:
            raise self.instance.routes.no_route_error(source)
        fields = {
            "topic": wrap(self.config.namespace, topic),
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
                self._create_at(self.config.translated(broker.addresses[MASTER_ID]), fields)

    def _create_at(self, address: str, fields: Mapping[str, object]) -> None:
        code = RequestCode.UPDATE_AND_CREATE_TOPIC
        try:
            self.instance.api.ask(address, code, fields, timeout=_CREATE_TIMEOUT)
        except RmqError as error:
            raise ClientError(f"no broker makes the topic: {error}") from error

    def check_transaction_state(self, address: str, message: Any, ext_fields: Mapping[str, str]) -> None:
        """Answers a transaction check of a broker, on another thread."""
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
