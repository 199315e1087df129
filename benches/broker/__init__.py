"""The groups `broker` (RocketMQ's Java clients against RocketMQ's broker and rmqfast's in turns) and `ledger`."""

from broker.group import broker
from broker.ledger import ledger

__all__ = ["broker", "ledger"]
