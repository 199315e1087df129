"""The groups `client` and `first`: rmqfast's clients beside RocketMQ's of Java, Go and Python, on the same brokers."""

from client.first import first
from client.group import client

__all__ = ["client", "first"]
