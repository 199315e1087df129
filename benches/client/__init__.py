"""The group `client`: rmqfast's clients beside RocketMQ's of Java, Go and Python, on the same brokers."""

from client.group import client

__all__ = ["client"]
