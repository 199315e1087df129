"""Messages that a consumer gives back, to have them once more later.

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
#: Not taken over into a message that is sent in place of the one that its broker did not take back.
_DROPPED = frozenset({"DELAY", "TRAN_MSG", "MIN_OFFSET", "MAX_OFFSET"})


class SendBack:
    """Gives messages back to the broker that has them, or where that fails, sends them to the group's retry topic.

    Args:
        instance: What brokers are reached by.
        max_reconsume_times: After how many times a message goes to the dead letters.
        timeout: How long to wait for the broker, in seconds.
    """

    def __init__(self, instance: ClientInstance, max_reconsume_times: int, timeout: float) -> None:
        self._instance, self._times, self._timeout = instance, max_reconsume_times, timeout

    def send(self, message: MessageView, delay_level: int, broker_name: str | None, group: str) -> None:
        """Gives a message back.

        Args:
            message: What was pulled.
            delay_level: 0 for one that grows with the times it was consumed, -1 for the dead letters.
            broker_name: The broker that has it; unless given, the one that stored it, by its address.
            group: Who shall have it once more, with its namespace.

        Raises:
            ClientError: Neither its broker takes it, nor any that has the retry topic.
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
    """What is sent in place of a message that its broker does not take back.

    Args:
        message: What was pulled.
        topic: Its topic, with its namespace.
        group: Who shall have it once more.
        max_reconsume_times: After how many times it goes to the dead letters.
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
