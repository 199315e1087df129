"""Sends failed messages back to their brokers, or as new messages to the group's retry topic.

Source: RocketMQ's `DefaultMQPushConsumerImpl`, `DefaultMQPullConsumerImpl`, `ConsumeMessageOrderlyService`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from rmqfast._native import MessageView
from rmqfast.client.instance import ClientInstance
from rmqfast.client.instance.namespaces import RETRY_PREFIX, wrap
from rmqfast.errors import ClientError, CorruptError
from rmqfast.logs import logger_of
from rmqfast.message import Message

_log = logger_of(__name__)

#: The delay level that makes a message a dead letter.
_DEAD = -1
#: Added to the number of retries: the first retry has delay level 3, ten seconds.
_FIRST_DELAY_LEVEL = 3
#: Default number of retries before a message becomes a dead letter.
DEFAULT_MAX_RECONSUME_TIMES = 16
#: Properties that are not copied, because the new message gets its own or they no longer hold.
_NOT_KEPT = ("TRAN_MSG", "DELAY", "MIN_OFFSET", "MAX_OFFSET", "WAIT")


class SendBack:
    def __init__(self, instance: ClientInstance, group: str, max_reconsume_times: int, *, timeout: float = 5.0) -> None:
        self._instance, self._group, self._timeout = instance, group, timeout
        self._max_reconsume_times = max_reconsume_times

    def send(self, message: MessageView, delay_level: int, broker_name: str | None = None) -> None:
        """Asks the broker to redeliver a message. If the broker refuses, sends a copy to the retry topic."""
        try:
            self._to_broker(message, delay_level, broker_name)
        except Exception as error:  # noqa: BLE001 - as Java: whatever it is, the message must not be lost
            _log.warning("group %s: message %s cannot be sent back: %s", self._group, message.msg_id, error)
            self._send_anew(message, message.reconsume_times + 1)

    def is_sent(self, message: MessageView, delay_level: int, broker_name: str | None) -> bool:
        """Calls `send` and logs its errors. Returns whether it succeeded."""
        return self._is_taken(message, lambda: self.send(message, delay_level, broker_name))

    def is_dead_letter(self, message: MessageView, *, reconsume_times: int) -> bool:
        """Sends a copy to the retry topic, which the broker makes a dead letter. Returns whether that succeeded."""

        def end() -> None:
            try:
                self._send_anew(message, reconsume_times)
            except CorruptError:
                # a body that does not decompress cannot be copied: the broker moves the stored message
                self._to_broker(message, _DEAD, None)

        return self._is_taken(message, end)

    def _is_taken(self, message: MessageView, work: Callable[[], None]) -> bool:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - as above
            _log.error("group %s: message %s can be sent neither back nor anew: %s", self._group, message.msg_id, error)
            return False
        return True

    def _to_broker(self, message: MessageView, delay_level: int, broker_name: str | None) -> None:
        config = self._instance.config
        if broker_name is None:
            # as in Java, the broker that stored the message
            address: str | None = config.translated(message.store_host)
        else:
            address = self._instance.routes.publish_address(broker_name)
        if address is None:
            raise ClientError(f"The broker[{broker_name}] not exist", next_step="is it registered and running?")
        self._instance.api.consumer_send_back(
            address,
            self._group,
            message.physical_offset,
            delay_level=delay_level,
            origin_message_id=message.msg_id,
            origin_topic=wrap(config.namespace, message.topic),
            max_reconsume_times=self._max_reconsume_times,
            unit_mode=config.is_unit_mode,
            timeout=self._timeout,
        )

    def _send_anew(self, message: MessageView, reconsume_times: int) -> None:
        properties = {name: text for name, text in message.properties.items() if name not in _NOT_KEPT}
        properties |= {
            "ORIGIN_MESSAGE_ID": properties.get("ORIGIN_MESSAGE_ID") or message.msg_id,
            "RETRY_TOPIC": wrap(self._instance.config.namespace, message.topic),
            "RECONSUME_TIME": str(reconsume_times),
            "MAX_RECONSUME_TIMES": str(self._max_reconsume_times),
        }
        # each retry has a longer delay
        level, topic = _FIRST_DELAY_LEVEL + message.reconsume_times, RETRY_PREFIX + self._group
        # imported here: the import registers the inner producer's factory, which only consumers that send back need
        import_module("rmqfast.client.producer")
        self._instance.inner_producer.send(
            Message(topic, message.body, properties=properties, delay_level=level, flag=message.flag)
        )
