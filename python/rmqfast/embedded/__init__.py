"""A name server and a broker in this process: no JVM, nothing to install beside."""

from rmqfast.embedded.cluster import EmbeddedCluster

__all__ = ["EmbeddedCluster"]
