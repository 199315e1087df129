"""Messages with a timer of RocketMQ 5: brokers from before 5.0 would deliver them at once.

Source: `TimerMessageStore`, `HookUtils.checkIfTimerMessage`.
"""

from __future__ import annotations

from rmqfast.client.instance.routes import RouteTable
from rmqfast.client.producer.publish_queues import PublishQueues
from rmqfast.errors import ClientError
from rmqfast.message import Message

__all__ = ["TIMERS", "check_timers", "is_timed"]

TIMERS = frozenset({"TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"})
#: `MQVersion.Version.V5_0_0`, as a broker says it in its answers.
_V5_0_0 = 413


def is_timed(message: Message) -> bool:
    """Whether a message has a timer that counts: beside a delay level none does.

    Example:
        >>> is_timed(Message("orders", b"later", delay=90))
        True

    Source: `HookUtils.checkIfTimerMessage`.
    """
    properties = message.properties
    return not TIMERS.isdisjoint(properties) and not message.delay_level and "DELAY" not in properties


def check_timers(queues: PublishQueues, routes: RouteTable) -> None:
    """Whether the brokers of these queues have timers, as far as they have told their release.

    Raises:
        ClientError: One is older than 5.0.
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
