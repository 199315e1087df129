"""How the queues of a topic are shared out among the members of a group: functions of queues and members."""

from rmqfast.client.consumer.strategies.averagely import AllocateMessageQueueAveragely
from rmqfast.client.consumer.strategies.averagely_by_circle import AllocateMessageQueueAveragelyByCircle
from rmqfast.client.consumer.strategies.by_config import AllocateMessageQueueByConfig
from rmqfast.client.consumer.strategies.by_machine_room import AllocateMessageQueueByMachineRoom
from rmqfast.client.consumer.strategies.consistent_hash import AllocateMessageQueueConsistentHash
from rmqfast.client.consumer.strategies.machine_room_nearby import AllocateMachineRoomNearby
from rmqfast.client.consumer.strategies.sticky import AllocateMessageQueueSticky
from rmqfast.client.consumer.strategies.strategy import AllocateMessageQueueStrategy

__all__ = [
    "AllocateMachineRoomNearby",
    "AllocateMessageQueueAveragely",
    "AllocateMessageQueueAveragelyByCircle",
    "AllocateMessageQueueByConfig",
    "AllocateMessageQueueByMachineRoom",
    "AllocateMessageQueueConsistentHash",
    "AllocateMessageQueueSticky",
    "AllocateMessageQueueStrategy",
]
