"""The metadata of the broker: a database of changes, and RocketMQ's files, which a thread writes from the database."""

from rmqfast.broker.metadata.metadata import Metadata

__all__ = ["Metadata"]
