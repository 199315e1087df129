"""The group `mirror`: a live copy of RocketMQ's broker, over its HA port."""

from mirror.group import mirror as mirror

__all__ = ["mirror"]
