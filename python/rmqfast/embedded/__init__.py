"""A name server and brokers in this process, without a JVM or any further installation."""

from rmqfast.embedded.cluster import EmbeddedCluster

__all__ = ["EmbeddedCluster"]
