"""The groups `mirror`, a live copy of RocketMQ's broker over its HA port, and `slaves`, RocketMQ's own copy of ours."""

from mirror.group import mirror as mirror
from mirror.slaves import slaves as slaves

__all__ = ["mirror", "slaves"]
