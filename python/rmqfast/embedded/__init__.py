"""A name server and brokers that run in this process, without a JVM or any other installation."""

from rmqfast.embedded.cluster import EmbeddedCluster

__all__ = ["EmbeddedCluster"]
