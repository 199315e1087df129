"""The metadata of the broker: a database of changes, and RocketMQ's files, which a thread writes from it."""

from rmqfast.broker.metadata.metadata import Metadata

__all__ = ["Metadata"]
