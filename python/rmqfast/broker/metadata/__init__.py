"""What a broker knows of topics, groups and offsets, kept change by change, and as RocketMQ's files."""

from rmqfast.broker.metadata.metadata import Metadata

__all__ = ["Metadata"]
