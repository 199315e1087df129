"""Messages that are to come once more go back to a broker, or by the inner producer to the group's retry topic.

Source: `DefaultMQPushConsumerImpl.sendMessageBack`, `ConsumeMessageOrderlyService.sendMessageBack`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module

from rmqfast._native import MessageView
from rmqfast.client.instance import ClientInstance
from rmqfast.client.instance.namespaces import RETRY_PREFIX, wrap
from rmqfast.errors import CorruptError, RmqError
from rmqfast.message import Message

_log = logging.getLogger(__name__)

#: The delay level of a message that is not to come again.
_DEAD = -1
#: Delay levels that are passed over by the first time that a message comes again: level 3, ten seconds.
FIRST_DELAY_LEVEL = 3
#: After how many times a message is a dead letter, unless said otherwise.
DEFAULT_MAX_RECONSUME_TIMES = 16
_TIMEOUT = 5.0
#: Instances learn from it how to make their inner producer; who only consumes has not imported it.
_PRODUCERS = "rmqfast.client.producer"
#: Properties that a message gets anew when it is sent anew, or that say what is not so any more.
_NOT_KEPT = ("TRAN_MSG", "DELAY", "MIN_OFFSET", "MAX_OFFSET", "WAIT")


class SendBack:
    """Gives messages of one group back.

    Args:
        instance: Knows brokers, and has the inner producer.
        group: The group, with its namespace.
        max_reconsume_times: After how many times a message is a dead letter.
    """

    def __init__(self, instance: ClientInstance, group: str, max_reconsume_times: int) -> None:
        self._instance, self._group, self._max_reconsume_times = instance, group, max_reconsume_times

    def send_back(self, message: MessageView, delay_level: int, broker_name: str | None) -> bool:
        """Has a message come once more.

        Args:
            message: With the topic that the application knows.
            delay_level: -1 for the dead letters, 0 for a level that grows, above 0 for that one.
            broker_name: Who has it; without, it goes to where it was stored.

        Returns:
            Whether somebody took it; what is in the way is logged.

        Source: `ConsumeMessageConcurrentlyService.sendMessageBack`.
        """
        try:
            self._to_broker(message, delay_level, broker_name)
        except Exception as error:  # noqa: BLE001 - whatever it is, the message must not be lost
            _log.warning("group %s: message %s cannot be sent back: %s", self._group, message.msg_id, error)
            return self._is_taken(message, lambda: self._send_anew(message, message.reconsume_times + 1))
        return True

    def to_dead_letters(self, message: MessageView, *, reconsume_times: int) -> bool:
        """Sends a message anew to the group's retry topic, of which the broker makes a dead letter.

        One whose body does not decompress cannot be sent: the broker makes a dead letter of what it stores.

        Args:
            message: With the topic that the application knows.
            reconsume_times: How often it was consumed in vain, which is enough.

        Returns:
            Whether somebody took it; what is in the way is logged.

        Source: `ConsumeMessageOrderlyService.sendMessageBack`.
        """

        def end() -> None:
            try:
                self._send_anew(message, reconsume_times)
            except CorruptError:
                self._to_broker(message, _DEAD, None)

        return self._is_taken(message, end)

    def _is_taken(self, message: MessageView, work: Callable[[], None]) -> bool:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - as above
            _log.error("group %s: message %s can be sent neither back nor anew: %s", self._group, message.msg_id, error)
            return False
        return True

    def _send_anew(self, message: MessageView, reconsume_times: int) -> None:
        import_module(_PRODUCERS)
        self._instance.inner_producer.send(self._anew(message, reconsume_times))

    def _to_broker(self, message: MessageView, delay_level: int, broker_name: str | None) -> None:
        address = message.store_host if broker_name is None else self._instance.publish_address(broker_name)
        if address is None:
            raise RmqError(f"the broker {broker_name} is not known")
        self._instance.api.consumer_send_back(
            address,
            self._group,
            message.physical_offset,
            delay_level=delay_level,
            origin_message_id=message.msg_id,
            origin_topic=wrap(self._instance.config.namespace, message.topic),
            max_reconsume_times=self._max_reconsume_times,
            unit_mode=self._instance.config.is_unit_mode,
            timeout=_TIMEOUT,
        )

    def _anew(self, message: MessageView, reconsume_times: int) -> Message:
        properties = {name: text for name, text in message.properties.items() if name not in _NOT_KEPT}
        origin = properties.get("ORIGIN_MESSAGE_ID") or message.msg_id
        properties |= {
            "ORIGIN_MESSAGE_ID": origin,
            "RETRY_TOPIC": wrap(self._instance.config.namespace, message.topic),
            "RECONSUME_TIME": str(reconsume_times),
            "MAX_RECONSUME_TIMES": str(self._max_reconsume_times),
        }
        return Message(
            RETRY_PREFIX + self._group,
            message.body,
            properties=properties,
            delay_level=FIRST_DELAY_LEVEL + message.reconsume_times,
            flag=message.flag,
        )
