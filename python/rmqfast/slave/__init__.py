"""A broker that follows a master: copies its log, topics, groups and offsets, and serves its messages."""

from rmqfast.slave.slave import Slave

__all__ = ["Slave"]
