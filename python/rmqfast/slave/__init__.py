"""A broker that follows a master: it has the master's log, topics, groups and offsets, and gives messages out."""

from rmqfast.slave.slave import Slave

__all__ = ["Slave"]
