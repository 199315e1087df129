"""The broker's metadata: a database of changes, from which RocketMQ's files are written in the background."""

from rmqfast.broker.metadata.metadata import Metadata

__all__ = ["Metadata"]
