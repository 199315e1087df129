"""The broker's metadata: a database of changes, and RocketMQ's files written behind."""

from rmqfast.broker.metadata.metadata import Metadata

__all__ = ["Metadata"]
