"""Sends messages back to their broker, to consume them again later.

Source: `DefaultMQPullConsumerImpl.sendMessageBack`, `DefaultMQPushConsumerImpl.sendMessageBack`.
"""

from __future__ import annotations

import logging
from importlib import import_module

from rmqfast._native import MessageView
from rmqfast.client.instance import ClientInstance
from rmqfast.client.instance.namespaces import RETRY_PREFIX, wrap
from rmqfast.errors import ClientError, RemotingError
from rmqfast.message import Message

_log = logging.getLogger(__name__)
#: Properties that a retry message does not inherit.
_DROPPED = frozenset({"DELAY", "TRAN_MSG", "MIN_OFFSET", "MAX_OFFSET"})


class SendBack:
    """Sends messages back to their broker, or if that fails, to the group's retry topic.

    Args:
        instance: Sends the requests.
        max_reconsume_times: Retries before a message goes to the dead-letter topic.
        timeout: How long to wait for the broker, in seconds.
    """

    def __init__(self, instance: ClientInstance, max_reconsume_times: int, timeout: float) -> None:
        self._instance, self._times, self._timeout = instance, max_reconsume_times, timeout

    def send(self, message: MessageView, delay_level: int, broker_name: str | None, group: str) -> None:
        """Sends a message back.

        Args:
            message: The pulled message.
            delay_level: 0 for a delay that grows with each retry, -1 for the dead-letter topic.
            broker_name: The broker that has it; by default the one at its store host.
            group: The group that gets it again, with its namespace.

        Raises:
            ClientError: Neither its broker takes it, nor one with the retry topic.
            RemotingError: As above.
        """
        topic = wrap(self._instance.config.namespace, message.topic)
        try:
            self._instance.api.consumer_send_back(
                self._address(message, broker_name),
                group,
                message.physical_offset,
                delay_level=delay_level,
                origin_message_id=message.msg_id,
                origin_topic=topic,
                max_reconsume_times=self._times,
                unit_mode=self._instance.config.is_unit_mode,
                timeout=self._timeout,
            )
        except (RemotingError, ClientError) as error:
            _log.warning(
                "group %s: a message goes to the topic of retries, as its broker does not take it: %s", group, error
            )
            import_module("rmqfast.client.producer")  # the layer above, whose import makes the producer known
            self._instance.inner_producer.send(retry_message(message, topic, group, self._times))

    def _address(self, message: MessageView, broker_name: str | None) -> str:
        if broker_name is None:
            return self._instance.config.translated(message.store_host)
        address = self._instance.publish_address(broker_name)
        if address is None:
            raise ClientError(f"The broker[{broker_name}] not exist", next_step="is it registered and running?")
        return address


def retry_message(message: MessageView, topic: str, group: str, max_reconsume_times: int) -> Message:
    """Builds the message for the retry topic, if the broker does not take the original back.

    Args:
        message: The pulled message.
        topic: Its topic, with its namespace.
        group: The group that gets it again.
        max_reconsume_times: Retries before it goes to the dead-letter topic.
    """
    kept = {name: value for name, value in message.properties.items() if name not in _DROPPED}
    properties = {
        **kept,
        "ORIGIN_MESSAGE_ID": kept.get("ORIGIN_MESSAGE_ID") or message.msg_id,
        "RETRY_TOPIC": topic,
        "RECONSUME_TIME": str(message.reconsume_times + 1),
        "MAX_RECONSUME_TIMES": str(max_reconsume_times),
    }
    delay_level, body = 3 + message.reconsume_times, message.body
    return Message(RETRY_PREFIX + group, body, properties=properties, delay_level=delay_level, flag=message.flag)
