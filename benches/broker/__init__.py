"""The group `broker`: RocketMQ's Java clients against RocketMQ's broker and rmqfast's in turns."""

from broker.group import broker

__all__ = ["broker"]
