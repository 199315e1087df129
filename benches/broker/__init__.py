"""The groups `broker` (Java's clients against RocketMQ's broker and rmqfast's in turns), `ledger` and `operate`."""

from broker.group import broker
from broker.ledger import ledger
from broker.operate import operate

__all__ = ["broker", "ledger", "operate"]
